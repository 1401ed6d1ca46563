/**
 * Writes requests of Amazon Bedrock's `converse-stream`.
 */
import type { Prompt } from "effect/ai";
import * as Json from "../../domain/Json.ts";
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

const protocol = "bedrock-converse";

/** Writes the body of a streaming request. Throws an `AiError` for content that the protocol cannot express. */
export const writeBedrockConverse = (written: Written): Body => {
  const schema = answerSchema(written);
  const system = systemOf(written.prompt);
  return {
    ...(system.length === 0 ? {} : { system: system.map((text) => ({ text })) }),
    messages: turnsOf(written.prompt, contentOf),
    ...toolsOf(written),
    ...(schema === undefined ? {} : { outputConfig: { textFormat: formatOf(schema) } }),
  };
};

const formatOf = ({ name, schema }: NonNullable<ReturnType<typeof answerSchema>>) => ({
  type: "json_schema",
  structure: { jsonSchema: { name, schema: JSON.stringify(schema) } },
});

const toolsOf = ({ toolChoice, tools }: Written): Body => {
  const { callers, hosted } = splitTools(tools);
  const [tool] = hosted;
  if (tool !== undefined) throw unsupportedError(protocol, `the tool ${tool.name}, which the provider would run`);
  const chosen = choice(toolChoice);
  // The API has no tool choice for none, and refuses a list without tools.
  if (callers.length === 0 || chosen === "none") return {};
  const toolChoices = { auto: { auto: {} }, required: { any: {} } };
  return {
    toolConfig: {
      tools: callers.map(({ description, name, parameters }) => ({
        toolSpec: {
          name,
          ...(description === undefined ? {} : { description }),
          inputSchema: { json: parameters },
        },
      })),
      toolChoice: typeof chosen === "string" ? toolChoices[chosen] : { tool: { name: chosen.tool } },
    },
  };
};

const contentOf = (message: Prompt.Message): ReadonlyArray<Body> => {
  switch (message.role) {
    case "system":
      return [];
    case "user":
      return message.content.flatMap((part) => (part.type === "text" ? textOf(part.text) : [file(part)]));
    case "assistant":
      return message.content.flatMap(assistantPart);
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result"
          ? [
              {
                toolResult: {
                  toolUseId: part.id,
                  content: [{ text: resultText(part) }],
                  ...(part.isFailure ? { status: "error" } : {}),
                },
              },
            ]
          : [],
      );
  }
};

/** Omits empty text, because the API refuses empty text blocks. */
const textOf = (text: string): ReadonlyArray<Body> => (text === "" ? [] : [{ text }]);

const file = (part: Prompt.FilePart): Body => {
  const data = fileOf(part);
  const media = mediaTypeOf(part);
  const format = media.slice(media.indexOf("/") + 1);
  if (!("base64" in data)) throw unsupportedError(protocol, "files by address");
  const source = { bytes: data.base64 };
  if (media.startsWith("image/")) return { image: { format, source } };
  if (media === "application/pdf") return { document: { format, name: "document", source } };
  throw unsupportedError(protocol, media);
};

/** Converts an assistant part. Reasoning is sent back with its signature; without one, the API refuses it, so it is omitted. */
const assistantPart = (part: Prompt.AssistantMessagePart): ReadonlyArray<Body> => {
  if (part.type === "text") return textOf(part.text);
  if (part.type === "tool-call" && !part.providerExecuted)
    return [{ toolUse: { toolUseId: part.id, name: part.name, input: Json.record(part.params) ?? {} } }];
  if (part.type !== "reasoning") return [];
  const { redacted_data, signature } = providerFieldsOf(protocol, part.options);
  if (Json.string(redacted_data) !== "") return [{ reasoningContent: { redactedContent: redacted_data } }];
  return Json.string(signature) === "" ? [] : [{ reasoningContent: { reasoningText: { text: part.text, signature } } }];
};
