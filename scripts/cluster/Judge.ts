/**
 * Judges the outcome of every stream. It relies only on what clients received and what the provider was asked, never on what a
 * gateway reports about itself.
 */
import type { Tried, Wanted } from "./Client.ts";
import type { Diary, Ended } from "./Diary.ts";
import { argumentsOf, textOf } from "./Drawn.ts";
import type { Program } from "./Gateways.ts";

/** Maximum time from the expiry of a dead gateway's lease to the decision of its runs, in milliseconds, on a quiet machine. */
const decidedAfterLeaseMs = 5_000;

/** Maximum time until a client notices the end of its gateway, in milliseconds, on a quiet machine. */
const feltMs = 3_000;

/** A run's record may be missing if its process was killed within this many milliseconds, on a quiet machine (law L8). */
const lateRecordMs = 1_000;

/** Maximum share of streams that end with an error that forbids a retry, rounded up. */
const toldShareMax = 0.05;

/** The counts of a play, and the violations of each bar. */
export interface Verdict {
  readonly streams: number;
  readonly whole: number;
  /** Number of responses that kills broke, and of the streams they belonged to. */
  readonly brokenByKills: number;
  readonly streamsBroken: number;
  /** Number of those streams that their clients received by retrying. */
  readonly recovered: number;
  /** Number of requests that a stopping gateway refused before it sent a head. Their clients retried. */
  readonly refusedAtStops: number;
  /** Number of responses that the provider broke after the client had received text. */
  readonly brokenByProvider: number;
  /** Number of provider faults that no client noticed. */
  readonly unseen: number;
  /** Streams whose client was told not to retry, with the message. */
  readonly told: ReadonlyArray<string>;
  /** Number of streams that clients received whole, by the version that served them. */
  readonly byVersion: Readonly<Record<Program["version"], number>>;
  readonly questions: number;
  readonly deadRuns: number;
  /** Maximum time from a kill to the decision of a run it left, in milliseconds. */
  readonly latestMs: number;
  readonly bars: ReadonlyArray<Bar>;
}

/** A property that must have no violations. */
export interface Bar {
  readonly what: string;
  readonly found: ReadonlyArray<string>;
}

const nameOf = ({ drawn }: Wanted): string => `stream ${drawn.id} (${drawn.protocol}, ${drawn.kind})`;

/** True if the gateway process that served a response ended during it. */
const endedUnder = (ends: ReadonlyArray<Ended>, { from, place, to }: Tried, slowness: number): boolean =>
  ends.some(
    ({ at, goneAt, life, node }) =>
      node === place?.node && life === place.life && goneAt >= from && at <= to + feltMs * slowness,
  );

/** True if the gateway of a response was killed during it. A connection that no gateway accepted counts as killed. */
const isKilled = ({ kills, slowness }: Diary, tried: Tried): boolean =>
  tried.place === undefined || endedUnder(kills, tried, slowness);

/** True if a stopping gateway refused the request before it sent a head. */
const isRefusedAtStop = ({ slowness, stops }: Diary, tried: Tried): boolean =>
  tried.outcome === "broken" && (tried.status ?? 503) === 503 && endedUnder(stops, tried, slowness);

/** A play proves nothing without load, or if no gateway ended during a response. */
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

/** Streams whose client has neither the complete response nor an error that tells it not to retry. */
const lost = ({ wanted }: Diary): ReadonlyArray<string> =>
  wanted
    .filter((one) => !isWhole(one) && !isTold(one))
    .map((one) => {
      const last = lastOf(one);
      return `${nameOf(one)}: ${one.tries.length} tries, the last ${last?.outcome} (${last?.status}, ${last?.said}), ${last?.text.length} characters of ${textOf(one.drawn).length}`;
    });

/** Clients that were told not to retry without a reason, and all of them if there are too many. */
const toldInVain = (diary: Diary): ReadonlyArray<string> => {
  const told = diary.wanted.filter(isTold);
  const most = Math.ceil(diary.wanted.length * toldShareMax);
  const faults = new Set(diary.asked.flatMap(({ isFault, stream }) => (isFault ? [stream] : [])));
  const hasReason = ({ drawn, tries }: Wanted): boolean =>
    faults.has(drawn.id) || tries.some((tried) => isKilled(diary, tried));
  const words = (one: Wanted): string => `${nameOf(one)}: ${lastOf(one)?.status}, ${lastOf(one)?.said}`;
  return [
    ...told.filter((one) => !hasReason(one)).map((one) => `${words(one)}; no fault explains it`),
    ...(told.length > most ? told.map((one) => `${words(one)}; one of ${told.length}, the maximum is ${most}`) : []),
  ];
};

/**
 * Text that a client received twice, out of order or from another stream, and calls that it received more than once over all its
 * tries. Some clients run a call before the response has ended.
 */
const damaged = ({ wanted }: Diary): ReadonlyArray<string> =>
  wanted.flatMap((one) => {
    const text = textOf(one.drawn);
    const wrong = one.tries.filter((tried) => !text.startsWith(tried.text));
    const handed = one.tries.flatMap(({ calls }) => calls).filter((call) => call === argumentsOf(one.drawn)).length;
    return [
      ...wrong.map((tried) => `${nameOf(one)}: a client got ${JSON.stringify(tried.text.slice(-60))}`),
      ...(handed > 1 ? [`${nameOf(one)}: its call was delivered ${handed} times`] : []),
    ];
  });

/**
 * Requests without a reason. Each try of a client allows one, plus one for each that the provider itself broke. Tries are counted
 * separately, so that a try that never reached the provider does not excuse an extra request of another.
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
        ? [`${nameOf(one)}: ${its.length} requests for try ${index + 1}, ${most} of them with a reason`]
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

/** Provider requests that are still open although their client is done. They cost money and have no reader. */
const leaked = ({ asked, wanted }: Diary): ReadonlyArray<string> => {
  const open = new Set(wanted.filter(({ isOver }) => !isOver).map(({ drawn }) => drawn.id));
  return asked
    .filter(({ closedAt, stream }) => closedAt === undefined && !open.has(stream))
    .map(({ stream }) => `stream ${stream}: a request of it is open at the end`);
};

/**
 * Responses that broke although neither a kill nor the provider broke them. A stream of kind `cut` may break once. A stopping gateway
 * must finish the responses it has begun.
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

/** True if a gateway was killed so soon after a request that the run may be unrecorded. Records are written asynchronously. */
const isKilledBeforeRecord = ({ kills, slowness }: Diary, { from, place }: Tried): boolean =>
  kills.some(
    ({ at, life, node }) =>
      node === place?.node && life === place.life && at >= from && at <= from + lateRecordMs * slowness,
  );

/** Runs whose text a client received but that the store does not know, although their gateway lived long enough to write them. */
const unrecorded = (diary: Diary): ReadonlyArray<string> =>
  diary.wanted.flatMap((one) =>
    one.tries
      .filter(({ run, text }) => text !== "" && !(run !== undefined && diary.remains.runs.has(run)))
      .filter((tried) => !isKilledBeforeRecord(diary, tried))
      .map(({ run, text }) => `${nameOf(one)}: ${text.length} characters of run ${run}, which is not on record`),
  );

/** Counts the streams that clients received whole from a version. */
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

/** True if no bar has a violation. */
export const holds = ({ bars }: Verdict): boolean => bars.every(({ found }) => found.length === 0);
