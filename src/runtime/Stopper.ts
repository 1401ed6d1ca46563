/**
 * Names who may stop a run from outside, and the failure that each amounts to (law L10).
 */
import type { Failure } from "../domain/Failure.ts";

/** Who stopped a run from outside. */
export type Stopper = "user" | "lifecycle" | "caller" | "caller_failed" | "consumer_finished";

/** The failure that a stop from outside amounts to. */
export const stopFailure = (by: Stopper): Failure => {
  if (by === "caller_failed") return { kind: "caller_failed" };
  return { kind: "cancelled", by: by === "consumer_finished" ? "caller" : by };
};
