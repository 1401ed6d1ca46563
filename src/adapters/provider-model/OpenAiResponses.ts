/**
 * Writes requests in the OpenAI Responses protocol. The provider stores nothing, so every request contains the whole conversation.
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

const protocol = "openai-responses";

/** Writes the body of a streaming request whose response is not stored. */
export const writeOpenAiResponses = (written: Written): Body => {
  const schema = answerSchema(written);
  return {
    model: written.model,
    stream: true,
    store: false,
    input: written.prompt.content.flatMap(items),
    ...toolsOf(written),
    ...(schema === undefined ? {} : { text: { format: { type: "json_schema", ...schema, strict: true } } }),
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
        name,
        ...(description === undefined ? {} : { description }),
        parameters,
        // The API's default is true, which refuses schemas that are not written for strict mode.
        strict: strict ?? false,
      })),
      ...hosted.map(({ args, type }) => ({ type, ...args })),
    ],
    tool_choice: typeof chosen === "string" ? chosen : { type: "function", name: chosen.tool },
  };
};

const items = (message: Prompt.Message): ReadonlyArray<Body> => {
  switch (message.role) {
    case "system":
      return [{ role: "system", content: message.content }];
    case "user":
      return [{ role: "user", content: message.content.map(userPart) }];
    case "assistant":
      return assistant(message);
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result"
          ? [{ type: "function_call_output", call_id: part.id, output: resultText(part) }]
          : [],
      );
  }
};

const userPart = (part: Prompt.UserMessagePart): Body => {
  if (part.type === "text") return { type: "input_text", text: part.text };
  const data = fileOf(part);
  if (part.mediaType.startsWith("image/")) return { type: "input_image", image_url: data.url };
  if (part.mediaType.startsWith("audio/")) throw unsupportedError(protocol, part.mediaType);
  if (!("base64" in data)) return { type: "input_file", file_url: data.url };
  return { type: "input_file", filename: part.fileName ?? "file", file_data: data.url };
};

/** Sends reasoning back only with its encrypted content. Since responses are not stored, the id of a reasoning item alone is useless. */
const assistant = (message: Prompt.AssistantMessage): ReadonlyArray<Body> =>
  message.content.flatMap((part): ReadonlyArray<Body> => {
    if (part.type === "text")
      return part.text === "" ? [] : [{ role: "assistant", content: [{ type: "output_text", text: part.text }] }];
    if (part.type === "tool-call" && !part.providerExecuted)
      return [{ type: "function_call", call_id: part.id, name: part.name, arguments: JSON.stringify(part.params) }];
    if (part.type !== "reasoning") return [];
    const { encrypted_content, item_id } = providerFieldsOf(protocol, part.options);
    if (Json.string(encrypted_content) === "") return [];
    const summary = part.text === "" ? [] : [{ type: "summary_text", text: part.text }];
    return [{ type: "reasoning", id: item_id, summary, encrypted_content }];
  });
