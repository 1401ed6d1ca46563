/**
 * Builds the request that goes on with a broken answer, from the request that asked for it and what was kept of the answer.
 *
 * Pure: the caller gives the body that was sent, what it collected, what became of each call and the results that it has, and
 * gets a new body. In it every kept call has exactly one result, no call that was cut appears, nothing is asked to go on in
 * words while a call is open, and the last message is never the assistant's.
 */
import * as Result from "effect/Result";
import type * as Json from "../domain/Json.ts";
import { anthropicMessages } from "./anthropic/Continue.ts";
import * as Collector from "./Collector.ts";
import { type ContinuationError, type ContinuationInput, type Prepared, prepare } from "./continuation/Input.ts";
import type { Received } from "./continuation/Received.ts";
import { googleGemini } from "./gemini/Continue.ts";
import { openAiChat } from "./openai-chat/Continue.ts";
import { openAiResponses } from "./openai-responses/Continue.ts";
import type { Part, ProtocolId } from "./stream/Protocol.ts";

export { type Collector, collectedBytesMax, make as collector, textOf } from "./Collector.ts";
export {
  bodyCharactersMax,
  type CallOutcome,
  type CallResult,
  ContinuationError,
  type ContinuationInput,
  sentences,
} from "./continuation/Input.ts";
export { Received, ReceivedItem } from "./continuation/Received.ts";
export { userTurn } from "./continuation/Turn.ts";
export { carryOn, cutCall, cutHosted, goOn, lostCall } from "./continuation/Words.ts";

/**
 * Builds the body of the next request.
 *
 * @param protocol the protocol of the broken answer
 * @param input the body that was sent, what was received, what became of the calls, their results
 * @returns a new body, or ContinuationError that names the field
 */
export const build = (
  protocol: ProtocolId,
  input: ContinuationInput,
): Result.Result<Json.JsonRecord, ContinuationError> => Result.flatMap(prepare(protocol, input), builders[protocol]);

const builders: Record<ProtocolId, (prepared: Prepared) => Result.Result<Json.JsonRecord, ContinuationError>> = {
  "openai-chat": openAiChat,
  "openai-responses": openAiResponses,
  "anthropic-messages": anthropicMessages,
  "google-gemini": googleGemini,
};

/** Which parts are collected, and how much of them. */
export interface CollectOptions extends Collector.Options {
  /** The attempt's number in its run; default 1. */
  readonly attempt?: number;
  /** Ordinal of the last part that is kept, from 1; default all. What `AttemptDiscarded.keep_through` says. */
  readonly keepThrough?: number;
}

/**
 * Collects what was received of one answer out of all its parts at once; `collector` does it part by part.
 *
 * @param protocol the protocol of the parts
 * @param parts the attempt's parts in their order
 */
export const collect = (protocol: ProtocolId, parts: Iterable<Part>, options: CollectOptions = {}): Received => {
  const collector = Collector.make(protocol, options);
  let ordinal = 0;
  for (const part of parts) {
    ordinal += 1;
    if (ordinal > (options.keepThrough ?? Number.POSITIVE_INFINITY)) break;
    collector.take(options.attempt ?? 1, ordinal, part);
  }
  return collector.received();
};
