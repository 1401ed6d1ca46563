/**
 * Describes how processes over one store ask each other to cancel a run.
 *
 * A cancel is a fact (`SharedFacts`): whoever cancels puts it, and the process that drives the run takes it away in the step that cancels.
 */
import type * as Effect from "effect/Effect";
import type { FactsFault, SharedFacts } from "./SharedFacts.ts";

/** The facts that cancels are made of, and who drives a run. */
export interface SharedCancels extends Pick<SharedFacts, "all" | "find" | "on" | "put" | "take"> {
  /** The process that drives a run, by the name that a person knows it by (`4711@host`); undefined where none does. */
  readonly driver: (runId: string) => Effect.Effect<string | undefined, FactsFault>;
}
