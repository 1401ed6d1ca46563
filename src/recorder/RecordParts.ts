/**
 * Describes the parts of a run's record: its attempts, calls, questions and evidence.
 */
import * as Schema from "effect/Schema";
import { AttemptFacts } from "../domain/AttemptFacts.ts";
import { Choice, Rule } from "../domain/Decision.ts";
import { Label, Milliseconds } from "../domain/Limits.ts";
import { AttemptMode, RunFacts } from "../domain/RunFacts.ts";
import { Evidence } from "../domain/RunIncident.ts";

/** Which request an attempt sends; a replay of a continuation is a `continue` again (law L3). */
export const AttemptRequest = Schema.Literals(["first", "continue", "resume"]);
export type AttemptRequest = typeof AttemptRequest.Type;

/** One attempt as recorded: its facts as they stood at the last commit. */
export const AttemptRecord = Schema.Struct({
  attempt: Schema.Natural,
  mode: AttemptMode,
  /** Milliseconds since the run started. */
  started_ms: Milliseconds,
  facts: AttemptFacts,
  request: Schema.optionalKey(AttemptRequest),
  /** The run's side of a decision as it stood when the attempt started: a crash is decided on it. */
  run: Schema.optionalKey(RunFacts),
});
export type AttemptRecord = typeof AttemptRecord.Type;

/** Whose word settled a call whose outcome nobody knew: a person's, or the tool's own `verify`. */
export const VerdictBy = Schema.Literals(["person", "verify"]);
export type VerdictBy = typeof VerdictBy.Type;

/** What a call of unknown outcome turned out to have done. */
export const CallVerdict = Schema.Literals(["it_ran", "it_did_not_run"]);
export type CallVerdict = typeof CallVerdict.Type;

/** A runtime call that was handed over whole. Its phase stands in its attempt's facts; `id` is the provider's, a label. */
export const CallRecord = Schema.Struct({
  attempt: Schema.Natural,
  call: Label,
  id: Label,
  tool: Label,
  verdict: Schema.optionalKey(CallVerdict),
  verdict_by: Schema.optionalKey(VerdictBy),
});
export type CallRecord = typeof CallRecord.Type;

/** Who answered a question: a person, its expiry (with the default), or a program's configuration. */
export const AnsweredBy = Schema.Literals(["person", "expiry", "program"]);
export type AnsweredBy = typeof AnsweredBy.Type;

/** A question that was put to a person, and its answer. Times are wall clock, in milliseconds since the epoch. */
export const QuestionRecord = Schema.Struct({
  revision: Schema.Natural,
  incident: Label,
  /** The last attempt that had started when it was asked: a later one shows that the answer was acted on. */
  attempt: Schema.optionalKey(Schema.Natural),
  rule: Rule,
  choices: Schema.Array(Choice),
  /** What an unattended question takes when it expires; `stop` when left out. */
  default_choice: Schema.optionalKey(Choice),
  asked_at: Schema.optionalKey(Milliseconds),
  /** From then on only the default is taken; never when left out. */
  expires_at: Schema.optionalKey(Milliseconds),
  answer: Schema.optionalKey(Choice),
  answered_by: Schema.optionalKey(AnsweredBy),
});
export type QuestionRecord = typeof QuestionRecord.Type;

/**
 * Why nobody drives a run that has not ended. `question`: it waits for an answer. `interrupted`: its caller went away
 * unsigned; `recover` decides it. `recovered`: its process died and it was decided; `answered`: it was answered meanwhile.
 * The last two wait for `StreamProcessor.takeUp`.
 */
export const Parked = Schema.Literals(["question", "interrupted", "recovered", "answered"]);
export type Parked = typeof Parked.Type;

/** Bounded evidence: the first records, the last ones, every terminal candidate among them, and how many lie between. */
export const EvidenceLog = Schema.Struct({
  first: Schema.Array(Evidence),
  last: Schema.Array(Evidence),
  omitted: Schema.Natural,
});
export type EvidenceLog = typeof EvidenceLog.Type;
