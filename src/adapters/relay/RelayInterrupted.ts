/**
 * Defines the error of a relayed run that did not complete, with the data for its client.
 */
import { Schema } from "effect";
import { Rule } from "../../domain/Decision.ts";
import { Failure } from "../../domain/Failure.ts";
import { Milliseconds } from "../../domain/Limits.ts";
import { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import { RelayError, type RelayHeaders, type RelayRefusal } from "./RelayTransport.ts";

/**
 * A relayed run did not complete. If no head was sent yet, `response` is the provider's response to the last attempt, if there is one.
 * After the head, the connection to the client must break. `cause` is the original error.
 */
export class RelayInterrupted extends Schema.TaggedError<RelayInterrupted>()("RelayInterrupted", {
  /** Same as `reason` of `RunInterrupted`. */
  reason: RunInterrupted.fields.reason,
  run_id: Schema.String,
  rule: Rule,
  failure: Failure,
  attempts: Schema.Natural,
  /** Id of the failed run that this run repeats, because the client retried its request. */
  retry_of: Schema.optionalKey(Schema.String),
  /** Route on which the run failed, if routes have names. */
  route: Schema.optionalKey(Schema.String),
  message: Schema.String,
  /**
   * Set if the relay abandoned a request that waited for its path. Nothing was sent to the provider. The client may retry after this time,
   * in milliseconds.
   */
  again_ms: Schema.optionalKey(Milliseconds),
  cause: Schema.optionalKey(Schema.Unknown),
}) {
  /** The provider's response that ended the run. */
  get response(): RelayRefusal | undefined {
    return this.cause instanceof RelayError ? this.cause.response : undefined;
  }

  /** The original error, if the transport failed. */
  get original(): Error | undefined {
    return this.cause instanceof Error && !(this.cause instanceof RelayError) ? this.cause : undefined;
  }

  /** `x-recovery-run`, `x-recovery-attempts`, `x-recovery-rule`, and `x-recovery-route` if routes have names. */
  get headers(): RelayHeaders {
    return recoveryHeaders(this.run_id, this.attempts, this.rule, this.route);
  }
}

/**
 * Converts the error of a run.
 *
 * @param retryOf id of the failed run that this run repeats
 * @param route route on which the run failed
 */
export const toRelayInterrupted = (
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
 * Time after which a client may retry a request that waits for its path, in milliseconds. It equals the probe interval of a path that has
 * been down for a minute.
 */
export const againMs = 5_000;

/** Creates the error for a request that has waited for its path as long as its client may wait without a response. */
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
    message: `the model provider cannot be reached now. The request waited ${Math.round(run.waitedMs / 1000)} s for its path. Ask again to continue waiting.`,
    again_ms: againMs,
  });

/**
 * Returns the headers that identify a run to its client.
 *
 * @param attempts number of attempts so far
 * @param rule the rule that ended the run; undefined while it runs
 * @param route the route that responded, if routes have names
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
