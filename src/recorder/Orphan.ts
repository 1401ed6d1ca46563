/**
 * Reads from a run's record what is due when nobody drives it: its process died, or left it to an answer.
 *
 * Pure: `recover` and `StreamProcessor.resume` act on the same word, so that a run means the same to both.
 */
import type { AttemptFacts } from "../domain/Attempt.ts";
import type { Choice } from "../domain/Decision.ts";
import type { Failure } from "../domain/Failure.ts";
import * as Runs from "../domain/Run.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import { atMost, join } from "../policy/FactsOrder.ts";
import { joined } from "../policy/ResponseFacts.ts";
import { type AttemptRecord, openQuestion, type QuestionRecord, type RunRecord } from "./RunRecord.ts";

/** What has to be decided of an orphan: everything that `decide` takes but the jitter. */
export interface OrphanInput {
  readonly facts: AttemptFacts;
  readonly failure: Failure;
  readonly run: Runs.RunFacts;
  readonly budget: Runs.Budget;
}

/**
 * What is due. `decide`: nobody has decided what broke. `waiting`: its question is open. `answered`: it was answered, and
 * nobody acted on that. `offered`: a retry was decided, and nobody has started it.
 */
export type Due =
  | { readonly _tag: "decide"; readonly attempt: AttemptRecord; readonly input: OrphanInput }
  | { readonly _tag: "waiting"; readonly question: QuestionRecord; readonly incident: RunIncident }
  | {
      readonly _tag: "answered";
      readonly question: QuestionRecord;
      readonly choice: Choice;
      readonly incident: RunIncident;
    }
  | { readonly _tag: "offered"; readonly incident: RunIncident };

/**
 * The facts of an attempt whose process is gone: the request may have been sent, and a call that was started and has no
 * outcome has one that nobody knows.
 */
export const afterCrash = (facts: AttemptFacts): AttemptFacts => ({
  ...facts,
  delivery: facts.delivery === "not_sent" ? "ambiguous" : facts.delivery,
  tools: facts.tools.map((row) =>
    row.executor === "runtime" && row.phase === "dispatched" ? { ...row, phase: "outcome_unknown" as const } : row,
  ),
});

/**
 * The attempts that read the run's last response: the one that asked for it, and those that resumed it. Empty where the
 * record has no attempt.
 */
export const lastResponse = (record: RunRecord): ReadonlyArray<AttemptRecord> => {
  const first = record.attempts.findLastIndex((attempt) => attempt.request !== "resume");
  return record.attempts.slice(Math.max(first, 0));
};

/**
 * Says what is due of a run that nobody drives.
 *
 * @param record a run that has not ended
 * @returns undefined when there is nothing to decide: the record has no attempt, or the run has ended
 */
export const due = (record: RunRecord): Due | undefined => {
  const [first, ...resumed] = lastResponse(record);
  if (first === undefined || record.state === "ended") return undefined;
  const facts = joined([afterCrash(first.facts), ...resumed.map((attempt) => afterCrash(attempt.facts))]);
  const last = resumed.at(-1) ?? first;
  const question = record.questions.at(-1);
  const asked = record.incidents.find(({ id }) => id === question?.incident);
  if (question !== undefined && asked !== undefined && (question.attempt ?? asked.attempt) >= last.attempt) {
    if (question.answer !== undefined && !carriedOut(record, question, facts)) {
      return { _tag: "answered", question, choice: question.answer, incident: asked };
    }
    if (openQuestion(record) === question && record.state !== "live" && atMost(facts, asked.facts)) {
      return { _tag: "waiting", question, incident: asked };
    }
  }
  return undecided(record, first, last, facts);
};

const undecided = (record: RunRecord, first: AttemptRecord, last: AttemptRecord, facts: AttemptFacts): Due => {
  const newest = record.incidents.findLast(({ status }) => status !== "late");
  const open = newest?.status === "open" && newest.attempt >= first.attempt ? newest : undefined;
  // What its own caller left behind is no failure of the provider: seen from a new process it is a crash like any other.
  const left = open?.decision.rule === "caller_interrupted";
  if (open !== undefined && !left && open.decision.action === "auto_retry_once" && atMost(facts, open.facts)) {
    return { _tag: "offered", incident: open };
  }
  const failure: Failure = open === undefined || left ? { kind: "crashed" } : open.failure;
  const run = (open === undefined || left ? last.run : open.run) ?? unknownRun;
  return {
    _tag: "decide",
    attempt: first,
    input: {
      facts: open === undefined || left ? facts : join(facts, open.facts),
      failure,
      run: { ...run, mode: first.mode, resumable: false, throttle_wait_ms: 0 },
      budget: record.budget ?? Runs.defaultBudget,
    },
  };
};

/** A person's word on calls is carried out once no call is of unknown outcome; any other answer starts or ends something. */
const carriedOut = (record: RunRecord, question: QuestionRecord, facts: AttemptFacts): boolean => {
  if (question.answer !== "it_ran" && question.answer !== "it_did_not_run") return false;
  const newer = record.incidents.findLast(({ status }) => status !== "late");
  return (
    newer?.id !== question.incident ||
    !facts.tools.some((row) => row.executor === "runtime" && row.phase === "outcome_unknown")
  );
};

/** Where the record does not say what a run could do, it could do nothing that permits more. */
const unknownRun: Runs.RunFacts = { ...Runs.fresh, discardable: false };
