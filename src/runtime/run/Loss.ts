/**
 * Says when a run is no longer this process's to write.
 */
import type { RecorderError } from "../../recorder/RecorderError.ts";

/** Why a run is not this process's to write: another process drives it, or its id was another run's from the start. */
export type Loss = "taken_over" | "refused";

/** What a refusal says of the run. A run whose record is gone (its file was replaced, its row damaged) is no other process's. */
export const losses: ReadonlyMap<RecorderError["reason"], Loss> = new Map([
  ["fenced", "taken_over"],
  ["owned", "taken_over"],
  ["run_ended", "taken_over"],
  ["run_exists", "refused"],
]);

/** What the log says of it. */
export const lossSentences = {
  taken_over: "another process has taken this run over; it stops here",
  refused: "the run's id belongs to another run on record; it stops here",
} as const;
