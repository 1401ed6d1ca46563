/**
 * Plans the next step of a run whose process is gone: the entries to write and the resulting state of the run.
 *
 * Pure. A step is one write, so it is taken either completely or not at all, even if the recovering process dies. Each plan reads the
 * pending work from the record again, so no step is taken twice.
 */

import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { Choice, Decision } from "../../domain/Decision.ts";
import type { Evidence, RunIncident } from "../../domain/RunIncident.ts";
import { canGrowInto } from "../../facts/Growth.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import { runStateAfter } from "../../policy/Rules.ts";
import * as CallVerdicts from "../../recorder/CallVerdicts.ts";
import * as End from "../../recorder/End.ts";
import * as Incident from "../../recorder/Incident.ts";
import * as Orphan from "../../recorder/Orphan.ts";
import * as Question from "../../recorder/Question.ts";
import * as RunRecord from "../../recorder/RunRecord.ts";

/** State of a run after its recovery. */
export interface RunStanding {
  /**
   * `offered`: a retry was decided. `answered`: the run's question was answered. Both wait for `StreamProcessor.takeUp`. `asked`:
   * a question was asked. `waiting`: its question was already open. `completed` and `stopped`: the run has ended.
   */
  readonly outcome: "offered" | "answered" | "asked" | "waiting" | "completed" | "stopped";
  /** The rule of the decision. */
  readonly rule?: Decision["rule"];
  /** The revision of the open question. */
  readonly revision?: number;
}

/** The next step. `expire` answers the question with its default. The following step is then planned on the resulting record. */
export type RecoveryStep =
  | { readonly _tag: "write"; readonly entries: ReadonlyArray<RunRecord.Entry>; readonly standing: RunStanding }
  | {
      readonly _tag: "expire";
      readonly question: RunRecord.QuestionRecord;
      readonly choice: Choice;
      readonly standing: RunStanding;
    }
  /** Nothing has to be written, because the run is already in the right state. */
  | { readonly _tag: "keep"; readonly standing: RunStanding };

/** Inputs of a plan in addition to the record. */
export interface PlanOptions {
  /** Wall clock, in milliseconds since the epoch. */
  readonly now: number;
  /** From 0 to 1; spreads the delay of a retry. */
  readonly jitter: number;
  readonly policy: Pick<RecoveryPolicy, "name" | "decide">;
  readonly terms?: Question.QuestionTerms;
  /** True if the user cancelled the run while it had no owner. */
  readonly cancelled?: boolean;
  /** The end reason of a run that would have to continue but cannot. Default `not_resumable`. */
  readonly unresumable?: string;
  /**
   * True if the store was restored to an earlier state. A decision or an answer from that state does not count, so a person is asked again
   * before the run continues.
   */
  readonly restored?: boolean;
}

/**
 * Returns true if the run would continue from its record alone: by a decided retry, an answer, or a question that expires to `retry` or
 * `continue`.
 */
export const canContinueUnasked = (record: RunRecord.RunRecord): boolean => {
  const due = Orphan.findDueStep(record);
  return due !== undefined && findReasonToContinue(due) !== undefined;
};

/** Returns the incident whose decision or answer makes the run continue; undefined if there is none. */
const findReasonToContinue = (due: Orphan.Due): RunIncident | undefined => {
  switch (due._tag) {
    case "decide":
      return undefined;
    case "offered":
      return due.incident;
    case "answered":
      return isRetryOrContinue(due.choice) ? due.incident : undefined;
    case "waiting":
      return due.question.expires_at !== undefined && isRetryOrContinue(Question.expiryChoice(due.question))
        ? due.incident
        : undefined;
  }
};

const isRetryOrContinue = (choice: Choice): boolean => choice === "retry" || choice === "continue";

/**
 * Plans the next step of a run without an owner.
 *
 * @param record the current record of the run, which has not ended
 */
export const planNext = (record: RunRecord.RunRecord, options: PlanOptions): RecoveryStep => {
  // A record that may be incomplete supports no decision and no question (L8).
  if (record.volatile === true)
    return write(endEntries(record, processLossEnd(options), options.now), { outcome: "stopped" });
  const step = planStep(record, options);
  const open = RunRecord.openQuestion(record);
  return open === undefined || !isReplacing(step)
    ? step
    : prependEntries([{ _tag: "QuestionStillOpen", revision: open.revision }], step);
};

const processLossEnd = ({ cancelled }: PlanOptions): End.End =>
  cancelled === true ? { ...End.processLost, reason: "user_cancelled" } : End.processLost;

/**
 * Returns true if the step would override an answer that arrives before the step is written. A step that only parks the run keeps its
 * question open.
 */
const isReplacing = (step: RecoveryStep): boolean =>
  step._tag === "write" && step.entries.some(({ _tag }) => _tag !== "RunParked");

const planStep = (record: RunRecord.RunRecord, options: PlanOptions): RecoveryStep => {
  const due = Orphan.findDueStep(record);
  // A run without an attempt on record has sent nothing, so there is nothing to recover.
  if (due === undefined) return write(endEntries(record, End.stop("not_started"), options.now), { outcome: "stopped" });
  const cancelled = options.cancelled === true ? Orphan.decideCancel(record) : undefined;
  if (cancelled !== undefined) return decide(record, cancelled, options);
  const word = options.restored === true ? findReasonToContinue(due) : undefined;
  const [attempt] = Orphan.lastResponse(record);
  if (word !== undefined && attempt !== undefined) {
    const { budget, failure, run } = word;
    const input = { facts: Orphan.assumeCrash(word.facts), failure, run, budget };
    return decide(record, { _tag: "decide", attempt, input }, options);
  }
  switch (due._tag) {
    case "decide":
      return decide(record, due, options);
    case "offered":
      return offerRetry(record, due.incident, [], options);
    case "waiting":
      return planWaiting(record, due, options);
    case "answered":
      return planAnswer(record, due, options);
  }
};

type DueOf<T extends Orphan.Due["_tag"]> = Extract<Orphan.Due, { readonly _tag: T }>;

const decide = (record: RunRecord.RunRecord, due: DueOf<"decide">, options: PlanOptions): RecoveryStep => {
  const { standing } = due;
  if (standing !== undefined) return carryOut(record, standing, crashEntries(record, due.input.facts), options);
  const { attempt, input } = due;
  const incident = Incident.make(
    options.policy,
    { ...input, jitter: options.jitter },
    {
      run_id: record.run_id,
      number: Orphan.lastIncidentNumber(record) + 1,
      attempt: attempt.attempt,
      at: options.now,
      provider: record.provider,
      status: "open",
    },
  );
  const replaced = Orphan.newestIncident(record);
  const failed = input.failure.kind === "crashed" ? [evidenceEntry(record, options.now, "failure", "crashed")] : [];
  const entries: ReadonlyArray<RunRecord.Entry> = [
    ...crashEntries(record, input.facts),
    ...failed,
    evidenceEntry(record, options.now, "decision", incident.decision.rule),
    ...(replaced?.status === "open" ? [Incident.markEntry(replaced, "superseded")] : []),
    { _tag: "IncidentOpened", incident },
  ];
  return carryOut(record, incident, entries, options);
};

/** Carries out a decision without contacting a provider: offers a retry, asks a question, or records an end. */
const carryOut = (
  record: RunRecord.RunRecord,
  incident: RunIncident,
  entries: ReadonlyArray<RunRecord.Entry>,
  options: PlanOptions,
): RecoveryStep => {
  const { action, rule } = incident.decision;
  switch (action) {
    case "auto_retry_once":
      return offerRetry(record, incident, entries, options);
    case "ask_user": {
      if (!isWorthAsking(record, incident)) return endUnresumable(record, incident, entries, options);
      const question = questionOf(record, incident, options);
      const asked = [...entries, { _tag: "QuestionAsked", question } as const];
      return park(record, "question", asked, { outcome: "asked", rule, revision: question.revision });
    }
    case "do_not_retry": {
      if (runStateAfter(rule) === "completed") {
        return write([...entries, ...endEntries(record, End.complete(), options.now)], { outcome: "completed", rule });
      }
      return write([...entries, ...endEntries(record, End.stopAt(incident), options.now)], {
        outcome: "stopped",
        rule,
      });
    }
  }
};

/**
 * Parks a run with a decided retry until a process that has the run's request takes it up. If no process can have the request, the run
 * ends.
 */
const offerRetry = (
  record: RunRecord.RunRecord,
  incident: RunIncident,
  entries: ReadonlyArray<RunRecord.Entry>,
  options: PlanOptions,
): RecoveryStep =>
  Orphan.isResumable(record)
    ? park(record, "recovered", entries, { outcome: "offered", rule: incident.decision.rule })
    : endUnresumable(record, incident, entries, options);

/**
 * Ends a run that would have to continue but cannot. It was started without its transcript, so the request is lost with the caller and
 * `StreamProcessor.takeUp` refuses the run.
 */
const endUnresumable = (
  record: RunRecord.RunRecord,
  incident: RunIncident,
  entries: ReadonlyArray<RunRecord.Entry>,
  { now, unresumable = "not_resumable" }: PlanOptions,
): RecoveryStep =>
  write([...entries, ...endEntries(record, End.stopAt(incident, unresumable), now)], {
    outcome: "stopped",
    rule: incident.decision.rule,
  });

/**
 * No stream will wait for the answer of a run that cannot be taken up, so a question would only keep the run open. The exception is a
 * question about a call of unknown outcome, because a person should check that call anyway.
 */
const isWorthAsking = (record: RunRecord.RunRecord, { decision }: RunIncident): boolean =>
  Orphan.isResumable(record) || decision.choices?.includes("it_ran") === true;

const questionOf = (
  record: RunRecord.RunRecord,
  incident: RunIncident,
  options: PlanOptions,
): RunRecord.QuestionRecord => {
  const decided = incident.decision.choices ?? ["stop"];
  const open = RunRecord.openQuestion(record);
  return Question.make(incident, {
    revision: (record.questions.at(-1)?.revision ?? 0) + 1,
    attempt: attemptsOf(record),
    choices: Orphan.isResumable(record) ? decided : decided.filter((it) => it !== "retry" && it !== "continue"),
    asked_at: options.now,
    terms: options.terms,
    replaced: open?.incident === incident.id ? open : undefined,
  });
};

const planWaiting = (record: RunRecord.RunRecord, due: DueOf<"waiting">, options: PlanOptions): RecoveryStep => {
  const { incident, question } = due;
  const standing: RunStanding = { outcome: "waiting", rule: incident.decision.rule, revision: question.revision };
  if (question.expires_at !== undefined && question.expires_at <= options.now)
    return { _tag: "expire", question, choice: Question.expiryChoice(question), standing };
  // The process that asked could have continued the run. No process can continue it now.
  if (isOfferFutile(record, due)) return carryOut(record, incident, [], options);
  return park(record, "question", [], standing);
};

/** Returns true if an open question offers to continue a run that cannot be taken up. */
export const isOfferFutile = (record: RunRecord.RunRecord, { question }: Pick<DueOf<"waiting">, "question">): boolean =>
  !Orphan.isResumable(record) && question.choices.some(isRetryOrContinue);

const planAnswer = (record: RunRecord.RunRecord, due: DueOf<"answered">, options: PlanOptions): RecoveryStep => {
  const { choice, incident } = due;
  const { rule } = incident.decision;
  const done = [evidenceEntry(record, options.now, "answer", choice), Incident.markEntry(incident, "acted_on", choice)];
  const stopWith = (reason?: string): RecoveryStep =>
    write([...done, ...endEntries(record, End.stopAt(incident, reason), options.now)], { outcome: "stopped", rule });
  switch (choice) {
    case "stop":
      return stopWith();
    case "accept":
      return stopWith("accepted_partial");
    case "it_ran":
    case "it_did_not_run": {
      const word = { verdict: choice, by: "person" } as const;
      const entries = [
        ...done,
        ...Orphan.lastResponse(record).flatMap((it) => CallVerdicts.entriesForAllCalls(it, word)),
      ];
      const settled = RunRecord.applyAll(record, entries);
      if (settled === undefined || typeof settled === "string") return stopWith();
      const then = Orphan.findDueStep(settled);
      // A verdict settles nothing if a full ledger has folded the calls into one shared row. The same question would then be asked forever.
      if (then?._tag !== "decide") return stopWith();
      return prependEntries(entries, decide(settled, then, options));
    }
    case "retry":
    case "continue": {
      if (!Orphan.isResumable(record)) return endUnresumable(record, incident, done, options);
      const kept = incident.answer === choice ? [] : [Incident.markEntry(incident, incident.status, choice)];
      return park(record, "answered", kept, { outcome: "answered", rule });
    }
  }
};

/** Prepends entries to a step, so that all are one write. The step must be planned on the record that already contains these entries. */
const prependEntries = (entries: ReadonlyArray<RunRecord.Entry>, step: RecoveryStep): RecoveryStep =>
  step._tag === "write" ? { ...step, entries: [...entries, ...step.entries] } : write(entries, step.standing);

/** Parks a run. If it is already parked for this reason and there is nothing to add, nothing is written. */
const park = (
  record: RunRecord.RunRecord,
  reason: RunRecord.Parked,
  entries: ReadonlyArray<RunRecord.Entry>,
  standing: RunStanding,
): RecoveryStep =>
  record.parked === reason && entries.length === 0
    ? { _tag: "keep", standing }
    : write([...entries, { _tag: "RunParked", reason }], standing);

const write = (entries: ReadonlyArray<RunRecord.Entry>, standing: RunStanding): RecoveryStep => ({
  _tag: "write",
  entries,
  standing,
});

/**
 * Returns the entries for the facts that a crash leaves uncertain. The request for the last response may have been sent. Every call that
 * started and has no outcome, in any attempt, gets an unknown outcome.
 *
 * @param decided facts of the response on which the decision is based; an incident may have more facts than its attempts
 */
const crashEntries = (record: RunRecord.RunRecord, decided: AttemptFacts): ReadonlyArray<RunRecord.Entry> => {
  const response = Orphan.lastResponse(record);
  return record.attempts.flatMap((it): ReadonlyArray<RunRecord.Entry> => {
    const crashed = Orphan.assumeCrash(it.facts);
    const facts = !response.includes(it)
      ? { ...crashed, delivery: it.facts.delivery }
      : response.length === 1
        ? decided
        : crashed;
    return canGrowInto(facts, it.facts) ? [] : [{ _tag: "FactsRaised", attempt: it.attempt, facts }];
  });
};

const attemptsOf = ({ attempts }: RunRecord.RunRecord): number => attempts.at(-1)?.attempt ?? 0;

/** Returns evidence of what recovery found or did. */
const evidenceEntry = (
  record: RunRecord.RunRecord,
  now: number,
  event: Evidence["event"],
  detail: string,
): RunRecord.Entry => ({
  _tag: "EvidenceNoted",
  evidence: { at_ms: Math.max(0, now - record.started_at), attempt: attemptsOf(record), event, detail },
});

/** Returns the entries that end a run without an owner. */
export const endEntries = (record: RunRecord.RunRecord, end: End.End, now: number): ReadonlyArray<RunRecord.Entry> => [
  evidenceEntry(record, now, "end", end.reason),
  { _tag: "RunEnded", end: { ...end, attempts: attemptsOf(record), at: now } },
];
