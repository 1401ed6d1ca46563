/**
 * Makes the ends that a run can have: the same for a living run and for one whose process is gone.
 */
import type { RunEnd, RunIncident } from "../domain/RunIncident.ts";

/** An end; its attempts and its time come with the write. */
export type End = Omit<RunEnd, "attempts" | "at">;

/** The response is whole. `finish` is the provider's own word for why it finished. */
export const completed = (finish = "completed"): End => ({ state: "completed", reason: finish });

/** The run stops for a reason that no incident has. */
export const stopped = (reason: string): End => ({ state: "stopped", reason });

/** The run stops at an incident: by its decision's rule, or for the reason that kept the decision from being acted on. */
export const stoppedAt = ({ decision, id }: RunIncident, reason: string = decision.rule): End => ({
  state: "stopped",
  reason,
  incident: id,
});
