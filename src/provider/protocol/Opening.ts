/**
 * Describes how a conversation opens. `Continuation` writes everything behind it.
 */
import type * as Json from "../../domain/Json.ts";

/** A tool as the model reads of it; `parameters` is a JSON schema. */
export interface ToolDescription {
  readonly name: string;
  readonly description: string;
  readonly parameters: Json.JsonRecord;
}

/** What a conversation opens with. */
export interface Opening {
  readonly model: string;
  readonly system: string;
  readonly tools: ReadonlyArray<ToolDescription>;
}
