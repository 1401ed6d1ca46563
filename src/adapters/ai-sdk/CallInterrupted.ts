/** Defines the error by which a caller of the AI SDK learns that a call has ended without a complete response. */
import { Schema } from "effect";
import { Rule } from "../../domain/Decision.ts";
import { Failure } from "../../domain/Failure.ts";
import { RunInterrupted } from "../../runtime/contract/RunEvent.ts";

/**
 * A call has ended, and this package will not retry it. `isRetryable` is false, so that the SDK does not retry it either.
 *
 * `reason` is that of `RunInterrupted`. `message` explains the failure, says whether a tool ran, and names the safe next steps. `cause` is the
 * provider's own error, unchanged (law L12). It is absent if there was no error, for example if the stream was cut.
 */
export class CallInterrupted extends Schema.TaggedError<CallInterrupted>()("CallInterrupted", {
  reason: RunInterrupted.fields.reason,
  rule: Rule,
  failure: Failure,
  run_id: Schema.String,
  attempts: Schema.Natural,
  message: Schema.String,
  isRetryable: Schema.Literal(false),
  cause: Schema.optionalKey(Schema.Unknown),
}) {}

/**
 * Converts the end of a run into the error for a caller of the AI SDK.
 *
 * @param cause the provider's error, if there was one
 */
export const toCallInterrupted = (run: RunInterrupted, cause: unknown): CallInterrupted =>
  new CallInterrupted({
    reason: run.reason,
    rule: run.rule,
    failure: run.failure,
    run_id: run.run_id,
    attempts: run.attempts,
    message: run.message,
    isRetryable: false,
    ...(cause === undefined ? {} : { cause }),
  });
