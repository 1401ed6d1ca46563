/**
 * Holds what was received and kept of a broken answer: plain JSON that a runtime may store and read back.
 *
 * An item is a piece of the answer in the words of its protocol, in the order in which it began. What was cut stays an item
 * that is not `whole`: the builders decide what becomes of it.
 */
import * as Schema from "effect/Schema";
import { Label } from "../../domain/Limits.ts";
import type { ProtocolId } from "../stream/Protocol.ts";

/** The wire protocols that have a builder. */
export const protocols = [
  "openai-chat",
  "openai-responses",
  "anthropic-messages",
  "google-gemini",
] as const satisfies ReadonlyArray<ProtocolId>;

/**
 * One piece of an answer. `call` is a call of the caller's own tools, `hosted` one that the provider runs, `result` its
 * result, `note` what the protocol says about a call beside it.
 */
export const ReceivedItem = Schema.Struct({
  type: Schema.Literals(["text", "reasoning", "call", "hosted", "result", "note"]),
  /** The provider has said that nothing more comes of it; for a call, that it is whole and valid. */
  whole: Schema.Boolean,
  /** The attempt that it began in, and with a call its key there: what the tool ledger knows it by. */
  attempt: Schema.Natural,
  call: Schema.optionalKey(Label),
  /** The item as the protocol writes it; of a call also `input`, its whole argument text. */
  json: Schema.Record(Schema.String, Schema.Unknown),
});
export type ReceivedItem = typeof ReceivedItem.Type;

/** What was received and kept of one answer. */
export const Received = Schema.Struct({
  protocol: Schema.Literals(protocols),
  items: Schema.Array(ReceivedItem),
  /** How many choices (candidates) have spoken. */
  choices: Schema.Natural,
  /** The provider's terminal marker came, so that nothing of the answer is missing. */
  whole: Schema.optionalKey(Schema.Boolean),
  /** More came than the limit allows to hold: nothing can be built from it. */
  overflow: Schema.Boolean,
});
export type Received = typeof Received.Type;
