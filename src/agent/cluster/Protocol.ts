/**
 * Describes what callers and the owner of a conversation say to each other.
 *
 * Every call is short: a turn goes on at its owner, and its caller asks for it again until it has ended. So a call that is lost,
 * or sent twice, changes nothing: a turn is known by its number.
 */
import { Schema } from "effect";
import { Entity } from "effect/cluster";
import { Rpc } from "effect/rpc";
import { CallVerdict } from "../conversation/Entry.ts";
import { ConversationError } from "./ConversationError.ts";

/** Longest text that is said or told in one call, in characters: a frame of the wire is 16 MiB at most. */
export const textCharactersMax = 1_000_000;

const call = { attempt: Schema.Natural, call: Schema.String, tool: Schema.String };

/** What a person says about a call of unknown outcome. */
export const Verdict = Schema.Struct({ ...call, verdict: CallVerdict });
export type Verdict = typeof Verdict.Type;

/** What is asked of a turn. */
export const Order = Schema.Struct({
  /** The number of the turn, from 1. The same number again is the same turn. */
  turn: Schema.Natural,
  /** What is said in it; left out, a turn that is there is meant. */
  text: Schema.optionalKey(Schema.String),
  /** Goes on with a turn that rests, and names which rest is meant: an order that comes twice goes on once. */
  go_on: Schema.optionalKey(Schema.String),
  verdict: Schema.optionalKey(Verdict),
});
export type Order = typeof Order.Type;

/**
 * How the newest turn is. `none`: nothing was said yet. `open`: it has not ended, and nobody goes on with it. The others are as a
 * turn of an agent ends.
 */
export const Report = Schema.Struct({
  turns: Schema.Natural,
  how: Schema.Literals(["none", "open", "running", "done", "stopped", "parked", "cancelled", "steps"]),
  run: Schema.optionalKey(Schema.String),
  message: Schema.String,
  /** While the turn is running: its words stand in the journal. */
  written: Schema.optionalKey(Schema.Literal(true)),
  /** While the turn rests at this owner: what an order names to go on. A question is open, or the limit of requests was reached. */
  rest: Schema.optionalKey(Schema.String),
  /** What the model has said in the turn, once it has ended or rests. */
  text: Schema.String,
  /** The call that a person has to judge before the turn goes on. */
  call: Schema.optionalKey(Schema.Struct({ ...call, input: Schema.String })),
  /** The node that has answered. */
  node: Schema.String,
});
export type Report = typeof Report.Type;

/** Shows that the caller may use the store: a digest of what is asked, under the store's key. */
const proof = { proof: Schema.String };

const told = { success: Report, error: ConversationError };

/** How the newest turn is; it starts nothing. */
const Look = Rpc.make("Look", { payload: proof, ...told });

/** Begins a turn or goes on with it, and says how it is. */
const Turn = Rpc.make("Turn", { payload: { ...Order.fields, ...proof }, ...told });

/** Cancels the running request of the newest turn in the user's name. */
const Cancel = Rpc.make("Cancel", { payload: { turn: Schema.Natural, ...proof }, ...told });

/** A conversation: an entity whose id is the chat's name. */
export const Conversation = Entity.make("Conversation", [Look, Turn, Cancel]);

/** What the proof of a call is a digest of. */
export const contentOf = (chat: string, name: "look" | "cancel", turn: number): string =>
  JSON.stringify(["conversation", chat, name, turn]);

/** What the proof of an order is a digest of. */
export const contentOfOrder = (chat: string, { go_on, text, turn, verdict }: Order): string =>
  JSON.stringify(["conversation", chat, "turn", turn, text ?? null, go_on ?? null, verdict ?? null]);
