/**
 * Maps refusals of the store to the reasons why this process no longer owns a durable run. The run then stops here, and its end
 * is left to the other process.
 */
import type { RecorderError } from "../../recorder/RecorderError.ts";

/** Reason why this process does not own a run: another process owns it, or its id belonged to another run from the start. */
export type Loss = "taken_over" | "refused";

/** Losses by the store's refusal. If the record is missing (its file was replaced, or its row damaged), no other process owns the run. */
export const losses: ReadonlyMap<RecorderError["reason"], Loss> = new Map([
  ["fenced", "taken_over"],
  ["owned", "taken_over"],
  ["run_ended", "taken_over"],
  ["run_exists", "refused"],
]);

/** The log message for each loss. */
export const lossSentences = {
  taken_over: "another process has taken this run over, so nothing more of it starts here",
  refused: "the run's id belongs to another recorded run, so this run stops here",
} as const;
