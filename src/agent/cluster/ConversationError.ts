/**
 * Says why a conversation of a cluster did not do what it was asked for.
 */
import { Schema } from "effect";

/**
 * `no_owner`: no live node answered for the conversation within the limit; the message names it and the nodes that are known.
 * `out_of_turn`: another turn is next. `taken`: another caller has said something else in this turn. `open`: the turn before has
 * not ended. `moved`: this node is no longer the conversation's owner, and another one answers. `forbidden`: the caller does not
 * prove that it may use the store. `refused`: something that was given is wrong. `store`: the conversation or the runs cannot be
 * read or written.
 */
export class ConversationError extends Schema.TaggedError<ConversationError>()("ConversationError", {
  reason: Schema.Literals(["no_owner", "out_of_turn", "taken", "open", "moved", "forbidden", "refused", "store"]),
  message: Schema.String,
}) {}
