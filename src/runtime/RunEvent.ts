/**
 * Describes what a caller of `StreamProcessor.run` sees.
 *
 * The grammar, tested: `AttemptStarted` opens every attempt; its `Part`s follow, ordinals from 1 without a gap. After a
 * break comes `RetryScheduled`, or `QuestionAsked` and then, unless the question was overtaken, `QuestionAnswered`; then
 * `AttemptDiscarded` for what was handed over and must be thrown away, directly before the next `AttemptStarted`: a wait
 * that is cut short withdraws nothing. `CallVerified` comes between a break and what follows from it. A stream that resumes
 * a run of an earlier process begins behind the break: its first `AttemptDiscarded` may name an attempt of that process, of
 * which all that was kept must go. A stream ends exactly once: with `RunCompleted` as its last element, or by failing
 * with `RunInterrupted`.
 */
import * as Schema from "effect/Schema";
import { type Choice, Rule } from "../domain/Decision.ts";
import { Failure } from "../domain/Failure.ts";
import type { AttemptMode } from "../domain/Run.ts";
import type { Question } from "./UserDecisions.ts";

/** A whole tool call that the caller may now run, and the reference that its guarded tool takes. */
export interface ReadyCall {
  readonly run_id: string;
  readonly attempt: number;
  /** The call's key within its attempt (`choice.ordinal`). */
  readonly call: string;
  /** The provider's own id: empty, `0` or repeated with some providers. */
  readonly id: string;
  readonly tool: string;
  /** The argument text where the decoder keeps it. */
  readonly input: string | undefined;
}

/** An attempt begins; its parts follow. */
export interface AttemptStarted {
  readonly _tag: "AttemptStarted";
  readonly run_id: string;
  readonly attempt: number;
  readonly mode: AttemptMode;
}

/** A part of the provider's stream, unchanged. */
export interface PartEvent<P> {
  readonly _tag: "Part";
  readonly attempt: number;
  /** Counts the parts of an attempt that were handed over, from 1. */
  readonly ordinal: number;
  readonly part: P;
  /** Present on the part that makes calls whole. */
  readonly calls?: ReadonlyArray<ReadyCall>;
}

/** Throw away what this attempt showed after `keep_through`; 0 throws all of it away. */
export interface AttemptDiscarded {
  readonly _tag: "AttemptDiscarded";
  readonly attempt: number;
  readonly keep_through: number;
}

/** The run retries by itself after `delay_ms`. */
export interface RetryScheduled {
  readonly _tag: "RetryScheduled";
  /** The attempt that broke. */
  readonly attempt: number;
  readonly mode: AttemptMode;
  readonly rule: Rule;
  readonly delay_ms: number;
  readonly message: string;
}

/** The run waits for an answer. */
export interface QuestionAsked {
  readonly _tag: "QuestionAsked";
  readonly question: Question;
}

/** The answer that was taken. */
export interface QuestionAnswered {
  readonly _tag: "QuestionAnswered";
  readonly revision: number;
  readonly choice: Choice;
}

/** A tool said of its own call, whose outcome nobody knew, whether it happened; nobody has to be asked for it. */
export interface CallVerified {
  readonly _tag: "CallVerified";
  readonly attempt: number;
  readonly call: string;
  readonly tool: string;
  readonly verdict: "it_ran" | "it_did_not_run";
}

/** The answer is whole, by the provider's own terminal marker. */
export interface RunCompleted {
  readonly _tag: "RunCompleted";
  readonly run_id: string;
  readonly attempts: number;
  /** The provider's own word for why it finished. */
  readonly finish: string | undefined;
  /** What still broke after the terminal marker; the answer is whole all the same. */
  readonly late_failure: Failure | undefined;
}

/** What a caller of `run` sees. */
export type RunEvent<P> =
  | AttemptStarted
  | PartEvent<P>
  | AttemptDiscarded
  | RetryScheduled
  | QuestionAsked
  | QuestionAnswered
  | CallVerified
  | RunCompleted;

/**
 * Ends a run that did not complete.
 *
 * `reason`: `do_not_retry` (the policy said so), `stopped` and `accepted_partial` (a question's answer),
 * `record_failed` (what has to be on record first could not be recorded: an incident, an attempt, a call), `refused` (the run
 * never started, or a resume of it did not; or the store said once it was back that the id is another run's), `parked` (nobody has answered yet: the run is kept, and `StreamProcessor.resume` goes on with it),
 * `taken_over` (another process drives the run now).
 * `cause` is the provider's own error, unchanged (law L12).
 */
export class RunInterrupted extends Schema.TaggedError<RunInterrupted>()("RunInterrupted", {
  reason: Schema.Literals([
    "do_not_retry",
    "stopped",
    "accepted_partial",
    "record_failed",
    "refused",
    "parked",
    "taken_over",
  ]),
  run_id: Schema.String,
  rule: Rule,
  failure: Failure,
  attempts: Schema.Natural,
  /** What happened, whether a tool ran, what is safe to do. */
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Unknown),
}) {}
