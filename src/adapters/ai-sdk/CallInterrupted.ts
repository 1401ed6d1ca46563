/** Reports to a caller of the AI SDK that a call has ended without a complete response. */
import { Schema } from "effect";
import { Rule } from "../../domain/Decision.ts";
import { Failure } from "../../domain/Failure.ts";
import { RunInterrupted } from "../../runtime/contract/RunEvent.ts";

/**
 * A call has ended and this package will not repeat it. `isRetryable` is false, so that the SDK does not repeat it either.
 *
 * `reason` is that of `RunInterrupted`. `message` explains what happened, whether a tool ran and what is safe to do. `cause` is the
 * provider's own error, unchanged (law L12). It is absent if nothing was thrown, as for a cut stream.
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
