/**
 * The official SDKs and the AI SDK as readers of a stream that is at hand: what each puts together of it, and what each would
 * send back as the next turn.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import Anthropic from "@anthropic-ai/sdk";
import { type LanguageModel, streamText } from "ai";
import OpenAI from "openai";

const apiKey = "k";
const model = "m";

/** A server that answers everything with a stream. */
const serving = (stream: Uint8Array) => () =>
  Promise.resolve(new Response(stream.slice(), { headers: { "content-type": "text/event-stream" } }));

/** The message that `MessageStream` puts together. */
export const anthropicMessage = (stream: Uint8Array): Promise<Anthropic.Message> =>
  new Anthropic({ apiKey, fetch: serving(stream), maxRetries: 0 }).messages
    .stream({ model, max_tokens: 99, messages: [{ role: "user", content: "hi" }] })
    .finalMessage();

/** The response that `responses.stream()` puts together. */
export const openAiResponse = (stream: Uint8Array) =>
  new OpenAI({ apiKey, fetch: serving(stream), maxRetries: 0 }).responses
    .stream({ model, input: "hi" })
    .finalResponse();

/** What the AI SDK puts together, and what it would send next. */
export interface AiSdkReading {
  readonly text: string;
  readonly content: ReadonlyArray<unknown>;
  readonly finishReason: string;
  readonly outputTokens: number;
  readonly id: string;
  /** The body of the request that continues the conversation. */
  readonly next: unknown;
}

const reading = async (made: (fetch: typeof globalThis.fetch) => LanguageModel, stream: Uint8Array) => {
  const ask = (fetch: typeof globalThis.fetch, messages: Parameters<typeof streamText>[0]["messages"] & {}) =>
    streamText({ model: made(fetch), messages, maxRetries: 0, maxOutputTokens: 99, onError: () => undefined });
  const asked = [{ role: "user" as const, content: "hi" }];
  const result = ask(serving(stream), asked);
  for await (const part of result.fullStream) if (part.type === "error") throw part.error;
  let next: unknown;
  const { id, messages } = await result.response;
  const keeping: typeof globalThis.fetch = async (_url, init) => {
    next = JSON.parse(String(init?.body));
    return serving(stream)();
  };
  const again = ask(keeping, [...asked, ...messages, { role: "user", content: "and?" }]);
  for await (const part of again.fullStream) if (part.type === "error") break;
  return {
    text: await result.text,
    content: await result.content,
    finishReason: await result.finishReason,
    outputTokens: (await result.usage).outputTokens ?? 0,
    id,
    next,
  } satisfies AiSdkReading;
};

/** The AI SDK's reading of Messages. */
export const aiSdkAnthropic = (stream: Uint8Array): Promise<AiSdkReading> =>
  reading((fetch) => createAnthropic({ apiKey, fetch })(model), stream);

/** The AI SDK's reading of Responses. */
export const aiSdkResponses = (stream: Uint8Array): Promise<AiSdkReading> =>
  reading((fetch) => createOpenAI({ apiKey, fetch }).responses(model), stream);
