/**
 * Names the decoder of each protocol.
 */
import { AnthropicMessages, Gemini, OpenAiChat, OpenAiResponses } from "../../../provider/index.ts";
import type { Protocol, ProtocolId } from "../../../provider/stream/Protocol.ts";

/** A protocol whose state is nobody's business. */
const opaque = <S>(protocol: Protocol<S>) => protocol as Protocol<unknown>; // a state only ever goes back into the protocol that made it

/** Every protocol by its id, in the order of the tables. */
export const protocols: Readonly<Record<ProtocolId, Protocol<unknown>>> = {
  "anthropic-messages": opaque(AnthropicMessages.protocol),
  "openai-chat": opaque(OpenAiChat.protocol),
  "openai-responses": opaque(OpenAiResponses.protocol),
  "google-gemini": opaque(Gemini.protocol),
};

/** The ids in the order of the tables. */
export const protocolIds = Object.keys(protocols) as ReadonlyArray<ProtocolId>; // the record's keys are the ids
