/**
 * Holds what was received and kept of a broken response: plain JSON that a runtime may store and read back.
 *
 * An item is a piece of the response in the words of its protocol, in the order in which it began. A piece that was cut stays an
 * item that is not `whole`: the builders decide what becomes of it.
 */
import * as Schema from "effect/Schema";
import { Label } from "../../domain/Limits.ts";

/**
 * One piece of a response. `call` is a call of the caller's own tools, `hosted` one that the provider runs, `result` its
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

const fields = {
  items: Schema.Array(ReceivedItem),
  /** How many choices (candidates) have spoken. */
  choices: Schema.Natural,
  /** The provider's terminal marker came, so that nothing of the response is missing. */
  whole: Schema.optionalKey(Schema.Boolean),
  /** More came than the limit allows to hold: nothing can be built from it. */
  overflow: Schema.Boolean,
};

/** The schema of what was received of one response, of whatever protocol. */
export const ReceivedAnswer = Schema.Struct({ protocol: Schema.String, ...fields });

/** The schema of what was received of one response of some protocols. */
export const receivedOf = <Id extends string>(protocols: ReadonlyArray<Id>) =>
  Schema.Struct({ protocol: Schema.Literals(protocols), ...fields });

/** What was received and kept of one response. */
export interface ReceivedAnswer<Id extends string = string> {
  readonly protocol: Id;
  readonly items: ReadonlyArray<ReceivedItem>;
  readonly choices: number;
  readonly whole?: boolean;
  readonly overflow: boolean;
}
