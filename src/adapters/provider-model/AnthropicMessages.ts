/**
 * Writes requests in the Anthropic Messages protocol, for Anthropic and for Amazon Bedrock.
 */
import type { Prompt } from "effect/ai";
import * as Json from "../../domain/Json.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";
import {
  answerSchema,
  type Body,
  choice,
  fileOf,
  mediaTypeOf,
  providerFieldsOf,
  resultText,
  splitTools,
  systemOf,
  turnsOf,
  unsupportedError,
  type Written,
} from "./Request.ts";

/** Default maximum number of tokens in a response. The protocol requires a value and has no default. */
export const maxTokensDefault = 8_192;

/** Writes the body of a streaming request. Throws an `AiError` for content that the protocol cannot express. */
export const writeAnthropicMessages = (written: Written): Body => {
  const schema = answerSchema(written);
  const system = systemOf(written.prompt);
  return {
    model: written.model,
    stream: true,
    max_tokens: maxTokensDefault,
    ...(system.length === 0 ? {} : { system: system.map((text) => ({ type: "text", text })) }),
    messages: turnsOf(written.prompt, (message) => contentOf(message, written.protocol)),
    ...toolsOf(written),
    ...(schema === undefined ? {} : { output_config: { format: { type: "json_schema", schema: schema.schema } } }),
  };
};

/** Writes the body of Bedrock's `invoke`: its address names the model and asks for the stream. */
export const writeBedrockInvoke = (written: Written): Body => {
  const { model: _, stream: _s, ...body } = writeAnthropicMessages(written);
  return { anthropic_version: "bedrock-2023-05-31", ...body };
};

const words = { auto: "auto", none: "none", required: "any" } as const;

const toolsOf = ({ toolChoice, tools }: Written): Body => {
  const { callers, hosted } = splitTools(tools);
  if (tools.length === 0) return {};
  const chosen = choice(toolChoice);
  return {
    tools: [
      ...callers.map(({ description, name, parameters }) => ({
        name,
        ...(description === undefined ? {} : { description }),
        input_schema: parameters,
      })),
      ...hosted.map(({ args, name, type }) => ({ type, name, ...args })),
    ],
    tool_choice: typeof chosen === "string" ? { type: words[chosen] } : { type: "tool", name: chosen.tool },
  };
};

const contentOf = (message: Prompt.Message, protocol: ProtocolId): ReadonlyArray<Body> => {
  switch (message.role) {
    case "system":
      return [];
    case "user":
      return message.content.flatMap((part) => (part.type === "text" ? textOf(part.text) : [file(part, protocol)]));
    case "assistant":
      return message.content.flatMap((part) => assistantPart(part, protocol));
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result"
          ? [
              {
                type: "tool_result",
                tool_use_id: part.id,
                content: resultText(part),
                ...(part.isFailure ? { is_error: true } : {}),
              },
            ]
          : [],
      );
  }
};

/** Omits empty text, because Anthropic refuses empty text blocks. */
const textOf = (text: string): ReadonlyArray<Body> => (text === "" ? [] : [{ type: "text", text }]);

const file = (part: Prompt.FilePart, protocol: ProtocolId): Body => {
  const data = fileOf(part);
  const media_type = mediaTypeOf(part);
  const source = "base64" in data ? { type: "base64", media_type, data: data.base64 } : { type: "url", url: data.url };
  if (media_type.startsWith("image/")) return { type: "image", source };
  if (media_type === "application/pdf") return { type: "document", source };
  if (media_type.startsWith("text/") && "base64" in data) {
    const text = Buffer.from(data.base64, "base64").toString("utf8");
    return { type: "document", source: { type: "text", media_type: "text/plain", data: text } };
  }
  throw unsupportedError(protocol, media_type);
};

/**
 * Converts an assistant part. Thinking is sent back with its signature, by which the API detects changes. The API refuses thinking without
 * a signature, so such thinking is omitted.
 */
const assistantPart = (part: Prompt.AssistantMessagePart, protocol: ProtocolId): ReadonlyArray<Body> => {
  if (part.type === "text") return textOf(part.text);
  if (part.type === "tool-call" && !part.providerExecuted)
    return [{ type: "tool_use", id: part.id, name: part.name, input: Json.record(part.params) ?? {} }];
  if (part.type !== "reasoning") return [];
  const { redacted_data, signature } = providerFieldsOf(protocol, part.options);
  if (Json.string(redacted_data) !== "") return [{ type: "redacted_thinking", data: redacted_data }];
  return Json.string(signature) === "" ? [] : [{ type: "thinking", thinking: part.text, signature }];
};
