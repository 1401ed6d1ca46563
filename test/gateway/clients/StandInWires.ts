/**
 * Reads the frames of each protocol like a client that knows the protocol and nothing of the gateway.
 */
import { at, type ClientRule, type Frame, type Problem, type Taken, textAt } from "./StandIn.ts";

/** The parts of a rule that depend on the protocol. */
export type Wire = Pick<ClientRule, "path" | "body" | "take">;

const problemOf = (error: unknown, as: Problem["as"]): Problem => ({
  code: textAt(error, "code") ?? textAt(error, "type") ?? textAt(error, "status") ?? "",
  message: textAt(error, "message") ?? "",
  as,
});

const chat: Wire = {
  path: "/v1/chat/completions",
  body: (_, stream) => ({ model: "m", messages: [{ role: "user", content: "x" }], stream }),
  take: ({ data, json, kind }) => {
    if (kind !== "event") return {};
    if (data === "[DONE]") return {};
    if (at(json, "error") !== undefined) return { problem: problemOf(at(json, "error"), "error") };
    // OpenAI's helper reads `choices` of every chunk.
    if (!Array.isArray(at(json, "choices"))) return { broken: true };
    const text = textAt(json, "choices", 0, "delta", "content");
    const finish = textAt(json, "choices", 0, "finish_reason");
    return { ...(text === undefined ? {} : { text }), whole: finish !== undefined };
  },
};

const isType = (type: string) => (frame: Frame) => textAt(frame.json, "type") === type;

const responses: Wire = {
  path: "/v1/responses",
  body: (_, stream) => ({ model: "m", input: "x", stream }),
  take: ({ json, kind }, before) => {
    if (kind !== "event") return {};
    switch (textAt(json, "type")) {
      case "response.created": {
        const created = before.find(isType("response.created"));
        const other =
          created !== undefined && textAt(created.json, "response", "id") !== textAt(json, "response", "id");
        // "Lifecycle response identity changed": the helper rejects a second response.
        return { broken: other };
      }
      case "response.output_text.delta":
        return { text: textAt(json, "delta") ?? "" };
      case "response.completed":
        return { whole: true };
      case "response.failed":
        return { problem: problemOf(at(json, "response", "error"), "failed") };
      case "error":
        return {
          problem: at(json, "error") === undefined ? problemOf(json, "error") : problemOf(at(json, "error"), "nested"),
        };
      default:
        return {};
    }
  },
};

const anthropic: Wire = {
  path: "/v1/messages",
  body: (_, stream) => ({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "x" }], stream }),
  take: ({ json, kind }): Taken => {
    if (kind !== "event") return {};
    switch (textAt(json, "type")) {
      case "content_block_delta":
        return { text: textAt(json, "delta", "text") ?? "" };
      case "message_stop":
        return { whole: true };
      case "error":
        return { problem: problemOf(at(json, "error"), "error") };
      default:
        return {};
    }
  },
};

const gemini: Wire = {
  path: "/v1beta/models/m:streamGenerateContent?alt=sse",
  body: () => ({ contents: [{ role: "user", parts: [{ text: "x" }] }] }),
  take: ({ json, kind }) => {
    // Anything that is no event is added to the text that it parses as JSON next.
    if (kind === "comment") return { broken: true };
    if (at(json, "error") !== undefined)
      return { problem: problemOf(at(json, "error"), kind === "bare" ? "bare" : "error") };
    const finish = textAt(json, "candidates", 0, "finishReason");
    const text = textAt(json, "candidates", 0, "content", "parts", 0, "text");
    const thought = at(json, "candidates", 0, "content", "parts", 0, "thought") === true;
    return { ...(text === undefined || thought ? {} : { text }), whole: finish !== undefined };
  },
};

export const wires = {
  "openai-chat": chat,
  "openai-responses": responses,
  "anthropic-messages": anthropic,
  "google-gemini": gemini,
} as const;
