/**
 * Says what became of every stream. It looks at what clients got and at what the provider was asked, and at nothing that a
 * gateway says of itself.
 */
import type { Tried, Wanted } from "./Client.ts";
import type { Diary, Ended } from "./Diary.ts";
import { argumentsOf, textOf } from "./Drawn.ts";
import type { Program } from "./Gateways.ts";

/** How long behind a lease the runs of a dead gateway are decided, in milliseconds, on a quiet machine. */
const decidedAfterLeaseMs = 5_000;

/** The end of a gateway is felt within so long by a client, in milliseconds, on a quiet machine. */
const feltMs = 3_000;

/** Maximum share of the streams whose client is told to ask no more, rounded up. */
const toldShareMax = 0.05;

/** What was counted, and the first few words against each bar. */
export interface Verdict {
  readonly streams: number;
  readonly whole: number;
  /** Responses that a kill broke, and the streams that they were of. */
  readonly brokenByKills: number;
  readonly streamsBroken: number;
  /** Of those streams, the ones that their clients then had by asking again. */
  readonly recovered: number;
  /** Requests that a gateway which was told to end took no more, before any head: their clients asked again. */
  readonly refusedAtStops: number;
  /** Responses that the provider broke behind text that a client had. */
  readonly brokenByProvider: number;
  /** Faults of the provider that no client has seen. */
  readonly unseen: number;
  /** Streams whose client was told to ask no more, in the words that it was told. */
  readonly told: ReadonlyArray<string>;
  /** Streams that their clients have whole from each version. */
  readonly byVersion: Readonly<Record<Program["version"], number>>;
  readonly questions: number;
  readonly deadRuns: number;
  /** The latest decision of a dead gateway's run, from its kill on, in milliseconds. */
  readonly latestMs: number;
  readonly bars: ReadonlyArray<Bar>;
}

/** What must be none. */
export interface Bar {
  readonly what: string;
  readonly found: ReadonlyArray<string>;
}

const nameOf = ({ drawn }: Wanted): string => `stream ${drawn.id} (${drawn.protocol}, ${drawn.kind})`;

/** Whether the life of a gateway that had a response ended under it. */
const endedUnder = (ends: ReadonlyArray<Ended>, { from, place, to }: Tried, slowness: number): boolean =>
  ends.some(
    ({ at, goneAt, life, node }) =>
      node === place?.node && life === place.life && goneAt >= from && at <= to + feltMs * slowness,
  );

/** Whether the gateway of a response was killed under it. A connection that no gateway took found none alive. */
const isKilled = ({ kills, slowness }: Diary, tried: Tried): boolean =>
  tried.place === undefined || endedUnder(kills, tried, slowness);

/** Whether a gateway that was told to end took it no more: nothing of a response had come. */
const isRefusedAtStop = ({ slowness, stops }: Diary, tried: Tried): boolean =>
  tried.outcome === "broken" && (tried.status ?? 503) === 503 && endedUnder(stops, tried, slowness);

/** A play proves nothing without load, and without a gateway that ended while a response was under way in it. */
const missing = ({ asked, kills, stops, wanted }: Diary): ReadonlyArray<string> => {
  const ends = [...kills, ...stops];
  const isHit = ({ from, place, to }: Tried): boolean =>
    ends.some(({ at, life, node }) => node === place?.node && life === place.life && from <= at && at <= to);
  return [
    ...(wanted.length === 0 ? ["no client wanted a stream"] : []),
    ...(asked.length === 0 ? ["the provider was never asked"] : []),
    ...(ends.length === 0 ? ["no gateway ended"] : []),
    ...(wanted.some(isWhole) ? [] : ["no client has a whole stream"]),
    ...(wanted.some(({ tries }) => tries.some(isHit)) ? [] : ["no gateway ended while it had a response"]),
  ];
};

const lastOf = ({ tries }: Wanted): Tried | undefined => tries.at(-1);

const isWhole = (wanted: Wanted): boolean => {
  const last = lastOf(wanted);
  const calls = wanted.drawn.kind === "call" ? [argumentsOf(wanted.drawn)] : [];
  return (
    last?.outcome === "whole" &&
    last.text === textOf(wanted.drawn) &&
    JSON.stringify(last.calls) === JSON.stringify(calls)
  );
};

const isTold = (wanted: Wanted): boolean => lastOf(wanted)?.outcome === "told";

/** A stream whose client has neither the whole of it nor a word why not. */
const lost = ({ wanted }: Diary): ReadonlyArray<string> =>
  wanted
    .filter((one) => !isWhole(one) && !isTold(one))
    .map((one) => {
      const last = lastOf(one);
      return `${nameOf(one)}: ${one.tries.length} tries, the last ${last?.outcome} (${last?.status}, ${last?.said}), ${last?.text.length} characters of ${textOf(one.drawn).length}`;
    });

/** Clients that were told to ask no more: for no reason, or too many of them. */
const toldInVain = (diary: Diary): ReadonlyArray<string> => {
  const told = diary.wanted.filter(isTold);
  const most = Math.ceil(diary.wanted.length * toldShareMax);
  const faults = new Set(diary.asked.flatMap(({ isFault, stream }) => (isFault ? [stream] : [])));
  const hasReason = ({ drawn, tries }: Wanted): boolean =>
    faults.has(drawn.id) || tries.some((tried) => isKilled(diary, tried));
  const words = (one: Wanted): string => `${nameOf(one)}: ${lastOf(one)?.status}, ${lastOf(one)?.said}`;
  return [
    ...told.filter((one) => !hasReason(one)).map((one) => `${words(one)}; nothing of it had broken`),
    ...(told.length > most ? told.map((one) => `${words(one)}; one of ${told.length}, at most ${most} may be`) : []),
  ];
};

/**
 * Bytes that a client has twice, in the wrong place or of another stream; and calls that it was handed more than once, in whichever of its
 * tries: some clients run a call before the response has ended.
 */
const damaged = ({ wanted }: Diary): ReadonlyArray<string> =>
  wanted.flatMap((one) => {
    const text = textOf(one.drawn);
    const wrong = one.tries.filter((tried) => !text.startsWith(tried.text));
    const handed = one.tries.flatMap(({ calls }) => calls).filter((call) => call === argumentsOf(one.drawn)).length;
    return [
      ...wrong.map((tried) => `${nameOf(one)}: a client got ${JSON.stringify(tried.text.slice(-60))}`),
      ...(handed > 1 ? [`${nameOf(one)}: its call was handed over ${handed} times`] : []),
    ];
  });

/**
 * Requests without a reason: more than one for a try of its client, beside those that the provider itself broke. Each try is counted alone,
 * so that one that came to nothing does not pay for a second request of another one.
 */
const twice = (diary: Diary): ReadonlyArray<string> => {
  const requests = Map.groupBy(diary.asked, ({ stream }) => stream);
  return diary.wanted.flatMap((one) => {
    const all = requests.get(one.drawn.id) ?? [];
    const perTry = Map.groupBy(all, ({ at }) => one.tries.findLastIndex(({ from }) => from <= at));
    const unpaid = [...perTry].flatMap(([index, its]) => {
      const tried = one.tries[index];
      const isSent = tried?.place !== undefined && !isRefusedAtStop(diary, tried);
      const most = (isSent ? 1 : 0) + its.filter(({ isFault }) => isFault).length;
      return its.length > most
        ? [`${nameOf(one)}: ${its.length} requests for try ${index + 1}, of which ${most} have a reason`]
        : [];
    });
    const overlapping = all.filter((request, at) => {
      const before = all[at - 1];
      return (
        before !== undefined &&
        (before.closedAt === undefined || before.closedAt > request.at + feltMs * diary.slowness)
      );
    });
    return [...unpaid, ...overlapping.map(() => `${nameOf(one)}: two requests of it at the same time`)];
  });
};

/** Requests that the provider still answers although all clients are through: nobody reads what they cost. */
const leaked = ({ asked, wanted }: Diary): ReadonlyArray<string> => {
  const open = new Set(wanted.filter(({ isOver }) => !isOver).map(({ drawn }) => drawn.id));
  return asked
    .filter(({ closedAt, stream }) => closedAt === undefined && !open.has(stream))
    .map(({ stream }) => `stream ${stream}: a request of it is open at the end`);
};

/**
 * Responses that broke although their gateway was not killed and their provider did not break them: a cut breaks one of its stream. A gateway that is
 * told to end brings what it has begun to its end.
 */
const touched = (diary: Diary): ReadonlyArray<string> =>
  diary.wanted.flatMap((one) =>
    one.tries
      .filter((tried) => tried.outcome === "broken" && !isKilled(diary, tried) && !isRefusedAtStop(diary, tried))
      .slice(one.drawn.kind === "cut" ? 1 : 0)
      .map(
        (tried) =>
          `${nameOf(one)}: broke at a gateway that lived: ${JSON.stringify({ ...tried, text: tried.text.length })}`,
      ),
  );

const undecided = ({ leaseMs, left, slowness }: Diary): ReadonlyArray<string> =>
  left
    .filter(
      ({ decidedAt, killedAt }) =>
        (decidedAt ?? Number.POSITIVE_INFINITY) - killedAt > (leaseMs + decidedAfterLeaseMs) * slowness,
    )
    .map(({ decidedAt, killedAt, run }) =>
      decidedAt === undefined ? `run ${run}: not decided` : `run ${run}: decided after ${decidedAt - killedAt} ms`,
    );

/** Runs whose text a client has, and of which the store knows nothing: text is shown when it is on record. */
const unrecorded = ({ remains, wanted }: Diary): ReadonlyArray<string> =>
  wanted.flatMap((one) =>
    one.tries
      .filter(({ run, text }) => text !== "" && !(run !== undefined && remains.runs.has(run)))
      .map(({ run, text }) => `${nameOf(one)}: ${text.length} characters of run ${run}, which is not on record`),
  );

/** Streams that their clients have whole from a version. */
const wholeFrom = ({ versions, wanted }: Diary, version: Program["version"]): number =>
  wanted.filter((one) => {
    const place = lastOf(one)?.place;
    return isWhole(one) && place !== undefined && versions[place.node]?.[place.life - 1] === version;
  }).length;

/** Judges a play. */
export const judged = (diary: Diary): Verdict => {
  const broken = diary.wanted.map((wanted) => ({
    wanted,
    killed: wanted.tries.filter((tried) => tried.outcome === "broken" && isKilled(diary, tried)).length,
  }));
  const hit = broken.filter(({ killed }) => killed > 0);
  const decided = diary.left.map(({ decidedAt, killedAt }) => (decidedAt ?? killedAt) - killedAt);
  const cuts = diary.wanted.flatMap(({ drawn, tries }) => (drawn.kind === "cut" ? tries : []));
  const brokenByProvider = cuts.filter(
    (tried) => tried.outcome === "broken" && !isKilled(diary, tried) && !isRefusedAtStop(diary, tried),
  ).length;
  const faults = diary.asked.filter(({ isFault }) => isFault).length;
  const stillOpen = diary.remains.open === 0 ? [] : [`${diary.remains.open} runs have no end on record`];
  return {
    streams: diary.wanted.length,
    whole: diary.wanted.filter(isWhole).length,
    brokenByKills: broken.reduce((sum, { killed }) => sum + killed, 0),
    streamsBroken: hit.length,
    recovered: hit.filter(({ wanted }) => isWhole(wanted)).length,
    refusedAtStops: diary.wanted.flatMap(({ tries }) => tries).filter((tried) => isRefusedAtStop(diary, tried)).length,
    brokenByProvider,
    unseen: faults - brokenByProvider,
    told: diary.wanted.filter(isTold).map((one) => `${nameOf(one)}: ${lastOf(one)?.status}, ${lastOf(one)?.said}`),
    byVersion: { older: wholeFrom(diary, "older"), newer: wholeFrom(diary, "newer") },
    questions: diary.remains.questions,
    deadRuns: diary.left.length,
    latestMs: Math.max(0, ...decided),
    bars: [
      { what: "what a play must have", found: missing(diary) },
      { what: "lost", found: lost(diary) },
      { what: "told to ask no more without need", found: toldInVain(diary) },
      { what: "twice: text or a call at a client", found: damaged(diary) },
      { what: "twice: requests without a reason", found: twice(diary) },
      { what: "requests open at the end", found: leaked(diary) },
      { what: "survivors' streams touched", found: touched(diary) },
      { what: `a dead gateway's run decided later than lease + 5 s`, found: undecided(diary) },
      { what: "runs without an end", found: stillOpen },
      { what: "text of runs that are not on record", found: unrecorded(diary) },
      { what: "gateways that ended by themselves", found: diary.crashes },
    ],
  };
};

/** Whether every bar is kept. */
export const holds = ({ bars }: Verdict): boolean => bars.every(({ found }) => found.length === 0);
