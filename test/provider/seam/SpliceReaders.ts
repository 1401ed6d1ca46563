/**
 * The official accumulators of OpenAI Chat and Gemini, and AI SDK, as readers of bytes: what each puts together, and what it would
 * send next.
 */
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { GoogleGenAI } from "@google/genai";
import { type LanguageModel, type ModelMessage, streamText } from "ai";
import OpenAI from "openai";
import * as Json from "../../../src/domain/Json.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";

/** What a client put together of a response. */
export interface Reading {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: ReadonlyArray<unknown>;
  readonly finish: unknown;
  readonly tokens: number;
  /** The names of the response. */
  readonly names: unknown;
  /** The text of each assistant message of the next request; neighbours of one role are one. */
  readonly next: ReadonlyArray<string>;
}

/** A client that reads a response and asks on. */
export interface SpliceReader {
  readonly name: string;
  readonly protocol: ProtocolId;
  /** It throws what the client throws. */
  readonly read: (bytes: Uint8Array) => Promise<Reading>;
}

const apiKey = "k";
const model = "m";

/** Answers the first request with the bytes, and keeps the body of the second. */
const served = (bytes: Uint8Array) => {
  const bodies: Array<unknown> = [];
  const fetch: typeof globalThis.fetch = async (_input, init) => {
    bodies.push(Json.parse(String(init?.body))?.json);
    const body =
      bodies.length === 1 ? bytes : new TextEncoder().encode(`data: {"error":{"message":"enough","code":400}}\n\n`);
    return new Response(new Blob([new Uint8Array(body)]).stream(), {
      headers: { "content-type": "text/event-stream" },
    });
  };
  return { bodies, fetch };
};

const openaiChat: SpliceReader = {
  name: "openai, chat.completions.stream()",
  protocol: "openai-chat",
  read: async (bytes) => {
    const { bodies, fetch } = served(bytes);
    const client = new OpenAI({ apiKey, maxRetries: 0, fetch });
    const asked: Array<OpenAI.ChatCompletionMessageParam> = [{ role: "user", content: "hi" }];
    const all = await client.chat.completions.stream({ model, messages: asked }).finalChatCompletion();
    const [choice] = all.choices;
    if (choice === undefined) throw new Error("no choice");
    const { message } = choice;
    await client.chat.completions
      .create({ model, messages: [...asked, message, { role: "user", content: "on" }], stream: true })
      .catch(() => undefined);
    return {
      text: message.content ?? "",
      reasoning: [Reflect.get(message, "reasoning_content"), Reflect.get(message, "reasoning")]
        .map(Json.string)
        .join(""),
      calls: [message.tool_calls ?? [], message.refusal].flat(),
      finish: choice.finish_reason,
      tokens: all.usage?.total_tokens ?? 0,
      names: [all.id, all.model, all.system_fingerprint],
      next: assistantTexts(Json.record(bodies[1])?.messages, "assistant", "content"),
    };
  },
};

/** The texts of one role in the messages of a request, as a model reads them. */
const assistantTexts = (messages: unknown, role: string, field: string): ReadonlyArray<string> => {
  const texts: Array<string> = [];
  let last = "";
  for (const message of Json.list(messages)) {
    const record = Json.record(message) ?? {};
    if (record.role === role) {
      const content = record[field];
      const text = Json.string(content) + Json.list(content).map(visible).join("");
      if (last === role) texts.push((texts.pop() ?? "") + text);
      else texts.push(text);
    }
    last = Json.string(record.role);
  }
  return texts;
};

const visible = (part: unknown): string => {
  const record = Json.record(part) ?? {};
  return record.thought === true ? "" : Json.string(record.text);
};

const genai: SpliceReader = {
  name: "google-genai, chats",
  protocol: "google-gemini",
  read: async (bytes) => {
    const { bodies, fetch } = served(bytes);
    const client = new GoogleGenAI({ apiKey, httpOptions: { baseUrl: "http://here.invalid", fetch } });
    const chat = client.chats.create({ model });
    const calls: Array<unknown> = [];
    const names = new Set<unknown>();
    let text = "";
    let reasoning = "";
    let finish: unknown;
    let tokens = 0;
    for await (const { candidates, modelVersion, responseId, usageMetadata } of await chat.sendMessageStream({
      message: "hi",
    })) {
      const [candidate] = candidates ?? [];
      for (const part of candidate?.content?.parts ?? []) {
        const { text: words, thought, ...more } = part;
        if (thought === true) reasoning += words ?? "";
        else text += words ?? "";
        if (Object.keys(more).length > 0) calls.push(more);
      }
      finish = candidate?.finishReason ?? finish;
      tokens = usageMetadata?.totalTokenCount ?? tokens;
      names.add(`${responseId} ${modelVersion}`);
    }
    await chat.sendMessage({ message: "on" }).catch(() => undefined);
    return {
      text,
      reasoning,
      calls,
      finish,
      tokens,
      names: [...names],
      next: assistantTexts(Json.record(bodies[1])?.contents, "model", "parts"),
    };
  },
};

const aiSdk = (
  name: string,
  protocol: ProtocolId,
  chosen: (fetch: typeof globalThis.fetch) => LanguageModel,
  field: readonly [list: string, role: string, content: string],
): SpliceReader => ({
  name: `AI SDK, ${name}`,
  protocol,
  read: async (bytes) => {
    const { bodies, fetch } = served(bytes);
    const languageModel = chosen(fetch);
    const asked: Array<ModelMessage> = [{ role: "user", content: "hi" }];
    const result = streamText({ model: languageModel, messages: asked, maxRetries: 0, onError: () => undefined });
    let text = "";
    let reasoning = "";
    for await (const part of result.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "text-delta") text += part.text;
      if (part.type === "reasoning-delta") reasoning += part.text;
    }
    const { id, messages, modelId } = await result.response;
    const calls = (await result.toolCalls).map(({ input, toolName }) => ({ input, toolName }));
    const tokens = (await result.usage).totalTokens ?? 0;
    const finish = [await result.finishReason, await result.rawFinishReason];
    const on = streamText({
      model: languageModel,
      messages: [...asked, ...messages, { role: "user", content: "on" }],
      maxRetries: 0,
      onError: () => undefined,
    });
    await on.consumeStream();
    const [list, role, content] = field;
    const next = assistantTexts(Json.record(bodies[1])?.[list], role, content);
    return { text, reasoning, calls, finish, tokens, names: [id.replace(/^aitxt-.*/, "made"), modelId], next };
  },
});

/** The clients of both protocols. */
export const spliceReaders: ReadonlyArray<SpliceReader> = [
  openaiChat,
  aiSdk("openai.chat", "openai-chat", (fetch) => createOpenAI({ apiKey, fetch }).chat(model), [
    "messages",
    "assistant",
    "content",
  ]),
  aiSdk(
    "openai-compatible",
    "openai-chat",
    (fetch) => createOpenAICompatible({ name: "c", apiKey, baseURL: "http://here.invalid/v1", fetch })(model),
    ["messages", "assistant", "content"],
  ),
  genai,
  aiSdk("google", "google-gemini", (fetch) => createGoogleGenerativeAI({ apiKey, fetch })(model), [
    "contents",
    "model",
    "parts",
  ]),
];
