/**
 * Writes requests in the OpenAI Chat Completions protocol.
 */
import type { Prompt } from "effect/ai";
import * as Json from "../../domain/Json.ts";
import {
  answerSchema,
  type Body,
  choice,
  fileOf,
  providerFieldsOf,
  resultText,
  splitTools,
  unsupportedError,
  type Written,
} from "./Request.ts";

const protocol = "openai-chat";

/** Writes the body of a streaming request that asks for usage. */
export const writeOpenAiChat = (written: Written): Body => {
  const schema = answerSchema(written);
  return {
    model: written.model,
    stream: true,
    stream_options: { include_usage: true },
    messages: written.prompt.content.flatMap(writeMessages),
    ...toolsOf(written),
    ...(schema === undefined
      ? {}
      : { response_format: { type: "json_schema", json_schema: { ...schema, strict: true } } }),
  };
};

const toolsOf = ({ toolChoice, tools }: Written): Body => {
  const { callers, hosted } = splitTools(tools);
  if (tools.length === 0) return {};
  const chosen = choice(toolChoice);
  return {
    tools: [
      ...callers.map(({ description, name, parameters, strict }) => ({
        type: "function",
        function: {
          name,
          ...(description === undefined ? {} : { description }),
          parameters,
          ...(strict === undefined ? {} : { strict }),
        },
      })),
      ...hosted.map(({ args, type }) => ({ type, ...args })),
    ],
    tool_choice: typeof chosen === "string" ? chosen : { type: "function", function: { name: chosen.tool } },
  };
};

const writeMessages = (message: Prompt.Message): ReadonlyArray<Body> => {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }];
    case "user":
      return [{ role: "user", content: userContent(message.content) }];
    case "assistant":
      return assistant(message);
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result" ? [{ role: "tool", tool_call_id: part.id, content: resultText(part) }] : [],
      );
  }
};

/** Sends text without files as a string, because many servers accept nothing else. */
const userContent = (parts: ReadonlyArray<Prompt.UserMessagePart>): unknown =>
  parts.every((part) => part.type === "text")
    ? parts.map((part) => (part.type === "text" ? part.text : "")).join("\n")
    : parts.map((part) => (part.type === "text" ? { type: "text", text: part.text } : file(part)));

const file = (part: Prompt.FilePart): Body => {
  const data = fileOf(part);
  const { mediaType } = part;
  if (mediaType.startsWith("image/")) return { type: "image_url", image_url: { url: data.url } };
  if (!("base64" in data)) throw unsupportedError(protocol, `${mediaType} by its address`);
  if (mediaType.startsWith("audio/"))
    return {
      type: "input_audio",
      input_audio: { data: data.base64, format: mediaType.includes("wav") ? "wav" : "mp3" },
    };
  return { type: "file", file: { filename: part.fileName ?? "file", file_data: data.url } };
};

/** Includes reasoning in the same field in which it arrived, because a provider that reasons between calls (DeepSeek) requires that. */
const assistant = (message: Prompt.AssistantMessage): ReadonlyArray<Body> => {
  const { content } = message;
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("");
  const calls = content.flatMap((part) =>
    part.type === "tool-call" && !part.providerExecuted
      ? [{ id: part.id, type: "function", function: { name: part.name, arguments: JSON.stringify(part.params) } }]
      : [],
  );
  if (text === "" && calls.length === 0) return [];
  const thoughts = content.filter((part) => part.type === "reasoning");
  const field = Json.string(providerFieldsOf(protocol, thoughts[0]?.options ?? {}).field);
  const thought = thoughts.map((part) => part.text).join("");
  return [
    {
      role: "assistant",
      content: text === "" ? null : text,
      ...(field === "reasoning_content" && calls.length > 0 ? { reasoning_content: thought } : {}),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
  ];
};
