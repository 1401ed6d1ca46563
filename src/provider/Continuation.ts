/**
 * Builds the request that goes on with a broken response, from the request that asked for it and the parts that were kept of it.
 *
 * Pure: the caller gives the body that was sent, what it collected, what became of each call and the results that it has, and
 * gets a new body. In it every kept call has exactly one result, no call that was cut appears, nothing is asked to go on in
 * words while a call is open, and the last message is never the assistant's but with the `seam` of a provider that takes a prefill.
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

/** What was received and kept of one response. */
export const Received = receivedOf(protocols.ids);
export type Received = ReceivedAnswer<ProtocolId>;

/**
 * Builds the body of the next request.
 *
 * @param protocol the protocol of the broken response
 * @param input the body that was sent, what was received, what became of the calls, their results
 * @returns a new body, or ContinuationError that names the field
 */
export const build = (
  protocol: ProtocolId,
  input: ContinuationInput,
): Result.Result<Json.JsonRecord, ContinuationError> => buildIn(protocols.get(protocol), input);

/** `build` in a protocol that need not be in the registry. */
export const buildIn = (
  { continuation, id, seamRefusal }: WireProtocol,
  input: ContinuationInput,
): Result.Result<Json.JsonRecord, ContinuationError> =>
  Result.flatMap(prepare(id, input), (prepared) => {
    // The body may be another one than that which the seam was planned for.
    const refused = prepared.seam === undefined ? undefined : seamRefusal(prepared.body);
    return refused === undefined ? continuation.build(prepared) : refusal("seam", "body", refused);
  });

/**
 * Adds what the user says behind a response. The words by which the last response was to be gone on with give way to it, and a
 * message of the user's that stands last becomes one with it: some servers refuse two in a row.
 *
 * @param protocol the protocol of the body
 * @param body the request so far, as parsed JSON; it is not changed
 * @param text what the user says
 */
export const userTurn = (protocol: ProtocolId, body: Json.JsonRecord, text: string): Json.JsonRecord =>
  Turn.userTurn(protocols.get(protocol).continuation.turn, body, text);

/** Which parts are collected, and how much of them. */
export interface CollectOptions extends Collector.Options {
  /** The attempt's number in its run; default 1. */
  readonly attempt?: number;
  /** Ordinal of the last part that is kept, from 1; default all. What `AttemptDiscarded.keep_through` says. */
  readonly keepThrough?: number;
}

/**
 * Collects what was received of one response out of all its parts at once; `collector` does it part by part.
 *
 * @param protocol the protocol of the parts
 * @param parts the attempt's parts in their order
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
