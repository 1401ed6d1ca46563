/**
 * Says why an agent could not do what it was asked for.
 */
import { Schema } from "effect";

/** `refused`: something that was given is wrong. `store`: the chat or the file of runs cannot be read or written. */
export class AgentError extends Schema.TaggedError<AgentError>()("AgentError", {
  reason: Schema.Literals(["refused", "store"]),
  message: Schema.String,
}) {}
