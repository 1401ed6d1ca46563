/**
 * Lets the processes of one store ask each other to cancel a run.
 *
 * A cancel is a fact (`SharedFacts`). The process that wants the cancel puts the fact, and the process that owns the run takes it in the
 * step that cancels the run.
 */
import type * as Effect from "effect/Effect";
import type { FactsFault, SharedFacts } from "./SharedFacts.ts";

/** The facts that represent cancels, and the lookup of a run's owner. */
export interface SharedCancels extends Pick<SharedFacts, "all" | "find" | "on" | "put" | "take"> {
  /** Returns the display name of the process that owns a run (`4711@host`); undefined if no process owns it. */
  readonly findOwner: (runId: string) => Effect.Effect<string | undefined, FactsFault>;
}
