/**
 * Names the four protocols and reads the serials of decoded parts.
 */
import * as AnthropicMessages from "../../src/provider/anthropic/Decode.ts";
import * as Gemini from "../../src/provider/gemini/Decode.ts";
import * as OpenAiChat from "../../src/provider/openai-chat/Decode.ts";
import * as OpenAiResponses from "../../src/provider/openai-responses/Decode.ts";
import type { Part, Protocol, ProtocolId } from "../../src/provider/stream/Protocol.ts";

/** A protocol whose state is nobody's business. */
const opaque = <S>(protocol: Protocol<S>) => protocol as Protocol<unknown>; // a state only ever goes back into the protocol that made it

export const protocols: Record<ProtocolId, Protocol<unknown>> = {
  "openai-chat": opaque(OpenAiChat.protocol),
  "openai-responses": opaque(OpenAiResponses.protocol),
  "anthropic-messages": opaque(AnthropicMessages.protocol),
  "google-gemini": opaque(Gemini.protocol),
};

/** Serials of deltas in the order of their first coming; Responses repeats the text in its done events. */
export const serialsOf = (parts: ReadonlyArray<Part>): ReadonlyArray<string> => [
  ...new Set(parts.flatMap((part) => [...part.event.data.matchAll(/r\d+\.\d+·/g)].map((match) => match[0]))),
];
