/**
 * Describes what a recorder keeps of a run, and the entries that build the record.
 *
 * `RunRecord.apply` applies an entry to a record. It is pure, and every recorder layer uses it. Entries are transitions, never deltas, and
 * hold facts, lengths and labels, never content.
 */
import * as Schema from "effect/Schema";
import { AttemptFacts } from "../domain/AttemptFacts.ts";
import { Choice, Rule } from "../domain/Decision.ts";
import { callsMax, evidenceFirstMax, evidenceLastMax, incidentsMax, Label, Milliseconds } from "../domain/Limits.ts";
import { AttemptMode, Budget, Provider, RunFacts } from "../domain/RunFacts.ts";
import { Evidence, IncidentStatus, RunEnd, RunIncident } from "../domain/RunIncident.ts";
import { SeamProof } from "../domain/SeamWords.ts";
import { AttemptRecord, AttemptRequest, addAttempt, markSeamProven, raise } from "./AttemptLog.ts";
import { mark, openIncident, settle, settleIfEnded } from "./IncidentLog.ts";

export { AttemptRecord, AttemptRequest, attemptsMax } from "./AttemptLog.ts";

/** Source of a verdict on a call of unknown outcome: a person, or the tool's own `verify`. */
export const VerdictBy = Schema.Literals(["person", "verify"]);
export type VerdictBy = typeof VerdictBy.Type;

/** Verdict on a call of unknown outcome. */
export const CallVerdict = Schema.Literals(["it_ran", "it_did_not_run"]);
export type CallVerdict = typeof CallVerdict.Type;

/**
 * A tool call that the caller executes (a runtime call), received with all of its arguments. Its phase is in the facts of its attempt. `id`
 * comes from the provider and is only a label.
 */
export const CallRecord = Schema.Struct({
  attempt: Schema.Natural,
  call: Label,
  id: Label,
  tool: Label,
  verdict: Schema.optionalKey(CallVerdict),
  verdict_by: Schema.optionalKey(VerdictBy),
});
export type CallRecord = typeof CallRecord.Type;

/** Source of an answer: a person, the question's expiry (with its default), or a program's configuration. */
export const AnsweredBy = Schema.Literals(["person", "expiry", "program"]);
export type AnsweredBy = typeof AnsweredBy.Type;

/** A question to a person, and its answer. Times are wall clock, in milliseconds since the epoch. */
export const QuestionRecord = Schema.Struct({
  revision: Schema.Natural,
  incident: Label,
  /** Last attempt that had started when the question was asked. A later attempt shows that the answer was acted on. */
  attempt: Schema.optionalKey(Schema.Natural),
  rule: Rule,
  choices: Schema.Array(Choice),
  /** The answer that applies on expiry; `stop` if absent. */
  default_choice: Schema.optionalKey(Choice),
  asked_at: Schema.optionalKey(Milliseconds),
  /** Time from which only the default is accepted. Never expires if absent. */
  expires_at: Schema.optionalKey(Milliseconds),
  answer: Schema.optionalKey(Choice),
  answered_by: Schema.optionalKey(AnsweredBy),
});
export type QuestionRecord = typeof QuestionRecord.Type;

/**
 * Reason why no process owns a run that has not ended.
 *
 * - `question`: the run waits for an answer.
 * - `interrupted`: its caller left without a signed cancel. `recover` decides its next step.
 * - `recovered`: its process died, and its next step has been decided.
 * - `answered`: its question has been answered, and no process has carried the answer out yet.
 *
 * Runs that are `recovered` or `answered` wait for `StreamProcessor.takeUp`.
 */
export const Parked = Schema.Literals(["question", "interrupted", "recovered", "answered"]);
export type Parked = typeof Parked.Type;

/**
 * Bounded evidence: the first and the last records, and the number omitted between them. Terminal candidates (events that may have ended
 * the response) are the last to be evicted.
 */
export const EvidenceLog = Schema.Struct({
  first: Schema.Array(Evidence),
  last: Schema.Array(Evidence),
  omitted: Schema.Natural,
});
export type EvidenceLog = typeof EvidenceLog.Type;

/** The wait in which a run is now: for a path to its provider, or for the end of a cooldown. */
export const RunWait = Schema.Struct({
  for: Schema.Literals(["path", "cooldown"]),
  /** Wall clock, milliseconds since the epoch. */
  since: Milliseconds,
  until: Schema.optionalKey(Milliseconds),
});
export type RunWait = typeof RunWait.Type;

/** The complete record of one run. */
export const RunRecord = Schema.Struct({
  run_id: Label,
  provider: Provider,
  /** Wall clock, milliseconds since the epoch. */
  started_at: Milliseconds,
  /** `asking` and `parked` runs outlive their process. `parked` holds the reason. */
  state: Schema.Literals(["live", "asking", "parked", "ended"]),
  parked: Schema.optionalKey(Parked),
  /** Number of times that another process has taken the run over. */
  resumes: Schema.Natural,
  /** Number of takeovers at the last human answer. The takeover limit counts from there. */
  resumes_at_answer: Schema.optionalKey(Schema.Natural),
  budget: Schema.optionalKey(Budget),
  policy: Schema.optionalKey(Label),
  /** Keyed digest of the content that the first request was built from. A caller that resumes the run must present the same content. */
  transcript: Schema.optionalKey(Label),
  /** The failed run whose request this one repeats, because a client retried it. */
  retry_of: Schema.optionalKey(Label),
  /** Random string of the process that started the run. It distinguishes two starts under one id. */
  started_by: Schema.optionalKey(Label),
  /**
   * True if entries are written after the act instead of before it (L8). The record may be incomplete, and no other process continues the
   * run.
   */
  volatile: Schema.optionalKey(Schema.Boolean),
  attempts: Schema.Array(AttemptRecord),
  attempts_omitted: Schema.Natural,
  calls: Schema.Array(CallRecord),
  evidence: EvidenceLog,
  incidents: Schema.Array(RunIncident),
  incidents_omitted: Schema.Natural,
  questions: Schema.Array(QuestionRecord),
  /** Total time that the run has waited for paths and cooldowns, without the present wait, in milliseconds. */
  waited_ms: Schema.optionalKey(Milliseconds),
  waiting: Schema.optionalKey(RunWait),
  /** Group whose budget the run shares. */
  group: Schema.optionalKey(Label),
  end: Schema.optionalKey(RunEnd),
});
export type RunRecord = typeof RunRecord.Type;

/** An event of a run. All entries of one `RunRecorder.write` are committed together. */
export const Entry = Schema.TaggedUnion({
  RunStarted: {
    run_id: Label,
    provider: Provider,
    at: Milliseconds,
    budget: Schema.optionalKey(Budget),
    policy: Schema.optionalKey(Label),
    transcript: Schema.optionalKey(Label),
    retry_of: Schema.optionalKey(Label),
    started_by: Schema.optionalKey(Label),
    volatile: Schema.optionalKey(Schema.Boolean),
    group: Schema.optionalKey(Label),
  },
  AttemptStarted: {
    attempt: Schema.Natural,
    mode: AttemptMode,
    at_ms: Milliseconds,
    facts: AttemptFacts,
    request: Schema.optionalKey(AttemptRequest),
    run: Schema.optionalKey(RunFacts),
    route: Schema.optionalKey(Label),
    /** The attempt must prove that its text continues the shown text here. `at` counts UTF-16 code units of the shown text. */
    seam: Schema.optionalKey(Schema.Struct({ at: Schema.Natural, proof: SeamProof })),
  },
  /** A wait begins or ends. `waited_ms` is the sum of the waits that have ended; `wait` is the one that begins, if any. */
  RunWaited: { waited_ms: Milliseconds, wait: Schema.optionalKey(RunWait) },
  /**
   * The run repeats a failed run that another process owned. `RunStarted` has the same field, for a process that knows at the start that
   * the run is a repeat.
   */
  RunRepeats: { retry_of: Label },
  /** The text of an attempt was joined to the shown text. */
  RunContinued: { attempt: Schema.Natural, at: Schema.Natural, proof: SeamProof },
  FactsRaised: { attempt: Schema.Natural, facts: AttemptFacts },
  /** The caller gets a tool call to execute (a runtime call), with all of its arguments. The attempt's facts are in the same write. */
  CallHandedOver: { attempt: Schema.Natural, call: Label, id: Label, tool: Label },
  /** Settles a call of unknown outcome. The attempt's facts are in the same write. */
  CallJudged: { attempt: Schema.Natural, call: Label, tool: Label, verdict: CallVerdict, by: VerdictBy },
  /** `omitted` counts earlier evidence that was never written. */
  EvidenceNoted: { evidence: Evidence, omitted: Schema.optionalKey(Schema.Natural) },
  IncidentOpened: { incident: RunIncident },
  IncidentMarked: { incident: Label, status: IncidentStatus, answer: Schema.optionalKey(Choice) },
  QuestionAsked: { question: QuestionRecord },
  QuestionAnswered: { revision: Schema.Natural, answer: Choice, by: Schema.optionalKey(AnsweredBy) },
  /** Guards the rest of the write: if this question has been answered, the whole write is refused. */
  QuestionStillOpen: { revision: Schema.Natural },
  /** No process owns the run any more, and the run has not ended. */
  RunParked: { reason: Parked },
  RunResumed: {},
  RunEnded: { end: RunEnd },
});
export type Entry = typeof Entry.Type;

/** The reason why an entry does not fit its record. */
export type Misfit = "unknown_run" | "run_exists" | "run_ended" | "answered";

/**
 * Applies one entry to a run's record.
 *
 * Except for evidence and `RunResumed`, an entry that is already on record changes nothing. So a caller that does not know the outcome of a
 * write can repeat it.
 *
 * @param record current record; undefined before `RunStarted`
 * @returns the new record, or the reason why the entry does not fit. A run has one terminal state (law L7), so after `RunEnded` it accepts
 *   only late facts (of tools that ran after their stream completed), seams, incidents, marks, evidence and calls. An assumed end is not
 *   terminal: the owner's next entry replaces it.
 */
export const apply = (record: RunRecord | undefined, entry: Entry): RunRecord | Misfit => {
  if (record === undefined) return entry._tag === "RunStarted" ? newRecord(entry) : "unknown_run";
  if (isOnRecord(record, entry)) return record;
  switch (entry._tag) {
    case "RunStarted":
      return "run_exists";
    case "EvidenceNoted":
      return { ...record, evidence: note(addOmitted(record.evidence, entry.omitted), entry.evidence) };
    case "IncidentOpened":
      return { ...record, ...openIncident(record, entry.incident) };
    case "IncidentMarked":
      return {
        ...record,
        incidents: settleIfEnded(
          record.end,
          record.incidents.map((incident) => mark(incident, entry)),
        ),
      };
    case "FactsRaised":
      return { ...record, attempts: record.attempts.map((it) => raise(it, entry)) };
    case "RunContinued":
      return { ...record, attempts: record.attempts.map((it) => markSeamProven(it, entry)) };
    case "RunRepeats":
      // A run repeats only one other run, so the first entry counts.
      return record.retry_of === undefined ? { ...record, retry_of: entry.retry_of } : record;
    case "QuestionStillOpen":
      return isAnswered(record, entry.revision) ? "answered" : record;
    case "CallHandedOver":
    case "CallJudged":
      return { ...record, calls: upsertCall(record.calls, entry) };
    default:
      if (record.state !== "ended") return applyLive(record, entry);
      return record.end?.assumed === true ? applyLive(reopen(record), entry) : "run_ended";
  }
};

/** True if the record may lack entries because its process died before it wrote them. Statistics and decisions ignore such a record. */
export const isIncomplete = ({ end }: RunRecord): boolean => end?.assumed === true;

const reopen = (record: RunRecord): RunRecord => {
  const { end: _, ...rest } = record;
  return { ...rest, state: "live" };
};

/**
 * Applies the entries of one write to a run's record, all of them or none.
 *
 * @param isGivenBack true if the writing process has released the run
 * @returns the new record, or the reason for the refusal; `fenced` if a late write would continue a released run. Undefined if there is
 *   neither a record nor an entry that starts one
 */
export const applyAll = (
  record: RunRecord | undefined,
  entries: ReadonlyArray<Entry>,
  isGivenBack = false,
): RunRecord | undefined | Misfit | "fenced" => {
  let folded = record;
  for (const entry of entries) {
    const next = apply(folded, entry);
    if (typeof next === "string") return next;
    if (isGivenBack && next !== folded && isDriving(entry)) return "fenced";
    folded = next;
  }
  return folded;
};

/**
 * True if the entry is demonstrably on record. Facts, seams, calls and marks need no check, because applying them twice changes nothing.
 */
const isOnRecord = (record: RunRecord, entry: Entry): boolean => {
  switch (entry._tag) {
    case "RunStarted":
      return entry.started_by !== undefined && entry.started_by === record.started_by;
    case "AttemptStarted":
      return record.attempts.some(({ attempt }) => attempt === entry.attempt);
    case "IncidentOpened":
      return record.incidents.some(({ id }) => id === entry.incident.id);
    case "QuestionAsked":
      return record.questions.some(({ revision }) => revision === entry.question.revision);
    case "QuestionAnswered":
      return record.questions.some(({ answer, revision }) => revision === entry.revision && answer === entry.answer);
    case "RunEnded":
      return record.end !== undefined && isSameEnd(record.end, entry.end);
    default:
      return false;
  }
};

const isAnswered = ({ questions }: RunRecord, asked: number): boolean =>
  questions.some(({ answer, revision }) => revision === asked && answer !== undefined);

const isSameEnd = (one: RunEnd, other: RunEnd): boolean =>
  one.at === other.at &&
  one.state === other.state &&
  one.reason === other.reason &&
  one.attempts === other.attempts &&
  one.incident === other.incident;

type LiveEntry = Extract<
  Entry,
  {
    readonly _tag:
      | "AttemptStarted"
      | "RunWaited"
      | "QuestionAsked"
      | "QuestionAnswered"
      | "RunParked"
      | "RunResumed"
      | "RunEnded";
  }
>;

const applyLive = (record: RunRecord, entry: LiveEntry): RunRecord => {
  switch (entry._tag) {
    case "AttemptStarted":
      return { ...withoutParked(withoutWait(record)), state: "live", ...addAttempt(record, entry) };
    case "RunWaited":
      return {
        ...withoutWait(record),
        // Two writes may arrive in reverse order. Waited time only grows, so the maximum is correct.
        waited_ms: Math.max(record.waited_ms ?? 0, entry.waited_ms),
        ...(entry.wait === undefined ? {} : { waiting: entry.wait }),
      };
    case "QuestionAsked":
      return { ...record, state: "asking", questions: [...record.questions.slice(1 - incidentsMax), entry.question] };
    case "QuestionAnswered":
      return recordAnswer(record, entry);
    case "RunParked":
      return park(withoutWait(record), entry.reason);
    case "RunResumed":
      return {
        ...withoutParked(withoutWait(record)),
        state: record.state === "asking" ? "asking" : "live",
        resumes: record.resumes + 1,
      };
    case "RunEnded":
      return {
        ...withoutParked(withoutWait(record)),
        state: "ended",
        end: entry.end,
        // An assumed end may be replaced, so it settles nothing.
        incidents: entry.end.assumed === true ? record.incidents : settle(record.incidents, entry.end),
      };
  }
};

/** True if an entry continues the run. Only a process that started or claimed the run may write one. */
export const isDriving = ({ _tag }: Entry): boolean => _tag === "RunResumed" || _tag === "AttemptStarted";

/** True if the writing process no longer owns the run after this entry. */
export const isRelease = ({ _tag }: Entry): boolean => _tag === "RunParked" || _tag === "RunEnded";

const withoutWait = (record: RunRecord): RunRecord => {
  // Nearly every record has no wait and needs no copy.
  if (record.waiting === undefined) return record;
  const { waiting: _, ...rest } = record;
  return rest;
};

const withoutParked = (record: RunRecord): RunRecord => {
  if (record.parked === undefined) return record;
  const { parked: _, ...rest } = record;
  return rest;
};

/** Returns the newest question of a run if it is open. */
export const openQuestion = (record: RunRecord): QuestionRecord | undefined => {
  const newest = record.questions.at(-1);
  return record.state === "ended" || newest?.answer !== undefined ? undefined : newest;
};

/** Parks a run. If its question has already been answered, the run waits to be resumed instead. */
const park = (record: RunRecord, reason: Parked): RunRecord => {
  if (reason !== "question") return { ...record, state: "parked", parked: reason };
  return openQuestion(record) === undefined
    ? { ...record, state: "parked", parked: "answered" }
    : { ...record, state: "asking", parked: "question" };
};

const isEnd = (answer: Choice): boolean => answer === "stop" || answer === "accept";

/** Records an answer to the open question of its revision. A run asks only while its newest question is open. */
const recordAnswer = (record: RunRecord, entry: Extract<Entry, { readonly _tag: "QuestionAnswered" }>): RunRecord => {
  const questions = record.questions.map((it) =>
    it.revision === entry.revision && it.answer === undefined
      ? { ...it, answer: entry.answer, ...(entry.by === undefined ? {} : { answered_by: entry.by }) }
      : it,
  );
  const word = {
    ...(entry.by === "person" && record.resumes > 0 ? { resumes_at_answer: record.resumes } : {}),
    // An answer that continues the run resets its waited time.
    ...(record.waited_ms === undefined || isEnd(entry.answer) ? {} : { waited_ms: 0 }),
  };
  const open = questions.at(-1);
  if (open !== undefined && open.answer === undefined) return { ...record, ...word, questions };
  return record.parked === undefined
    ? { ...record, ...word, questions, state: "live" }
    : { ...record, ...word, questions, state: "parked", parked: "answered" };
};

const newRecord = (entry: Extract<Entry, { readonly _tag: "RunStarted" }>): RunRecord => ({
  run_id: entry.run_id,
  provider: entry.provider,
  started_at: entry.at,
  state: "live",
  resumes: 0,
  ...(entry.budget === undefined ? {} : { budget: entry.budget }),
  ...(entry.policy === undefined ? {} : { policy: entry.policy }),
  ...(entry.transcript === undefined ? {} : { transcript: entry.transcript }),
  ...(entry.retry_of === undefined ? {} : { retry_of: entry.retry_of }),
  ...(entry.started_by === undefined ? {} : { started_by: entry.started_by }),
  ...(entry.volatile === undefined ? {} : { volatile: entry.volatile }),
  ...(entry.group === undefined ? {} : { group: entry.group }),
  attempts: [],
  attempts_omitted: 0,
  calls: [],
  evidence: { first: [], last: [], omitted: 0 },
  incidents: [],
  incidents_omitted: 0,
  questions: [],
});

type CallEntry = Extract<Entry, { readonly _tag: "CallHandedOver" | "CallJudged" }>;

/** Adds a call, or its verdict. The first verdict counts. */
const upsertCall = (calls: ReadonlyArray<CallRecord>, entry: CallEntry): ReadonlyArray<CallRecord> => {
  const { attempt, call, tool } = entry;
  const verdict = entry._tag === "CallJudged" ? { verdict: entry.verdict, verdict_by: entry.by } : {};
  const known = calls.find((it) => it.attempt === attempt && it.call === call);
  if (known === undefined) {
    const id = entry._tag === "CallHandedOver" ? entry.id : "";
    const ofAttempt = calls.reduce((count, it) => (it.attempt === attempt ? count + 1 : count), 0);
    return ofAttempt < callsMax ? [...calls, { attempt, call, id, tool, ...verdict }] : calls;
  }
  return known.verdict !== undefined ? calls : calls.map((it) => (it === known ? { ...it, ...verdict } : it));
};

const addOmitted = (log: EvidenceLog, omitted = 0): EvidenceLog =>
  omitted === 0 ? log : { ...log, omitted: log.omitted + omitted };

/** Adds evidence. The first records stay; newer ones displace the oldest of the rest. */
const note = (log: EvidenceLog, evidence: Evidence): EvidenceLog => {
  // `concat` allocates the exact length. A spread over-allocates, and each waiting run would keep that memory.
  if (log.first.length < evidenceFirstMax) return { ...log, first: log.first.concat([evidence]) };
  if (log.last.length < evidenceLastMax) return { ...log, last: [...log.last, evidence] };
  // A terminal candidate shows whether a disputed response was complete, so it is evicted last.
  const victim = log.last.findIndex((it) => it.event !== "terminal_candidate");
  const last = log.last.toSpliced(Math.max(victim, 0), 1);
  return { first: log.first, last: [...last, evidence], omitted: log.omitted + 1 };
};
