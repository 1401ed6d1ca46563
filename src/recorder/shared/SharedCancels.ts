/**
 * Describes the way in which processes over one store ask each other to cancel a run.
 *
 * A cancel is a fact (`SharedFacts`). The cancelling process puts it, and the process that drives the run takes it in the step that cancels.
 */
import type * as Effect from "effect/Effect";
import type { FactsFault, SharedFacts } from "./SharedFacts.ts";

/** The facts behind cancels, and the driver of a run. */
export interface SharedCancels extends Pick<SharedFacts, "all" | "find" | "on" | "put" | "take"> {
  /** Finds the process that drives a run, by its label for people (`4711@host`); undefined without one. */
  readonly driver: (runId: string) => Effect.Effect<string | undefined, FactsFault>;
}
