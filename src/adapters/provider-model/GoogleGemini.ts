/**
 * Writes requests for Google Gemini, `streamGenerateContent`.
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
  type Written,
} from "./Request.ts";

const protocol = "google-gemini";

/** Writes the body of a request. The model and the streaming mode are in the address. */
export const writeGoogleGemini = (written: Written): Body => {
  const schema = answerSchema(written);
  const system = systemOf(written.prompt);
  return {
    ...(system.length === 0 ? {} : { systemInstruction: { parts: system.map((text) => ({ text })) } }),
    contents: turnsOf(written.prompt, partsOf).map(({ content, role }) => ({
      role: role === "assistant" ? "model" : role,
      parts: content,
    })),
    ...toolsOf(written),
    ...(schema === undefined
      ? {}
      : { generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema.schema } }),
  };
};

const words = { auto: "AUTO", none: "NONE", required: "ANY" } as const;

const toolsOf = ({ toolChoice, tools }: Written): Body => {
  const { callers, hosted } = splitTools(tools);
  if (tools.length === 0) return {};
  const chosen = choice(toolChoice);
  const functionDeclarations = callers.map(({ description, name, parameters }) => ({
    name,
    ...(description === undefined ? {} : { description }),
    parametersJsonSchema: parameters,
  }));
  return {
    tools: [
      ...(callers.length === 0 ? [] : [{ functionDeclarations }]),
      ...hosted.map(({ args, name }) => ({ [toCamelCase(name)]: args })),
    ],
    ...(callers.length === 0
      ? {}
      : {
          toolConfig: {
            functionCallingConfig:
              typeof chosen === "string"
                ? { mode: words[chosen] }
                : { mode: "ANY", allowedFunctionNames: [chosen.tool] },
          },
        }),
  };
};

const toCamelCase = (name: string): string => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

const partsOf = (message: Prompt.Message): ReadonlyArray<Body> => {
  switch (message.role) {
    case "system":
      return [];
    case "user":
      return message.content.map((part) => (part.type === "text" ? { text: part.text } : file(part)));
    case "assistant":
      return message.content.flatMap(assistantPart);
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result" ? [{ functionResponse: { name: part.name, response: response(part) } }] : [],
      );
  }
};

/** Wraps the result of a tool in an object, because the protocol requires an object. */
const response = (part: Prompt.ToolResultPart): Body =>
  part.isFailure
    ? { error: resultText(part) }
    : { result: part.modelOutput === undefined ? part.result : resultText(part) };

const file = (part: Prompt.FilePart): Body => {
  const data = fileOf(part);
  const mimeType = mediaTypeOf(part);
  return "base64" in data
    ? { inlineData: { mimeType, data: data.base64 } }
    : { fileData: { mimeType, fileUri: data.url } };
};

/**
 * Converts an assistant part. A thought signature is sent back on the part with which it arrived. Without it, Gemini 3 refuses the calls of
 * the last turn.
 */
const assistantPart = (part: Prompt.AssistantMessagePart): ReadonlyArray<Body> => {
  const thoughtSignature = Json.string(
    providerFieldsOf(protocol, "options" in part ? part.options : {}).thought_signature,
  );
  const signed = thoughtSignature === "" ? {} : { thoughtSignature };
  if (part.type === "text") return part.text === "" && thoughtSignature === "" ? [] : [{ text: part.text, ...signed }];
  if (part.type === "tool-call" && !part.providerExecuted)
    return [{ functionCall: { name: part.name, args: part.params }, ...signed }];
  // Thoughts are summaries for people. Only their signatures are of use to the model.
  return [];
};
