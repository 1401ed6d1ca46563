/**
 * Reads from a run's record what is due when no process drives it, because its process died or left it to an answer.
 *
 * Pure: `recover` and `StreamProcessor.takeUp` act on the same word, so that a run means the same to both.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";
import type { Choice } from "../domain/Decision.ts";
import type { Failure } from "../domain/Failure.ts";
import { resumesMax } from "../domain/Limits.ts";
import * as Runs from "../domain/RunFacts.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import * as Facts from "../facts/Facts.ts";
import { atMost, join, joined } from "../facts/Growth.ts";
import { runAfter } from "../policy/Rules.ts";
import type { AttemptRecord, QuestionRecord, RunRecord } from "./RunRecord.ts";

/** What has to be decided of an orphan: everything that `decide` takes but the jitter. */
export interface OrphanInput {
  readonly facts: AttemptFacts;
  readonly failure: Failure;
  readonly run: Runs.RunFacts;
  readonly budget: Runs.Budget;
}

/**
 * What is due. `decide`: what broke is not decided, or no process has acted on `standing`, a question or a stop that was
 * decided on just these facts. `waiting`: the question is open. `answered`: the answer is not carried out. `offered`: a retry
 * was decided, and has not started.
 */
export type Due =
  | {
      readonly _tag: "decide";
      /** The attempt that asked for the response. */
      readonly attempt: AttemptRecord;
      readonly input: OrphanInput;
      readonly standing?: RunIncident;
    }
  | { readonly _tag: "waiting"; readonly question: QuestionRecord; readonly incident: RunIncident }
  | {
      readonly _tag: "answered";
      readonly question: QuestionRecord;
      readonly choice: Choice;
      readonly incident: RunIncident;
    }
  | { readonly _tag: "offered"; readonly incident: RunIncident };

/**
 * Says what is due of a run that no process drives.
 *
 * @param record a run that has not ended
 * @returns undefined when there is nothing to decide: the record has no attempt, or the run has ended
 */
export const due = (record: RunRecord): Due | undefined => {
  const [first, ...resumed] = lastResponse(record);
  if (first === undefined || record.state === "ended") return undefined;
  const response = { first, resumed, facts: factsOf([first, ...resumed]) };
  const asked = newestQuestion(record, resumed.at(-1) ?? first);
  return (asked && dueOfQuestion(asked, response)) ?? undecided(record, response, asked);
};

/**
 * Says what has to be decided of a run that no process drives and that its user has cancelled, whatever is due otherwise.
 *
 * @returns undefined where nothing was asked for, or the run has ended
 */
export const cancelled = (record: RunRecord): Extract<Due, { readonly _tag: "decide" }> | undefined => {
  const [first, ...resumed] = lastResponse(record);
  if (first === undefined || record.state === "ended") return undefined;
  const response = { first, resumed, facts: factsOf([first, ...resumed]) };
  const broke = lastBreak(record, first, newestQuestion(record, resumed.at(-1) ?? first));
  const { attempt, input } = decides(record, response, broke, false);
  return { _tag: "decide", attempt, input: { ...input, run: { ...input.run, user_cancelled: true } } };
};

/** Whether `StreamProcessor.takeUp` can ever take the run: without the digest of its transcript it refuses every request. */
export const isResumable = ({ transcript }: RunRecord): boolean => transcript !== undefined;

/**
 * The record of a run whose process is gone, its open wait closed: what the process has waited counts as long as it provably lived.
 *
 * @param aliveAt when the process last said that it lives, by its own wall clock; undefined where nothing says so
 */
export const waitedUntil = (record: RunRecord, aliveAt: number | undefined): RunRecord => {
  const { waiting, ...rest } = record;
  if (waiting === undefined) return record;
  const ms = Math.max(0, (aliveAt ?? waiting.since) - waiting.since);
  return { ...rest, waited_ms: (rest.waited_ms ?? 0) + ms };
};

/** Whether the run was taken over as often as it may be since a person last had a word on it. */
export const isSpent = ({ resumes, resumes_at_answer = 0 }: RunRecord): boolean =>
  resumes - resumes_at_answer >= resumesMax;

/**
 * The attempts that read the run's last response: the one that asked for it, those that resumed it, and those that join their text
 * to it. Empty where the record has no attempt.
 */
export const lastResponse = (record: RunRecord): ReadonlyArray<AttemptRecord> => {
  const first = record.attempts.findLastIndex(({ request, seam }) => request !== "resume" && seam === undefined);
  return record.attempts.slice(Math.max(first, 0));
};

/**
 * The facts of an attempt whose process is gone. Its request may have been sent, and a call that was started and has not
 * settled is of unknown outcome. The terminal marker counts no more: what came before it and was not handed over is lost, and
 * a run without an end on record has told no caller that its response is whole (L4, L5).
 */
export const afterCrash = (facts: AttemptFacts): AttemptFacts => ({
  ...facts,
  terminal_seen: false,
  delivery: facts.delivery === "not_sent" ? "ambiguous" : facts.delivery,
  tools: facts.tools.map((row) =>
    row.executor === "runtime" && row.phase === "dispatched" ? { ...row, phase: "outcome_unknown" as const } : row,
  ),
});

/**
 * Goes on from the facts of an attempt whose process is gone, as the crash has left them.
 *
 * @param successor what the process that takes the run over says of it; by default that nothing can be discarded
 */
export const restored = (
  facts: AttemptFacts,
  successor: Pick<Facts.FactsOptions, "discardable" | "boundaries"> = { discardable: false, boundaries: [] },
): Facts.FactsFold =>
  Facts.make({
    sideEffects: facts.side_effects,
    ...successor,
    guarded: facts.side_effects?.guarded === true,
    from: afterCrash(facts),
  });

/**
 * Whether nothing has happened since an incident was decided, except that its process went away. What a crash alone makes of
 * the facts was known when the incident was decided.
 *
 * @param facts what is known now, after a crash or not
 */
export const stands = (facts: AttemptFacts, incident: RunIncident): boolean =>
  atMost({ ...facts, terminal_seen: false }, afterCrash(incident.facts));

/**
 * How many incidents a run has had: the next one has the number after it.
 *
 * The ids are looked at too, because a run counts on over an incident whose write was lost, and an id that is on record
 * is never given twice.
 */
export const incidentsSoFar = ({ incidents, incidents_omitted }: RunRecord): number =>
  incidents.reduce((most, { id }) => {
    const number = Number(id.slice(id.lastIndexOf(".") + 1));
    return Number.isSafeInteger(number) ? Math.max(most, number) : most;
  }, incidents.length + incidents_omitted);

/** The run's last response as it stands after the crash. */
interface Response {
  readonly first: AttemptRecord;
  readonly resumed: ReadonlyArray<AttemptRecord>;
  readonly facts: AttemptFacts;
}

/** The newest question with what it asks about. */
interface Asked {
  readonly question: QuestionRecord;
  readonly incident: RunIncident;
}

const factsOf = ([first, ...resumed]: readonly [AttemptRecord, ...Array<AttemptRecord>]): AttemptFacts =>
  joined([afterCrash(first.facts), ...resumed.map((attempt) => afterCrash(attempt.facts))]);

/** The newest question, unless an attempt was started or something else was decided after it. */
const newestQuestion = (record: RunRecord, last: AttemptRecord): Asked | undefined => {
  const question = record.questions.at(-1);
  const incident = newestIncident(record);
  if (question === undefined || incident === undefined || question.incident !== incident.id) return undefined;
  return (question.attempt ?? incident.attempt) >= last.attempt ? { question, incident } : undefined;
};

/** The newest incident that was acted on, or has to be. A late one is neither. */
export const newestIncident = (record: RunRecord): RunIncident | undefined =>
  record.incidents.findLast(({ status }) => status !== "late");

const dueOfQuestion = ({ incident, question }: Asked, { facts }: Response): Due | undefined => {
  const { answer } = question;
  if (answer === undefined) return stands(facts, incident) ? { _tag: "waiting", question, incident } : undefined;
  return counts(answer, facts, incident) ? { _tag: "answered", question, choice: answer, incident } : undefined;
};

/**
 * Whether an answer is still to be carried out. An end is an end. A word on calls counts until none is of unknown outcome. An
 * answer that starts something counts for the facts that it was given on: the person did not agree to repeat what came after.
 */
const counts = (answer: Choice, facts: AttemptFacts, incident: RunIncident): boolean => {
  switch (answer) {
    case "stop":
    case "accept":
      return true;
    case "it_ran":
    case "it_did_not_run":
      return facts.tools.some((row) => row.executor === "runtime" && row.phase === "outcome_unknown");
    case "retry":
    case "continue":
      return stands(facts, incident);
  }
};

const undecided = (record: RunRecord, response: Response, asked: Asked | undefined): Due => {
  const { facts, first } = response;
  const broke = lastBreak(record, first, asked);
  // A run that its own caller left is no failure of the provider: seen from a new process it is a crash like any other. So
  // is a response that was whole in a process that is gone.
  const left = broke !== undefined && runAfter(broke.decision.rule) !== "stopped";
  const standing = broke?.status === "open" && !left && stands(facts, broke) ? broke : undefined;
  const automatic = standing?.decision.action === "auto_retry_once";
  const spent = isSpent(record);
  // A cursor dies with its process: a response that was to be resumed by it is decided anew, without it.
  if (standing !== undefined && automatic && standing.decision.mode !== "resume" && !spent) {
    return { _tag: "offered", incident: standing };
  }
  const decided = decides(record, response, broke, left);
  return { ...decided, ...(standing === undefined || automatic ? {} : { standing }) };
};

/**
 * What is decided of a response.
 *
 * @param broke the incident that it ended with
 * @param left that incident says no more than that its own caller left
 */
const decides = (
  record: RunRecord,
  response: Response,
  broke: RunIncident | undefined,
  left: boolean,
): Omit<Extract<Due, { readonly _tag: "decide" }>, "standing"> => {
  const { facts, first, resumed } = response;
  const run = broke?.run ?? (resumed.at(-1) ?? first).run ?? unknownRun;
  const budget = record.budget ?? Runs.defaultBudget;
  return {
    _tag: "decide",
    attempt: first,
    input: {
      facts: broke === undefined ? facts : withFactsOf(broke, response),
      failure: broke === undefined || left ? { kind: "crashed" } : broke.failure,
      run: {
        ...(isSpent(record) ? exhausted(run, budget) : run),
        mode: first.mode,
        resumable: false,
        throttle_wait_ms: 0,
        // What the process knew of its path is gone with it; what the run has waited is not.
        path: "up",
        cooldown_ms: 0,
        // Which routes are left is known to a process that has them.
        next_route: "none",
        waited_ms: record.waited_ms ?? 0,
      },
      budget,
    },
  };
};

/** The incident that the last response ended with, if that is on record; one that was acted on led to the next attempt. */
const lastBreak = (record: RunRecord, first: AttemptRecord, asked: Asked | undefined): RunIncident | undefined => {
  const newest = newestIncident(record);
  if (newest === undefined || newest.attempt < first.attempt) return undefined;
  return newest.status === "open" || newest === asked?.incident ? newest : undefined;
};

/**
 * The response's facts with those of its incident, which may say more: of two writes the first can be lost.
 *
 * An incident of an attempt that resumed knows that attempt's own calls, any other one the whole response's.
 */
const withFactsOf = (incident: RunIncident, { facts, first, resumed }: Response): AttemptFacts => {
  if (!resumed.some(({ attempt }) => attempt === incident.attempt)) return join(facts, afterCrash(incident.facts));
  return factsOf([
    first,
    ...resumed.map((it) => (it.attempt === incident.attempt ? { ...it, facts: join(it.facts, incident.facts) } : it)),
  ]);
};

/** A run that was taken over too often does nothing by itself any more: it asks, as a run does whose budget is spent. */
const exhausted = (run: Runs.RunFacts, budget: Runs.Budget): Runs.RunFacts => ({
  ...run,
  auto_retries: Math.max(run.auto_retries, budget.max_auto_retries),
  not_processed_retries: Math.max(run.not_processed_retries, budget.max_not_processed),
});

/** Where the record does not say what a run could do, it could do nothing that permits more. */
const unknownRun: Runs.RunFacts = { ...Runs.fresh, discardable: false };
