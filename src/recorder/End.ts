/**
 * Builds the ends of a run, for live runs and for those of dead processes.
 */
import type { RunEnd, RunIncident } from "../domain/RunIncident.ts";

/** The end of a run, without the attempts and the time, which are added when it is written. */
export type End = Omit<RunEnd, "attempts" | "at">;

/** Ends a run with a complete response. `finish` is the provider's own finish reason. */
export const complete = (finish = "completed"): End => ({ state: "completed", reason: finish });

/** Stops a run for a reason without an incident. */
export const stop = (reason: string): End => ({ state: "stopped", reason });

/**
 * The end that another process assumes for a volatile run whose owner died. Nothing was decided, and the record may be
 * incomplete.
 */
export const processLost: End = { state: "stopped", reason: "process_lost", assumed: true };

/** Stops a run at an incident, for its decision's rule or for the reason that kept the decision from being acted on. */
export const stopAt = ({ decision, id }: RunIncident, reason: string = decision.rule): End => ({
  state: "stopped",
  reason,
  incident: id,
});
