/** Builds the ends of runs, both of live runs and of runs whose process died. */
import type { RunEnd, RunIncident } from "../domain/RunIncident.ts";

/** The end of a run, without the number of attempts and the time, which are added when it is written. */
export type End = Omit<RunEnd, "attempts" | "at">;

/** Ends a run with a complete response. `finish` is the provider's own finish reason. */
export const complete = (finish = "completed"): End => ({ state: "completed", reason: finish });

/** Stops a run for a reason without an incident. */
export const stop = (reason: string): End => ({ state: "stopped", reason });

/** The end that another process assumes for a volatile run whose owner died. There was no decision, and the record may be incomplete. */
export const processLost: End = { state: "stopped", reason: "process_lost", assumed: true };

/** Stops a run at an incident. The reason is the rule of its decision, or the cause that prevented its decision from being carried out. */
export const stopAt = ({ decision, id }: RunIncident, reason: string = decision.rule): End => ({
  state: "stopped",
  reason,
  incident: id,
});
