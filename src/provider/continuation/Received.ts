/**
 * Describes the kept part of a broken response: plain JSON that a runtime may store and read back.
 *
 * Each item is a piece of the response in its protocol's own form, in the order in which the items began. A piece that was cut is kept as
 * an item that is not `whole`, and the builders decide what to do with it.
 */
import * as Schema from "effect/Schema";
import { Label } from "../../domain/Limits.ts";

/**
 * One piece of a response. `call` is a call of the caller's own tools, `hosted` a call that the provider runs, `result` its result, and
 * `note` protocol data about a call.
 */
export const ReceivedItem = Schema.Struct({
  type: Schema.Literals(["text", "reasoning", "call", "hosted", "result", "note"]),
  /** True if the provider has finished the item. A call also has to be complete and valid. */
  whole: Schema.Boolean,
  /**
   * The attempt in which the item began and, for a call, the call's key in that attempt. The run's record of tool calls uses the same pair.
   */
  attempt: Schema.Natural,
  call: Schema.optionalKey(Label),
  /** The item in the protocol's form. A call also has `input`, its complete argument text. */
  json: Schema.Record(Schema.String, Schema.Unknown),
});
export type ReceivedItem = typeof ReceivedItem.Type;

const fields = {
  items: Schema.Array(ReceivedItem),
  /** Number of choices (candidates) that have content. */
  choices: Schema.Natural,
  /** True if the provider's terminal marker has arrived, so that the response is complete. */
  whole: Schema.optionalKey(Schema.Boolean),
  /** True if the response exceeded the limit of the collector. No continuation can then be built from it. */
  overflow: Schema.Boolean,
};

/** Schema of the kept part of one response, of any protocol. */
export const ReceivedAnswer = Schema.Struct({ protocol: Schema.String, ...fields });

/** Returns the schema of the kept part of one response, limited to some protocols. */
export const receivedOf = <Id extends string>(protocols: ReadonlyArray<Id>) =>
  Schema.Struct({ protocol: Schema.Literals(protocols), ...fields });

/** The kept part of one response. */
export interface ReceivedAnswer<Id extends string = string> {
  readonly protocol: Id;
  readonly items: ReadonlyArray<ReceivedItem>;
  readonly choices: number;
  readonly whole?: boolean;
  readonly overflow: boolean;
}
