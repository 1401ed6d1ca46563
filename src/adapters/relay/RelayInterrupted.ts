/**
 * Says that a relayed run did not complete, with what its client may see of it.
 */
import { Schema } from "effect";
import { Rule } from "../../domain/Decision.ts";
import { Failure } from "../../domain/Failure.ts";
import { Milliseconds } from "../../domain/Limits.ts";
import { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import { RelayError, type RelayHeaders, type RelayRefusal } from "./RelayTransport.ts";

/**
 * A relayed run that did not complete. Before a head has gone to the client, `response` is the provider's own response to the
 * last attempt, where there was one; after the head the connection to the client has to break. `cause` is the original error.
 */
export class RelayInterrupted extends Schema.TaggedError<RelayInterrupted>()("RelayInterrupted", {
  /** As of `RunInterrupted`. */
  reason: RunInterrupted.fields.reason,
  run_id: Schema.String,
  rule: Rule,
  failure: Failure,
  attempts: Schema.Natural,
  /** The failed run that the client repeated with this one. */
  retry_of: Schema.optionalKey(Schema.String),
  /** The route that the failure came by, where routes have names. */
  route: Schema.optionalKey(Schema.String),
  message: Schema.String,
  /**
   * The relay gave a request up that still waited for its path: nothing of it was sent since, and its client may ask again after so many
   * milliseconds.
   */
  again_ms: Schema.optionalKey(Milliseconds),
  cause: Schema.optionalKey(Schema.Unknown),
}) {
  /** The provider's own response that the run ended with. */
  get response(): RelayRefusal | undefined {
    return this.cause instanceof RelayError ? this.cause.response : undefined;
  }

  /** The original error, where the transport failed. */
  get original(): Error | undefined {
    return this.cause instanceof Error && !(this.cause instanceof RelayError) ? this.cause : undefined;
  }

  /** `x-recovery-run`, `x-recovery-attempts`, `x-recovery-rule`, and `x-recovery-route` where routes have names. */
  get headers(): RelayHeaders {
    return recoveryHeaders(this.run_id, this.attempts, this.rule, this.route);
  }
}

/**
 * Makes it from the run's own error.
 *
 * @param retryOf the failed run that the client repeated with this one
 * @param route the route that the failure came by
 */
export const interrupted = (
  error: RunInterrupted,
  attempts: number,
  retryOf: string | undefined,
  route: string | undefined,
): RelayInterrupted =>
  new RelayInterrupted({
    reason: error.reason,
    run_id: error.run_id,
    rule: error.rule,
    failure: error.failure,
    attempts: Math.max(error.attempts, attempts),
    ...(route === undefined ? {} : { route }),
    ...(retryOf === undefined ? {} : { retry_of: retryOf }),
    message: error.message,
    ...(error.cause === undefined ? {} : { cause: error.cause }),
  });

/**
 * How long a client waits before it asks again for what still waits for its path, in milliseconds: as long as lies between two probes of a
 * path that has been down for a minute.
 */
export const againMs = 5_000;

/** Makes the error of a request that has waited for its path for as long as its client may be left without a word. */
export const pathWaited = (run: {
  readonly run_id: string;
  readonly attempts: number;
  readonly retry_of: string | undefined;
  readonly waitedMs: number;
}): RelayInterrupted =>
  new RelayInterrupted({
    reason: "do_not_retry",
    run_id: run.run_id,
    rule: "lifecycle_closed",
    failure: { kind: "transport", operation: "connect", code: "path_down" },
    attempts: run.attempts,
    ...(run.retry_of === undefined ? {} : { retry_of: run.retry_of }),
    message: `the model provider cannot be reached now. The request has waited ${Math.round(run.waitedMs / 1000)} s for the way to it; ask again, and it goes on waiting.`,
    again_ms: againMs,
  });

/**
 * The headers that name a run to its client.
 *
 * @param attempts so far
 * @param rule the rule that ended the run; undefined while it goes on
 * @param route the route that has answered, where routes have names
 */
export const recoveryHeaders = (
  runId: string,
  attempts: number,
  rule: string | undefined,
  route: string | undefined,
): RelayHeaders => [
  ["x-recovery-run", runId],
  ["x-recovery-attempts", String(attempts)],
  ...(rule === undefined ? [] : [["x-recovery-rule", rule] as const]),
  ...(route === undefined ? [] : [["x-recovery-route", route] as const]),
];
