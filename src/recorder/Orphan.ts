/**
 * Finds the next step of an *orphan*: a run that no process owns, because its process died or parked it (released it before its end). The
 * record of the run is the only source.
 *
 * All functions are pure. `recover` and `StreamProcessor.takeUp` both use them, so they always agree on a run.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";
import type { Choice } from "../domain/Decision.ts";
import type { Failure } from "../domain/Failure.ts";
import { resumesMax } from "../domain/Limits.ts";
import * as Runs from "../domain/RunFacts.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import * as Facts from "../facts/Facts.ts";
import { canGrowInto, join, joinAttempts } from "../facts/Growth.ts";
import { runStateAfter } from "../policy/Rules.ts";
import type { AttemptRecord, QuestionRecord, RunRecord } from "./RunRecord.ts";

/** The input of a decision on an orphan: everything that `decide` takes except the jitter. */
export interface OrphanInput {
  readonly facts: AttemptFacts;
  readonly failure: Failure;
  readonly run: Runs.RunFacts;
  readonly budget: Runs.Budget;
}

/**
 * The next step of an orphan. `decide`: there is no decision on the break yet, or the decision on exactly these facts (`standing`, a
 * question or a stop) was not carried out. `waiting`: the question is open. `answered`: the answer was not carried out. `offered`: a retry
 * was decided and has not started.
 */
export type Due =
  | {
      readonly _tag: "decide";
      /** The attempt that requested the response. */
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
 * Returns the next step of a run that no process owns.
 *
 * @returns undefined if the run has ended or its record has no attempt
 */
export const findDueStep = (record: RunRecord): Due | undefined => {
  const [first, ...resumed] = lastResponse(record);
  if (first === undefined || record.state === "ended") return undefined;
  const response = { first, resumed, facts: factsOf([first, ...resumed]) };
  const asked = newestQuestion(record, resumed.at(-1) ?? first);
  return (asked && findQuestionStep(asked, response)) ?? decideUndecided(record, response, asked);
};

/**
 * Returns the `decide` step of a run that no process owns and that its user has cancelled, regardless of any other step that is due.
 *
 * @returns undefined if the record has no attempt or the run has ended
 */
export const decideCancel = (record: RunRecord): Extract<Due, { readonly _tag: "decide" }> | undefined => {
  const [first, ...resumed] = lastResponse(record);
  if (first === undefined || record.state === "ended") return undefined;
  const response = { first, resumed, facts: factsOf([first, ...resumed]) };
  const broke = lastBreak(record, first, newestQuestion(record, resumed.at(-1) ?? first));
  const { attempt, input } = buildDecision(record, response, broke, false);
  return { _tag: "decide", attempt, input: { ...input, run: { ...input.run, user_cancelled: true } } };
};

/**
 * True if `StreamProcessor.takeUp` can ever take the run. It refuses a run without a transcript digest, because it could not compare the
 * caller's request with the original one.
 */
export const isResumable = ({ transcript }: RunRecord): boolean => transcript !== undefined;

/**
 * Closes the open wait of a run whose process died. The wait counts until the process was last known to be alive.
 *
 * @param aliveAt last renewal of the process's lease, by the wall clock of that process; undefined if unknown
 */
export const closeWait = (record: RunRecord, aliveAt: number | undefined): RunRecord => {
  const { waiting, ...rest } = record;
  if (waiting === undefined) return record;
  const ms = Math.max(0, (aliveAt ?? waiting.since) - waiting.since);
  return { ...rest, waited_ms: (rest.waited_ms ?? 0) + ms };
};

/** True if the run has reached the maximum number of takeovers since the last human answer. */
export const isSpent = ({ resumes, resumes_at_answer = 0 }: RunRecord): boolean =>
  resumes - resumes_at_answer >= resumesMax;

/**
 * Returns the attempts that read the run's last response: first the attempt that requested it, then the attempts that resumed it or
 * continued its text. Empty if the record has no attempt.
 */
export const lastResponse = (record: RunRecord): ReadonlyArray<AttemptRecord> => {
  const first = record.attempts.findLastIndex(({ request, seam }) => request !== "resume" && seam === undefined);
  return record.attempts.slice(Math.max(first, 0));
};

/**
 * Returns the facts of an attempt after its process died. Its request may have been sent, and a dispatched call has an unknown outcome. The
 * terminal marker no longer counts: output before it may be lost, and no end is on record, so no caller was told that the response is
 * complete (L4, L5).
 */
export const assumeCrash = (facts: AttemptFacts): AttemptFacts => ({
  ...facts,
  terminal_seen: false,
  delivery: facts.delivery === "not_sent" ? "ambiguous" : facts.delivery,
  tools: facts.tools.map((row) =>
    row.executor === "runtime" && row.phase === "dispatched" ? { ...row, phase: "outcome_unknown" as const } : row,
  ),
});

/**
 * Rebuilds the collected facts of an attempt whose process died, so that more facts can be added to them.
 *
 * @param successor options of the process that takes the run over; by default nothing is discardable
 */
export const restoreFacts = (
  facts: AttemptFacts,
  successor: Pick<Facts.FactsOptions, "discardable" | "boundaries"> = { discardable: false, boundaries: [] },
): Facts.FactsFold =>
  Facts.make({
    sideEffects: facts.side_effects,
    ...successor,
    guarded: facts.side_effects?.guarded === true,
    from: assumeCrash(facts),
  });

/**
 * True if nothing has happened since an incident was decided, except that its process died. Changes of the facts that only a crash causes
 * do not count.
 *
 * @param facts current facts, before or after a crash
 */
export const isUnchangedSince = (facts: AttemptFacts, incident: RunIncident): boolean =>
  canGrowInto({ ...facts, terminal_seen: false }, assumeCrash(incident.facts));

/**
 * Returns the number of the run's last incident; the next incident gets the following number. Also reads the ids, because the write of an
 * earlier incident may have been lost, and a recorded id must never be reused.
 */
export const lastIncidentNumber = ({ incidents, incidents_omitted }: RunRecord): number =>
  incidents.reduce((most, { id }) => {
    const number = Number(id.slice(id.lastIndexOf(".") + 1));
    return Number.isSafeInteger(number) ? Math.max(most, number) : most;
  }, incidents.length + incidents_omitted);

interface Response {
  readonly first: AttemptRecord;
  readonly resumed: ReadonlyArray<AttemptRecord>;
  readonly facts: AttemptFacts;
}

interface Asked {
  readonly question: QuestionRecord;
  readonly incident: RunIncident;
}

const factsOf = ([first, ...resumed]: readonly [AttemptRecord, ...Array<AttemptRecord>]): AttemptFacts =>
  joinAttempts([assumeCrash(first.facts), ...resumed.map((attempt) => assumeCrash(attempt.facts))]);

/** Returns the newest question, unless an attempt started or another decision was made after it. */
const newestQuestion = (record: RunRecord, last: AttemptRecord): Asked | undefined => {
  const question = record.questions.at(-1);
  const incident = newestIncident(record);
  if (question === undefined || incident === undefined || question.incident !== incident.id) return undefined;
  return (question.attempt ?? incident.attempt) >= last.attempt ? { question, incident } : undefined;
};

/** Returns the newest incident whose decision applied. Late incidents are skipped, because their decisions are not carried out. */
export const newestIncident = (record: RunRecord): RunIncident | undefined =>
  record.incidents.findLast(({ status }) => status !== "late");

const findQuestionStep = ({ incident, question }: Asked, { facts }: Response): Due | undefined => {
  const { answer } = question;
  if (answer === undefined)
    return isUnchangedSince(facts, incident) ? { _tag: "waiting", question, incident } : undefined;
  return isAnswerDue(answer, facts, incident) ? { _tag: "answered", question, choice: answer, incident } : undefined;
};

/**
 * True if an answer still has to be carried out. This is always so for an answer that ends the run, and for a verdict on calls if a call
 * has an unknown outcome. A retry or continuation is carried out only if the facts have not grown since the person saw them, because the
 * person did not agree to repeat later effects.
 */
const isAnswerDue = (answer: Choice, facts: AttemptFacts, incident: RunIncident): boolean => {
  switch (answer) {
    case "stop":
    case "accept":
      return true;
    case "it_ran":
    case "it_did_not_run":
      return facts.tools.some((row) => row.executor === "runtime" && row.phase === "outcome_unknown");
    case "retry":
    case "continue":
      return isUnchangedSince(facts, incident);
  }
};

const decideUndecided = (record: RunRecord, response: Response, asked: Asked | undefined): Due => {
  const { facts, first } = response;
  const broke = lastBreak(record, first, asked);
  // A caller that left its run did not cause a provider failure, so a new process treats the run as an ordinary crash. The same applies to
  // a response that was complete when its process died.
  const left = broke !== undefined && runStateAfter(broke.decision.rule) !== "stopped";
  const standing = broke?.status === "open" && !left && isUnchangedSince(facts, broke) ? broke : undefined;
  const automatic = standing?.decision.action === "auto_retry_once";
  const spent = isSpent(record);
  // A resume needs the provider's cursor, which is lost with the process. So a planned resume is decided again, without a cursor.
  if (standing !== undefined && automatic && standing.decision.mode !== "resume" && !spent) {
    return { _tag: "offered", incident: standing };
  }
  const decided = buildDecision(record, response, broke, left);
  return { ...decided, ...(standing === undefined || automatic ? {} : { standing }) };
};

/**
 * Builds the input of the decision on an interrupted response, from the facts that are on record.
 *
 * @param broke the incident that ended the response
 * @param left true if that incident only says that the caller left
 */
const buildDecision = (
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
        ...(isSpent(record) ? exhaustRetries(run, budget) : run),
        mode: first.mode,
        resumable: false,
        throttle_wait_ms: 0,
        // The dead process's knowledge of the path is lost, but the waited time is on record.
        path: "up",
        cooldown_ms: 0,
        // The process that takes the run over knows its own routes.
        next_route: "none",
        waited_ms: record.waited_ms ?? 0,
      },
      budget,
    },
  };
};

/**
 * Returns the recorded incident that ended the last response. An incident whose decision was carried out led to the next attempt instead.
 */
const lastBreak = (record: RunRecord, first: AttemptRecord, asked: Asked | undefined): RunIncident | undefined => {
  const newest = newestIncident(record);
  if (newest === undefined || newest.attempt < first.attempt) return undefined;
  return newest.status === "open" || newest === asked?.incident ? newest : undefined;
};

/**
 * Joins the facts of the response with those of its incident. If a write was lost, the facts of the incident may be newer.
 *
 * An incident of a resumed attempt covers only that attempt's calls; any other incident covers the whole response.
 */
const withFactsOf = (incident: RunIncident, { facts, first, resumed }: Response): AttemptFacts => {
  if (!resumed.some(({ attempt }) => attempt === incident.attempt)) return join(facts, assumeCrash(incident.facts));
  return factsOf([
    first,
    ...resumed.map((it) => (it.attempt === incident.attempt ? { ...it, facts: join(it.facts, incident.facts) } : it)),
  ]);
};

/** Exhausts the retry budget of a run that was taken over too often, so that it asks a person. */
const exhaustRetries = (run: Runs.RunFacts, budget: Runs.Budget): Runs.RunFacts => ({
  ...run,
  auto_retries: Math.max(run.auto_retries, budget.max_auto_retries),
  not_processed_retries: Math.max(run.not_processed_retries, budget.max_not_processed),
});

/** Facts assumed for a run whose record has none: the least permissive ones. */
const unknownRun: Runs.RunFacts = { ...Runs.fresh, discardable: false };
