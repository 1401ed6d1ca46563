/**
 * Judges what a diary holds: what was lost, what happened twice, who was asked without need, and how soon and how often requests went.
 */
import type { AskedQuestion, Asker, Diary, PathReturn, RunEntry, SentRequest } from "./Diary.ts";

/** One thing that is judged. */
export interface Judgement {
  readonly name: string;
  /** What was found, and what it may be at most. */
  readonly found: number;
  readonly most: number;
  readonly unit: string;
  /** The first case that is against it, for a person. */
  readonly first: string | undefined;
}

/** Whether a world is as it has to be. */
export const holds = (judgements: ReadonlyArray<Judgement>): boolean =>
  judgements.every(({ first, found, most }) => found <= most && (first === undefined || most > 0));

/** Longest that a path's return may go unnoticed beyond one and a half spacings of its probes, in milliseconds. */
const noticeMs = 500;
/** All runs that waited are on the wire within so long, in milliseconds. */
const crowdMs = 10_000;
/** Requests beyond a run's first one and those that replace a stream that was cut behind its head, a run. */
const extraMax = 0.02;

/** Automatic retries of a run, those of a response of which something was shown, and those after a stall. */
const retriesMax = 3;
const afterShownMax = 1;
const stallsMax = 1;
/** An overload that one credential heard holds others for so long, in milliseconds. */
const overloadOthersMs = 5_000;

/** Judges a diary. */
export const judged = (diary: Diary): ReadonlyArray<Judgement> => {
  const runs = [...diary.runs.values()];
  const count = (name: string, cases: ReadonlyArray<string>, unit: string): Judgement => ({
    name,
    found: cases.length,
    most: 0,
    unit,
    first: cases[0],
  });
  const lost = runs.filter(({ end }) => end === "lost" || end === "open").map(toldEnd);
  const effects = [...diary.effects].filter(([, times]) => times > 1).map(([key, times]) => `${key} ${times} times`);
  const twice = runs.filter((it) => it.twice.length > 0).map((it) => `${it.run}: ${it.twice.join(", ")}`);
  const missing = runs.filter((it) => it.missing.length > 0).map((it) => `${it.run}: ${it.missing.join(", ")}`);
  const needless = runs.flatMap((run) =>
    run.questions
      .filter((question, at) => !isNeeded(run, question, run.questions[at - 1]))
      .map((it) => toldAsk(run, it)),
  );
  return [
    count("lost", lost, "runs"),
    count("effects twice", effects, "effects"),
    count("text twice", twice, "runs"),
    count("text missing", missing, "runs"),
    count("asked without need", needless, "questions"),
    extra(runs),
    ...returnsOf(diary),
    count("requests inside of an announced wait", heldOnes(diary, runs), "requests"),
  ];
};

const toldEnd = (run: RunEntry): string =>
  `${run.run} (${run.style}) from ${seconds(run.from)} on: ${run.end} ${run.why}; ${run.requests.map(toldRequest).join(", ")}`;

const toldAsk = (run: RunEntry, { at, rule }: AskedQuestion): string =>
  `${run.run} (${run.style}) at ${seconds(at)}: ${rule}; ${run.requests.map(toldRequest).join(", ")}`;

const toldRequest = ({ answered, at, cut, reached }: SentRequest): string =>
  `${seconds(at)} ${cut === "no" ? (answered ? "answered" : reached ? "reached" : "sent") : `cut (${cut})`}`;

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;

/**
 * Whether a run may ask: something was shown that only a person may withdraw, or its stream was cut more often than a run repeats
 * by itself. A person's word gives it anew what it may repeat.
 */
const isNeeded = (
  run: RunEntry,
  { at, reasoned, shown }: AskedQuestion,
  before: AskedQuestion | undefined,
): boolean => {
  if (shown) return true;
  const since = before?.at ?? Number.NEGATIVE_INFINITY;
  const broke = run.requests.filter(
    (it) => it.at > since && it.at <= at && it.reached && (!it.answered || it.cut !== "no"),
  );
  const stalls = broke.filter(({ cut }) => cut === "silent").length;
  return broke.length > retriesMax || stalls > stallsMax || (reasoned && broke.length > afterShownMax);
};

/** Requests that nothing but a refusal, or a break before a head, explains. */
const extra = (runs: ReadonlyArray<RunEntry>): Judgement => {
  const extraOf = (run: RunEntry): number => {
    const reached = run.requests.filter((it) => it.reached);
    const cuts = reached.filter(({ cut }) => cut !== "no").length;
    const words = run.questions.filter(({ answer }) => answer === "retry" || answer === "continue").length;
    return Math.max(0, reached.length - 1 - cuts - words);
  };
  const all = runs.map((run) => ({ run, extra: extraOf(run) }));
  const sum = all.reduce((total, it) => total + it.extra, 0);
  const [worst] = all.filter((it) => it.extra > 0).toSorted((one, other) => other.extra - one.extra);
  const found = runs.length === 0 ? 0 : sum / runs.length;
  const first = found > extraMax && worst !== undefined ? toldEnd(worst.run) : undefined;
  return { name: "requests beyond what was cut", found, most: extraMax, unit: "a run", first };
};

/** How often a path is asked that has been away for so long. A connect into a black hole is tried again two seconds apart. */
const spacingMs = ({ awayMs, kind }: PathReturn): number => {
  const planned = awayMs < 60_000 ? 1_000 : 5_000;
  return kind === "black_hole" ? Math.max(planned, 2_000) : planned;
};

const returnsOf = (diary: Diary): ReadonlyArray<Judgement> => {
  const firsts: Array<{ readonly over: number; readonly told: string }> = [];
  const crowds: Array<{ readonly ms: number; readonly told: string; readonly runs: number }> = [];
  for (const it of diary.returns) {
    const allowed = 1.5 * spacingMs(it) + noticeMs;
    const free = it.waiting.filter((run) => !isCooling(diary, run, it.at, it.at + crowdMs));
    if (free.length === 0 || !isQuiet(diary, it, crowdMs)) continue;
    const after = free.map((run) => firstAfter(run, it.at) - it.at);
    const first = Math.min(...after);
    const last = Math.max(...after);
    const told = `path ${it.path} back at ${seconds(it.at)} after ${seconds(it.awayMs)} (${it.kind}), ${free.length} waited`;
    firsts.push({
      over: first - allowed,
      told: `${told}: first request after ${seconds(first)}, allowed ${seconds(allowed)}`,
    });
    crowds.push({ ms: last, runs: free.length, told: `${told}: the last one after ${seconds(last)}` });
  }
  const worstFirst = firsts.toSorted((one, other) => other.over - one.over)[0];
  const worstCrowd = crowds.toSorted((one, other) => other.ms - one.ms)[0];
  const most = Math.max(0, ...crowds.map(({ runs }) => runs));
  return [
    {
      name: "first request behind what is allowed, at worst",
      found: Math.max(0, worstFirst?.over ?? 0),
      most: 0,
      unit: "ms",
      first: worstFirst !== undefined && worstFirst.over > 0 ? worstFirst.told : undefined,
    },
    {
      name: `last of up to ${most} waiting runs on the wire`,
      found: worstCrowd?.ms ?? 0,
      most: crowdMs,
      unit: "ms",
      first: worstCrowd !== undefined && worstCrowd.ms > crowdMs ? worstCrowd.told : undefined,
    },
  ];
};

/** A run that was left or ended without a request does not wait any more. */
const firstAfter = (run: RunEntry, at: number): number =>
  run.requests.find((it) => it.at >= at)?.at ??
  (run.to !== undefined && run.end !== "lost" ? at : Number.POSITIVE_INFINITY);

const isQuiet = (diary: Diary, { at, path }: PathReturn, ms: number): boolean =>
  !diary.departures.some((it) => it.path === path && it.at > at && it.at < at + ms) &&
  !diary.sleeps.some((it) => it.at + it.ms > at - ms && it.at < at + ms);

const sharesLimit = (one: Asker, other: Asker): boolean =>
  one.path === other.path && one.model === other.model && one.key === other.key;

const isCooling = (diary: Diary, run: RunEntry, from: number, to: number): boolean =>
  diary.refusals.some((it) => it.path === run.path && it.model === run.model && it.until > from && it.at < to);

/** Requests that were let go although their scope had heard that it is to wait. One that was connecting by then is on its way. */
const heldOnes = (diary: Diary, runs: ReadonlyArray<RunEntry>): ReadonlyArray<string> => {
  const byScope = Map.groupBy(
    runs.flatMap(({ requests }) => requests),
    ({ model, path }) => `${path} ${model}`,
  );
  return diary.refusals.flatMap((refusal) => {
    const { at, kind, model, path, until } = refusal;
    return (byScope.get(`${path} ${model}`) ?? [])
      .filter((it) => {
        if (it.from <= at) return false;
        if (sharesLimit(it, refusal)) return it.from < until;
        return kind === "overloaded" && it.from < Math.min(until, at + overloadOthersMs);
      })
      .map((it) => `${it.run} at ${seconds(it.at)}: ${kind} heard at ${seconds(at)} until ${seconds(until)}`);
  });
};
