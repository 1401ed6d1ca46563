/**
 * The official SDKs as readers of a stream: what each puts together, or the error that it throws.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import { AIMessageChunk } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { type LanguageModel, streamText } from "ai";
import OpenAI from "openai";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";

/** One way in which an SDK reads a stream. */
export interface SdkReader {
  readonly name: string;
  readonly protocol: ProtocolId;
  /** Recordings that it cannot read as they are. */
  readonly fails?: ReadonlyArray<string>;
  /**
   * Asks and reads to the end.
   *
   * @param origin of the server, without a path
   * @param retries how often the SDK may ask again by itself
   * @returns what it put together, as plain data
   */
  readonly read: (origin: string, retries: number) => Promise<unknown>;
}

const model = "m";
const apiKey = "k";
const messages = [{ role: "user" as const, content: "hi" }];
const openai = (origin: string, maxRetries: number) => new OpenAI({ apiKey, baseURL: `${origin}/v1`, maxRetries });
const anthropic = (origin: string, maxRetries: number) => new Anthropic({ apiKey, baseURL: origin, maxRetries });
const asked = { model, max_tokens: 99, messages };

/** All chunks as they came, without those that say nothing. */
const chunksOf = async <A>(stream: AsyncIterable<A>, says: (chunk: A) => boolean): Promise<ReadonlyArray<A>> => {
  const found: Array<A> = [];
  for await (const chunk of stream) if (says(chunk)) found.push(chunk);
  return found;
};

const chatSays = ({ choices, usage }: OpenAI.ChatCompletionChunk): boolean =>
  (usage ?? undefined) !== undefined ||
  choices.some(({ delta, finish_reason }) => finish_reason !== null || Object.keys(delta).length > 0);

/** What differs from one reading to the next: times, and names that the SDK makes. */
const measured = new Set(["performance", "request", "headers", "timestamp", "toolCallId", "messageId"]);

const aiSdk = async (chosen: LanguageModel, maxRetries: number): Promise<unknown> => {
  const result = streamText({ model: chosen, prompt: "hi", maxRetries, onError: () => undefined });
  const parts: Array<unknown> = [];
  // Where a text begins and ends is a part too: a no-op must not close and open one.
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

const langchain = async (origin: string, maxRetries: number, useResponsesApi: boolean): Promise<unknown> => {
  const configuration = { baseURL: `${origin}/v1` };
  const chat = new ChatOpenAI({ model, apiKey, configuration, maxRetries, useResponsesApi });
  let all: AIMessageChunk | undefined;
  for await (const chunk of await chat.stream("hi")) all = all === undefined ? chunk : all.concat(chunk);
  const { content, id, response_metadata, tool_calls, usage_metadata } = all ?? new AIMessageChunk("");
  return { content, id, response_metadata, tool_calls, usage_metadata };
};

/** The readers of all protocols. */
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
  { name: "LangChain", protocol: "openai-chat", read: (origin, retries) => langchain(origin, retries, false) },
  {
    name: "openai, raw",
    protocol: "openai-responses",
    read: async (origin, retries) =>
      chunksOf(
        await openai(origin, retries).responses.create({ model, input: "hi", stream: true }),
        ({ type }) => (type as string) !== "keepalive", // its types do not have the event that OpenAI sends
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
    name: "LangChain",
    protocol: "openai-responses",
    fails: ["reasoning-text"], // it looks for a summary that the recorded reasoning does not have
    read: (origin, retries) => langchain(origin, retries, true),
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
];
