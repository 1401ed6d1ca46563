/**
 * Names who may stop a run from outside, and the failure that each amounts to (law L10).
 */
import * as Predicate from "effect/Predicate";
import type { Failure } from "../../domain/Failure.ts";

/** Who stopped a run from outside. */
export type Stopper = "user" | "lifecycle" | "caller" | "caller_failed" | "consumer_finished";

/**
 * The stopper of a run whose caller's own signal has aborted; undefined while it has not. A signal that ran into a time limit is
 * a limit of the caller, and not its user's Stop.
 */
export const stopperOfSignal = (signal: AbortSignal | undefined): "user" | "caller" | undefined => {
  if (signal?.aborted !== true) return undefined;
  return Predicate.hasProperty(signal.reason, "name") && signal.reason.name === "TimeoutError" ? "caller" : "user";
};

/** The failure that a stop from outside amounts to. */
export const stopFailure = (by: Stopper): Failure => {
  if (by === "caller_failed") return { kind: "caller_failed" };
  return { kind: "cancelled", by: by === "consumer_finished" ? "caller" : by };
};
