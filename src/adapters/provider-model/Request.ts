/**
 * Defines the input of requests, and the conversions that several protocols need.
 */
import { Context } from "effect";
import {
  AiError,
  AnthropicStructuredOutput,
  type LanguageModel,
  OpenAiStructuredOutput,
  Prompt,
  Tool,
} from "effect/ai";
import * as Json from "../../domain/Json.ts";
import type { ProtocolId } from "../../provider/Protocols.ts";

/** The input of a request. */
export interface Written {
  readonly protocol: ProtocolId;
  readonly model: string;
  readonly prompt: Prompt.Prompt;
  readonly tools: ReadonlyArray<Tool.Any>;
  readonly toolChoice: LanguageModel.ProviderOptions["toolChoice"];
  readonly responseFormat: LanguageModel.ProviderOptions["responseFormat"];
}

/** The JSON object of a request's body. */
export type Body = Record<string, unknown>;

/** Returns the transformer that adapts schemas to the structured outputs of a protocol; undefined if the protocol accepts any schema. */
export const codecTransformer = (protocol: ProtocolId): LanguageModel.CodecTransformer | undefined => codecs[protocol];

const codecs: Partial<Record<ProtocolId, LanguageModel.CodecTransformer>> = {
  "openai-chat": OpenAiStructuredOutput.toCodecOpenAI,
  "openai-responses": OpenAiStructuredOutput.toCodecOpenAI,
  "anthropic-messages": AnthropicStructuredOutput.toCodecAnthropic,
  "bedrock-converse": AnthropicStructuredOutput.toCodecAnthropic,
  "bedrock-invoke": AnthropicStructuredOutput.toCodecAnthropic,
};

/** Returns the JSON schema of a structured response; undefined for text. */
export const answerSchema = (
  written: Written,
): { readonly name: string; readonly schema: Json.JsonRecord } | undefined => {
  const { protocol, responseFormat } = written;
  if (responseFormat.type === "text") return undefined;
  const transformer = codecTransformer(protocol);
  const schema = Tool.getJsonSchemaFromSchema(responseFormat.schema, transformer === undefined ? {} : { transformer });
  return { name: responseFormat.objectName, schema };
};

/** A tool of the caller's toolkit. */
export interface CallerTool {
  readonly name: string;
  readonly description: string | undefined;
  readonly parameters: Json.JsonRecord;
  readonly strict: boolean | undefined;
}

/** Splits the tools of a request: the caller's tools, and the tools that the provider runs, with their types and arguments. */
export const splitTools = (tools: ReadonlyArray<Tool.Any>) => {
  const callers: Array<CallerTool> = [];
  const hosted: Array<{ readonly type: string; readonly name: string; readonly args: Json.JsonRecord }> = [];
  for (const tool of tools) {
    if (Tool.isProviderDefined(tool)) {
      // The id consists of the vendor and the type, for example `openai.web_search`.
      const type = tool.id.slice(tool.id.indexOf(".") + 1);
      hosted.push({ type, name: tool.providerName, args: Json.record(tool.args) ?? {} });
    } else {
      callers.push({
        name: String(tool.name),
        description: Tool.getDescription(tool),
        parameters: Tool.getJsonSchema(tool),
        strict: Context.get(tool.annotations, Tool.Strict),
      });
    }
  }
  return { callers, hosted };
};

/** Returns the tool choice as `auto`, `none` or `required`, or the name of the one required tool. */
export const choice = (toolChoice: Written["toolChoice"]): "auto" | "none" | "required" | { readonly tool: string } => {
  if (typeof toolChoice === "string") return toolChoice;
  if ("tool" in toolChoice) return { tool: String(toolChoice.tool) };
  // The request already contains only the allowed tools.
  return toolChoice.mode ?? "auto";
};

/** Returns the result of a tool as text: its output for the model, or else its result as JSON. */
export const resultText = ({ modelOutput, result }: Prompt.ToolResultPart): string => {
  if (modelOutput !== undefined) return Prompt.toolModelOutputToText(modelOutput);
  return typeof result === "string" ? result : (JSON.stringify(result) ?? "null");
};

/** Returns the address of a file, or its content in base64. */
export const fileOf = (
  part: Prompt.FilePart,
): { readonly url: string } | { readonly base64: string; readonly url: string } => {
  if (part.data instanceof URL) return { url: part.data.href };
  if (typeof part.data === "string" && /^(https?|data|gs):/.test(part.data)) {
    const base64 = /^data:[^,]*;base64,(.*)$/s.exec(part.data)?.[1];
    return base64 === undefined ? { url: part.data } : { base64, url: part.data };
  }
  const base64 = typeof part.data === "string" ? part.data : Buffer.from(part.data).toString("base64");
  return { base64, url: `data:${mediaTypeOf(part)};base64,${base64}` };
};

/** Replaces `image/*`, because providers require a concrete format. */
export const mediaTypeOf = ({ mediaType }: Prompt.FilePart): string =>
  mediaType === "image/*" ? "image/jpeg" : mediaType;

/** Returns the fields that must be sent back to the provider with a part. They are stored under the name of the protocol. */
export const providerFieldsOf = (protocol: ProtocolId, options: Prompt.ProviderOptions): Json.JsonRecord =>
  Json.record(options[protocol]) ?? {};

/** Returns the texts of all system messages. */
export const systemOf = (prompt: Prompt.Prompt): ReadonlyArray<string> =>
  prompt.content.flatMap((message) => (message.role === "system" ? [message.content] : []));

/** Consecutive content of one side of a conversation. */
interface Turn {
  readonly role: "user" | "assistant";
  readonly content: ReadonlyArray<Body>;
}

/**
 * Groups a conversation into turns, for protocols in which the two sides must alternate. Tool results belong to the user. Consecutive
 * messages of the same side are joined.
 *
 * @param contentOf converts the content of a message to the protocol
 */
export const turnsOf = (
  prompt: Prompt.Prompt,
  contentOf: (message: Prompt.Message) => ReadonlyArray<Body>,
): ReadonlyArray<Turn> => {
  const found: Array<Turn> = [];
  for (const message of prompt.content) {
    const content = contentOf(message);
    if (content.length === 0) continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const last = found.at(-1);
    if (last?.role === role) found[found.length - 1] = { role, content: [...last.content, ...content] };
    else found.push({ role, content });
  }
  return found;
};

/** Creates the error for a part that a protocol cannot express. */
export const unsupportedError = (protocol: ProtocolId, what: string): AiError.AiError =>
  AiError.make({
    module: "ProviderModel",
    method: "streamText",
    reason: new AiError.InvalidUserInputError({ description: `${protocol} does not support ${what}` }),
  });
