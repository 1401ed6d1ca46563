/**
 * The official SDKs as readers of a stream: the joined result, or the error that they throw.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { type LanguageModel, streamText } from "ai";
import OpenAI from "openai";
import { type LangChain, langChain } from "../../../scripts/langchain/LangChain.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";

/** An SDK's way to read a stream. */
export interface SdkReader {
  readonly name: string;
  readonly protocol: ProtocolId;
  /** Recordings that it cannot read. */
  readonly fails?: ReadonlyArray<string>;
  /**
   * Sends a request and reads to the end.
   *
   * @param origin address of the server, without a path
   * @param retries maximum retries of the SDK itself
   * @returns the joined result, as plain data
   */
  readonly read: (origin: string, retries: number) => Promise<unknown>;
}

const model = "m";
const apiKey = "k";
const messages = [{ role: "user" as const, content: "hi" }];
const openai = (origin: string, maxRetries: number) => new OpenAI({ apiKey, baseURL: `${origin}/v1`, maxRetries });
const anthropic = (origin: string, maxRetries: number) => new Anthropic({ apiKey, baseURL: origin, maxRetries });
const asked = { model, max_tokens: 99, messages };

/** All chunks as they arrive, without empty ones. */
const chunksOf = async <A>(stream: AsyncIterable<A>, says: (chunk: A) => boolean): Promise<ReadonlyArray<A>> => {
  const found: Array<A> = [];
  for await (const chunk of stream) if (says(chunk)) found.push(chunk);
  return found;
};

const chatSays = ({ choices, usage }: OpenAI.ChatCompletionChunk): boolean =>
  (usage ?? undefined) !== undefined ||
  choices.some(({ delta, finish_reason }) => finish_reason !== null || Object.keys(delta).length > 0);

/** Fields that differ between readings: times, and names that the SDK generates. */
const measured = new Set(["performance", "request", "headers", "timestamp", "toolCallId", "messageId"]);

const aiSdk = async (chosen: LanguageModel, maxRetries: number): Promise<unknown> => {
  const result = streamText({ model: chosen, prompt: "hi", maxRetries, onError: () => undefined });
  const parts: Array<unknown> = [];
  // The start and the end of a text are parts, too: a no-op must not close and open a text.
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    parts.push(part);
  }
  const { id, modelId } = await result.response;
  const all = { parts, id, modelId, text: await result.text, calls: await result.toolCalls, usage: await result.usage };
  const made = (text: string): boolean => /^(?:(?:aitxt|call|msg)-.*|[A-Za-z0-9]{16})$/.test(text);
  return JSON.parse(
    JSON.stringify(all, (key, value) =>
      measured.has(key) || (typeof value === "string" && made(value)) ? null : value,
    ),
  );
};

const langChainReader =
  ({ AIMessageChunk, ChatOpenAI }: LangChain, useResponsesApi: boolean): SdkReader["read"] =>
  async (origin, maxRetries) => {
    const configuration = { baseURL: `${origin}/v1` };
    const chat = new ChatOpenAI({ model, apiKey, configuration, maxRetries, useResponsesApi });
    let all = new AIMessageChunk("");
    for await (const chunk of await chat.stream("hi")) all = all.concat(chunk);
    const { content, id, response_metadata, tool_calls, usage_metadata } = all;
    return { content, id, response_metadata, tool_calls, usage_metadata };
  };

const langChainReaders: ReadonlyArray<SdkReader> =
  langChain === undefined
    ? []
    : [
        { name: "LangChain", protocol: "openai-chat", read: langChainReader(langChain, false) },
        {
          name: "LangChain",
          protocol: "openai-responses",
          fails: ["reasoning-text"], // it requires a summary, which the recorded reasoning lacks
          read: langChainReader(langChain, true),
        },
      ];

export const sdkReaders: ReadonlyArray<SdkReader> = [
  {
    name: "openai, raw",
    protocol: "openai-chat",
    read: async (origin, retries) =>
      chunksOf(await openai(origin, retries).chat.completions.create({ model, messages, stream: true }), chatSays),
  },
  {
    name: "openai, chat.completions.stream()",
    protocol: "openai-chat",
    read: (origin, retries) =>
      openai(origin, retries).chat.completions.stream({ model, messages }).finalChatCompletion(),
  },
  {
    name: "AI SDK, openai.chat",
    protocol: "openai-chat",
    read: (origin, retries) => aiSdk(createOpenAI({ apiKey, baseURL: `${origin}/v1` }).chat(model), retries),
  },
  {
    name: "AI SDK, openai-compatible",
    protocol: "openai-chat",
    read: (origin, retries) =>
      aiSdk(createOpenAICompatible({ name: "c", apiKey, baseURL: `${origin}/v1` })(model), retries),
  },
  {
    name: "openai, raw",
    protocol: "openai-responses",
    read: async (origin, retries) =>
      chunksOf(
        await openai(origin, retries).responses.create({ model, input: "hi", stream: true }),
        ({ type }) => (type as string) !== "keepalive", // its types lack this event of OpenAI
      ),
  },
  {
    name: "openai, responses.stream()",
    protocol: "openai-responses",
    read: (origin, retries) => openai(origin, retries).responses.stream({ model, input: "hi" }).finalResponse(),
  },
  {
    name: "AI SDK, openai.responses",
    protocol: "openai-responses",
    read: (origin, retries) => aiSdk(createOpenAI({ apiKey, baseURL: `${origin}/v1` }).responses(model), retries),
  },
  {
    name: "anthropic, raw",
    protocol: "anthropic-messages",
    read: async (origin, retries) =>
      chunksOf(await anthropic(origin, retries).messages.create({ ...asked, stream: true }), () => true),
  },
  {
    name: "anthropic, messages.stream()",
    protocol: "anthropic-messages",
    read: (origin, retries) => anthropic(origin, retries).messages.stream(asked).finalMessage(),
  },
  {
    name: "AI SDK, anthropic",
    protocol: "anthropic-messages",
    read: (origin, retries) => aiSdk(createAnthropic({ apiKey, baseURL: `${origin}/v1` })(model), retries),
  },
  {
    name: "google-genai",
    protocol: "google-gemini",
    read: async (origin) => {
      const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: origin } });
      const stream = await client.models.generateContentStream({ model, contents: "hi" });
      const parts: Array<unknown> = [];
      for await (const { candidates, usageMetadata } of stream) {
        for (const part of candidates?.[0]?.content?.parts ?? []) if (part.text !== "") parts.push(part);
        parts.push(candidates?.[0]?.finishReason, usageMetadata);
      }
      return parts.filter((part) => part !== undefined);
    },
  },
  {
    name: "AI SDK, google",
    protocol: "google-gemini",
    read: (origin, retries) => aiSdk(createGoogleGenerativeAI({ apiKey, baseURL: `${origin}/v1beta` })(model), retries),
  },
  ...langChainReaders,
];
