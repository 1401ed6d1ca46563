/**
 * Judges a diary: lost runs, duplicate effects and text, needless questions, and the timing and number of requests.
 */
import type { AskedQuestion, Asker, Diary, PathReturn, RunEntry, SentRequest } from "./Diary.ts";

/** The result of one rule. */
export interface Judgement {
  readonly name: string;
  /** The measured value, and its maximum. */
  readonly found: number;
  readonly most: number;
  readonly unit: string;
  /** A description of the first violation. */
  readonly first: string | undefined;
}

/** True if no rule is violated. */
export const areMet = (judgements: ReadonlyArray<Judgement>): boolean =>
  judgements.every(({ first, found, most }) => found <= most && (first === undefined || most > 0));

/** Maximum delay in noticing that a path is back, beyond one and a half probe intervals, in milliseconds. */
const noticeMs = 500;
/** Maximum time until all waiting runs have sent their request, in milliseconds. */
const crowdMs = 10_000;
/** Maximum unexplained requests per run: those beyond the first that replace neither a cut stream nor a refusal. */
const extraMax = 0.02;

/** Maximum automatic retries of a response after something was shown, and after stalls. */
const afterShownMax = 1;
const stallsMax = 1;
/**
 * Maximum interval between two trial runs, which replace probes on paths that cannot be probed, in milliseconds (design, 13: 1 s to 15 s
 * apart). The first trial finds out that the path is back and releases the others.
 */
const trialMs = 15_000;
/** Maximum decisions of a run beyond its connects and waits. Normally each decision leads to one of them, or to a backoff. */
const inVainMax = 5;
/** Time for which an overload that one credential received also holds others back, in milliseconds. */
const overloadOthersMs = 5_000;

/** Judges a diary. */
export const judge = (diary: Diary): ReadonlyArray<Judgement> => {
  const runs = [...diary.runs.values()];
  const count = (name: string, cases: ReadonlyArray<string>, unit: string): Judgement => ({
    name,
    found: cases.length,
    most: 0,
    unit,
    first: cases[0],
  });
  const groups = Map.groupBy(runs, ({ may }) => may.group?.id);
  const lost = runs.filter((run) => isLost(run, groups)).map(toldEnd);
  const effects = [...diary.effects].filter(([, times]) => times > 1).map(([key, times]) => `${key} ${times} times`);
  const twice = runs.filter((it) => it.twice.length > 0).map((it) => `${it.run}: ${it.twice.join(", ")}`);
  const missing = runs.filter((it) => it.missing.length > 0).map((it) => `${it.run}: ${it.missing.join(", ")}`);
  const needless = runs.flatMap((run) =>
    run.questions
      .filter((question, at) => !isNeeded(diary, groups, run, question, run.questions.slice(0, at)))
      .map((it) => toldAsk(run, it)),
  );
  return [
    count("requirements of a world", missingOf(diary, runs), "missing"),
    count("lost", lost, "runs"),
    count("repeated effects", effects, "effects"),
    count("repeated text", twice, "runs"),
    count("missing text", missing, "runs"),
    count("needless questions", needless, "questions"),
    count("decisions without effect", runs.filter(isInVain).map(toldVain), "runs"),
    extra(runs),
    ...returnsOf(diary),
    count("requests during an announced wait", findHeldRequests(diary, runs), "requests"),
  ];
};

/** Explains why a world proves nothing: no request was sent, or nothing went wrong. */
const missingOf = ({ departures, refusals }: Diary, runs: ReadonlyArray<RunEntry>): ReadonlyArray<string> => {
  const requests = runs.flatMap((run) => run.requests);
  const hasTrouble = departures.length > 0 || refusals.length > 0 || requests.some(isBroken);
  return [
    ...(requests.length === 0 ? ["no run sent a request"] : []),
    ...(hasTrouble ? [] : ["no path went down, no provider refused and no response broke"]),
  ];
};

const toldEnd = (run: RunEntry): string =>
  `${run.run} (${run.style}) from ${seconds(run.from)} on: ${run.end} ${run.why}; ${run.requests.map(toldRequest).join(", ")}`;

const toldVain = (run: RunEntry): string =>
  `${run.decisions} decisions, ${run.connects} connects, ${run.waits} waits of ${toldEnd(run)}`;

const toldAsk = (run: RunEntry, { at, rule }: AskedQuestion): string =>
  `${run.run} (${run.style}, may ${JSON.stringify(run.may)}) at ${seconds(at)}: ${rule}; ${run.requests.map(toldRequest).join(", ")}`;

const toldRequest = ({ answered, at, cut, reached, refused }: SentRequest): string =>
  `${seconds(at)} ${refused ? "refused" : cut === "no" ? (answered ? "answered" : reached ? "reached" : "sent") : `cut (${cut})`}`;

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;

type Groups = ReadonlyMap<string | undefined, ReadonlyArray<RunEntry>>;

/** True if a run was lost. A run that its own failures ended by its budget is not lost. */
const isLost = (run: RunEntry, groups: Groups): boolean =>
  run.end === "open" ||
  (run.end === "lost" && !(run.rule === budgetRule && isSpent(groups, run, run.to ?? 0, freshSince(run.questions))));

const budgetRule = "budget_exhausted";

/** The start of the current budget: the last answer "retry", which resets it. "continue" does not (DESIGN section 6). */
const freshSince = (questions: ReadonlyArray<AskedQuestion>): number =>
  questions.findLast(({ answer }) => answer === "retry")?.at ?? Number.NEGATIVE_INFINITY;

/** True if a written request failed by itself, without a refusal. A request that was never sent explains nothing. */
const isBroken = ({ answered, cut, refused }: SentRequest): boolean => !refused && (!answered || cut !== "no");

/** True if the run had more refusals or breaks since a moment than it may retry, or if its group's retries are used up. */
const isSpent = (groups: Groups, { may, requests }: RunEntry, at: number, since: number): boolean => {
  const own = requests.filter((it) => it.at > since && it.at <= at);
  if (own.filter(({ refused }) => refused).length > may.refusals) return true;
  if (own.filter(isBroken).length > may.breaks) return true;
  if (may.group === undefined) return false;
  const members = groups.get(may.group.id) ?? [];
  const failed = members.flatMap((it) => it.requests).filter((it) => it.at <= at && (it.refused || isBroken(it)));
  // Failures that a person was asked about were not retried automatically.
  const asked = members.flatMap((it) => it.questions).filter((it) => it.at < at);
  return failed.length - asked.length > may.group.retries;
};

/**
 * True if a run may ask: only a person may withdraw what was shown, or its requests failed more often than it retries automatically.
 */
const isNeeded = (
  diary: Diary,
  groups: Groups,
  run: RunEntry,
  { at, reasoned, rule, shown }: AskedQuestion,
  before: ReadonlyArray<AskedQuestion>,
): boolean => {
  if (shown && rule !== budgetRule) return true;
  const since = freshSince(before);
  if (isSpent(groups, run, at, since)) return true;
  const broke = run.requests.filter((it) => it.at > since && it.at <= at && isBroken(it));
  const stalls = broke.filter((it) => it.cut === "silent" || (!it.answered && isUnnoticed(diary, it)));
  if (stalls.length > stallsMax || (reasoned && broke.length > afterShownMax)) return true;
  // A silent stream lasts as long as a budget does from its first failure: five minutes.
  const [first] = run.requests.filter((it) => it.at > since && it.at <= at && (it.refused || isBroken(it)));
  return rule === budgetRule && broke.some((it) => it.cut === "silent" && it !== first);
};

/** Delay after which the path of a missing head is probed, in milliseconds. */
const headLateMs = 10_000;

/** True if no probe finds the outage that a request ran into: the path cannot be probed, or is back before the probe. It stalls. */
const isUnnoticed = ({ departures, returns, unprobed }: Diary, { at, path }: SentRequest): boolean => {
  if (unprobed.has(path)) return true;
  const left = departures.find((it) => it.path === path && it.at >= at)?.at ?? Number.POSITIVE_INFINITY;
  const back = returns.find((it) => it.path === path && it.at > left)?.at ?? Number.POSITIVE_INFINITY;
  return back <= at + headLateMs;
};

/** True if a run kept deciding without connecting or waiting. */
const isInVain = ({ connects, decisions, waits }: RunEntry): boolean => decisions > connects + waits + inVainMax;

/** Counts requests that no cut, refusal or answer explains. */
const extra = (runs: ReadonlyArray<RunEntry>): Judgement => {
  const extraOf = (run: RunEntry): number => {
    const reached = run.requests.filter((it) => it.reached);
    const explained = reached.filter(({ cut, refused }) => cut !== "no" || refused).length;
    const words = run.questions.filter(({ answer }) => answer === "retry" || answer === "continue").length;
    return Math.max(0, reached.length - 1 - explained - words);
  };
  const all = runs.map((run) => ({ run, extra: extraOf(run) }));
  const sum = all.reduce((total, it) => total + it.extra, 0);
  const [worst] = all.filter((it) => it.extra > 0).toSorted((one, other) => other.extra - one.extra);
  const found = runs.length === 0 ? 0 : sum / runs.length;
  const first = found > extraMax && worst !== undefined ? toldEnd(worst.run) : undefined;
  return { name: "requests beyond those cut or refused", found, most: extraMax, unit: "a run", first };
};

/** The interval at which a path is probed after this outage. A connect into a black hole is retried every two seconds. */
const spacingMs = ({ awayMs, kind, path }: PathReturn, unprobed: ReadonlySet<number>): number => {
  if (unprobed.has(path)) return trialMs;
  const planned = awayMs < 60_000 ? 1_000 : 5_000;
  return kind === "black_hole" ? Math.max(planned, 2_000) : planned;
};

/** Maximum time until all waiting runs have sent their request. Without probes, a trial run must first find that the path is back. */
const crowdMaxMs = ({ path }: PathReturn, unprobed: ReadonlySet<number>): number =>
  unprobed.has(path) ? crowdMs + 1.5 * trialMs + noticeMs : crowdMs;

const returnsOf = (diary: Diary): ReadonlyArray<Judgement> => {
  const probed = diary.returns.filter(({ path }) => !diary.unprobed.has(path));
  const unprobed = diary.returns.filter(({ path }) => diary.unprobed.has(path));
  return [
    ...(probed.length === 0 && unprobed.length > 0 ? [] : judgeReturns(diary, probed, "")),
    ...(unprobed.length === 0 ? [] : judgeReturns(diary, unprobed, " without probes")),
  ];
};

const judgeReturns = (diary: Diary, returns: ReadonlyArray<PathReturn>, where: string): ReadonlyArray<Judgement> => {
  const firsts: Array<{ readonly over: number; readonly told: string }> = [];
  const crowds: Array<{ readonly ms: number; readonly told: string; readonly runs: number }> = [];
  for (const it of returns) {
    const allowed = 1.5 * spacingMs(it, diary.unprobed) + noticeMs;
    const most = crowdMaxMs(it, diary.unprobed);
    const free = it.waiting.filter((run) => !isCooling(diary, run, it.at, it.at + most));
    if (free.length === 0 || !isQuiet(diary, it, most)) continue;
    const after = free.map((run) => firstAfter(run, it.at) - it.at);
    const first = Math.min(...after);
    const last = Math.max(...after);
    const told = `path ${it.path} back at ${seconds(it.at)} after ${seconds(it.awayMs)} (${it.kind}), ${free.length} waited`;
    firsts.push({
      over: first - allowed,
      told: `${told}: first request after ${seconds(first)}, allowed ${seconds(allowed)}`,
    });
    crowds.push({ ms: last, runs: free.length, told: `${told}: last request after ${seconds(last)}` });
  }
  const worstFirst = firsts.toSorted((one, other) => other.over - one.over)[0];
  const worstCrowd = crowds.toSorted((one, other) => other.ms - one.ms)[0];
  const most = Math.max(0, ...crowds.map(({ runs }) => runs));
  const mostMs = Math.max(crowdMs, ...returns.map((it) => crowdMaxMs(it, diary.unprobed)));
  return [
    {
      name: `worst delay of a first request beyond its limit${where}`,
      found: Math.max(0, worstFirst?.over ?? 0),
      most: 0,
      unit: "ms",
      first: worstFirst !== undefined && worstFirst.over > 0 ? worstFirst.told : undefined,
    },
    {
      name: `time until the last of up to ${most} waiting runs sent its request${where}`,
      found: worstCrowd?.ms ?? 0,
      most: mostMs,
      unit: "ms",
      first: worstCrowd !== undefined && worstCrowd.ms > mostMs ? worstCrowd.told : undefined,
    },
  ];
};

/** The time of the first request after a moment. A run that ended without one no longer waits. */
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

/** Requests that started although their scope had received a retry time. A request that was already connecting does not count. */
const findHeldRequests = (diary: Diary, runs: ReadonlyArray<RunEntry>): ReadonlyArray<string> => {
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
      .map((it) => `${it.run} at ${seconds(it.at)}: ${kind} announced at ${seconds(at)} until ${seconds(until)}`);
  });
};
