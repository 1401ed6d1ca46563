/**
 * Lets the processes of one store ask each other to cancel a run.
 *
 * A cancel is a fact (`SharedFacts`). The process that was asked to cancel puts it, and the process that owns the run takes it in the step
 * that cancels.
 */
import type * as Effect from "effect/Effect";
import type { FactsFault, SharedFacts } from "./SharedFacts.ts";

/** The facts that represent cancels, and the lookup of a run's owner. */
export interface SharedCancels extends Pick<SharedFacts, "all" | "find" | "on" | "put" | "take"> {
  /** Finds the process that owns a run, by its label for people (`4711@host`); undefined without an owner. */
  readonly findOwner: (runId: string) => Effect.Effect<string | undefined, FactsFault>;
}
