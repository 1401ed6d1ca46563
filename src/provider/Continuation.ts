/**
 * Builds the request that continues a broken response, from the original request and the parts that were kept.
 *
 * Pure: the caller passes the body that was sent, the collected parts, the outcome of each call and the available results, and gets a new
 * body. In the new body every kept call has exactly one result, and no incomplete call appears. While a call is open, no message asks for a
 * continuation. The last message is never the assistant's, unless the `seam` plan is a prefill: the request then ends with the shown text.
 */
import * as Result from "effect/Result";
import type * as Json from "../domain/Json.ts";
import * as Collector from "./continuation/Collector.ts";
import { type ContinuationError, type ContinuationInput, prepare, refusal } from "./continuation/Input.ts";
import { type ReceivedAnswer, receivedOf } from "./continuation/Received.ts";
import * as Turn from "./continuation/Turn.ts";
import { type ProtocolId, protocols, type WireProtocol } from "./Protocols.ts";
import type { Part } from "./stream/Protocol.ts";

export { type Collector, collectedBytesMax, make as collector, textOf } from "./continuation/Collector.ts";
export {
  bodyCharactersMax,
  type CallOutcome,
  type CallResult,
  ContinuationError,
  type ContinuationInput,
  sentences,
} from "./continuation/Input.ts";
export { ReceivedItem } from "./continuation/Received.ts";
export { seamWords } from "./continuation/SeamRequest.ts";
export { carryOn, cutCall, cutHosted, goOn, lostCall } from "./continuation/Words.ts";

/** The kept part of one response. */
export const Received = receivedOf(protocols.ids);
export type Received = ReceivedAnswer<ProtocolId>;

/**
 * Builds the body of the next request.
 *
 * @param protocol the protocol of the broken response
 * @param input the body that was sent, the kept part, the outcomes of the calls, and their results
 * @returns a new body, or ContinuationError that names the field
 */
export const build = (
  protocol: ProtocolId,
  input: ContinuationInput,
): Result.Result<Json.JsonRecord, ContinuationError> => buildIn(protocols.get(protocol), input);

/** Like `build`, for a protocol that need not be in the registry. */
export const buildIn = (
  { continuation, id, seamRefusal }: WireProtocol,
  input: ContinuationInput,
): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.flatMap(prepare(id, input), (prepared) => {
    // The plan in `seam` may have been made for another body, which allowed a continuation.
    const refused = prepared.seam === undefined ? undefined : seamRefusal(prepared.body);
    return refused === undefined ? continuation.build(prepared) : refusal("seam", "body", refused);
  });

/**
 * Adds the user's message after a response, in place of the message that asks for a continuation. The text is merged with a trailing user
 * message, because some servers refuse two in a row.
 *
 * @param protocol the protocol of the body
 * @param body the request so far, as parsed JSON; it is not changed
 * @param text the user's message
 */
export const userTurn = (protocol: ProtocolId, body: Json.JsonRecord, text: string): Json.JsonRecord =>
  Turn.userTurn(protocols.get(protocol).continuation.turn, body, text);

/** Selects the parts to collect and limits their size. */
export interface CollectOptions extends Collector.Options {
  /** The attempt's number in its run; default 1. */
  readonly attempt?: number;
  /** Ordinal of the last part to keep, from 1, as in `AttemptDiscarded.keep_through`; default all. */
  readonly keepThrough?: number;
}

/**
 * Collects one response from all its parts at once. `collector` collects it part by part.
 *
 * @param protocol the protocol of the parts
 * @param parts the attempt's parts in order
 */
export const collect = <Id extends string>(
  protocol: Id,
  parts: Iterable<Part>,
  options: CollectOptions = {},
): ReceivedAnswer<Id> => {
  const collector = Collector.make(protocol, options);
  let ordinal = 0;
  for (const part of parts) {
    ordinal += 1;
    if (ordinal > (options.keepThrough ?? Number.POSITIVE_INFINITY)) break;
    collector.take(options.attempt ?? 1, ordinal, part);
  }
  return collector.received();
};
