/**
 * Makes the smallest request of each protocol that streams text.
 */
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";

export const protocolIds: ReadonlyArray<ProtocolId> = protocols.ids;

const words = "Tell me a story";

/** A request that could go on: nothing in it forbids that. */
export const requestOf = (id: ProtocolId): Record<string, unknown> => {
  switch (id) {
    case "openai-chat":
      return { model: "fault-model", stream: true, messages: [{ role: "user", content: words }] };
    case "openai-responses":
      return { model: "fault-model", stream: true, store: false, input: [{ role: "user", content: words }] };
    case "anthropic-messages":
      return { model: "fault-model", stream: true, max_tokens: 1_024, messages: [{ role: "user", content: words }] };
    case "google-gemini":
      return { contents: [{ role: "user", parts: [{ text: words }] }] };
  }
};
