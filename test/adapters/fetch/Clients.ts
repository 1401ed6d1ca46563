/**
 * Real client libraries on a `fetch`, each as an agent uses it: one turn, what its user saw and which tools it ran.
 */
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { type LangChain, langChain } from "../../../scripts/langchain/LangChain.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";

/** The result of a turn. */
export interface Turn {
  text: string;
  readonly tools: Array<unknown>;
  completed: boolean;
  error: unknown;
}

/** One client library. */
export interface Client {
  readonly name: string;
  readonly protocol: ProtocolId;
  /** Runs one turn; it throws what the library throws. */
  readonly play: (fetch: typeof globalThis.fetch, url: string, turn: Turn, signal?: AbortSignal) => Promise<void>;
}

const user = [{ role: "user" as const, content: "hi" }];
const key = { apiKey: "not-a-key", maxRetries: 0 };

const openaiChat: Client = {
  name: "openai chat",
  protocol: "openai-chat",
  play: async (fetch, url, turn, signal) => {
    const client = new OpenAI({ ...key, baseURL: `${url}/v1`, fetch });
    const stream = await client.chat.completions.create(
      { model: "m", messages: user, stream: true },
      signal === undefined ? {} : { signal },
    );
    const calls: Array<string> = [];
    for await (const chunk of stream) {
      const [choice] = chunk.choices;
      turn.text += choice?.delta.content ?? "";
      for (const call of choice?.delta.tool_calls ?? [])
        calls[call.index] = (calls[call.index] ?? "") + (call.function?.arguments ?? "");
    }
    turn.tools.push(...calls);
  },
};

const openaiResponses: Client = {
  name: "openai responses",
  protocol: "openai-responses",
  play: async (fetch, url, turn, signal) => {
    const client = new OpenAI({ ...key, baseURL: `${url}/v1`, fetch });
    const stream = await client.responses.create(
      { model: "m", input: "hi", stream: true },
      signal === undefined ? {} : { signal },
    );
    for await (const event of stream) {
      if (event.type === "response.output_text.delta") turn.text += event.delta;
      if (event.type === "response.output_item.done" && event.item.type === "function_call")
        turn.tools.push(event.item.arguments);
    }
  },
};

const anthropicRaw: Client = {
  name: "anthropic raw",
  protocol: "anthropic-messages",
  play: async (fetch, url, turn, signal) => {
    const client = new Anthropic({ ...key, baseURL: url, fetch });
    const stream = await client.messages.create(
      { model: "m", max_tokens: 9, messages: user, stream: true },
      signal === undefined ? {} : { signal },
    );
    let input = "";
    for await (const event of stream) {
      if (event.type === "content_block_delta" && event.delta.type === "text_delta") turn.text += event.delta.text;
      if (event.type === "content_block_delta" && event.delta.type === "input_json_delta")
        input += event.delta.partial_json;
      if (event.type === "content_block_stop" && input !== "") turn.tools.push(input);
      if (event.type === "content_block_stop") input = "";
    }
  },
};

const anthropicHelper: Client = {
  name: "anthropic stream helper",
  protocol: "anthropic-messages",
  play: async (fetch, url, turn, signal) => {
    const client = new Anthropic({ ...key, baseURL: url, fetch });
    const stream = client.messages.stream(
      { model: "m", max_tokens: 9, messages: user },
      signal === undefined ? {} : { signal },
    );
    stream.on("text", (text) => {
      turn.text += text;
    });
    const message = await stream.finalMessage();
    for (const block of message.content) if (block.type === "tool_use") turn.tools.push(block.input);
  },
};

const langChainClient = ({ AIMessageChunk, ChatOpenAI }: LangChain): Client => ({
  name: "langchain",
  protocol: "openai-chat",
  play: async (fetch, url, turn, signal) => {
    const model = new ChatOpenAI({ ...key, model: "m", configuration: { baseURL: `${url}/v1`, fetch } });
    let all = new AIMessageChunk("");
    for await (const chunk of await model.stream("hi", signal === undefined ? {} : { signal })) {
      turn.text += chunk.text;
      all = all.concat(chunk);
    }
    for (const call of all.tool_calls ?? []) turn.tools.push(call.args);
  },
});

const genai: Client = {
  name: "google genai",
  protocol: "google-gemini",
  play: async (fetch, url, turn, signal) => {
    const client = new GoogleGenAI({ apiKey: key.apiKey, httpOptions: { baseUrl: url, fetch } });
    const stream = await client.models.generateContentStream({
      model: "fault-model",
      contents: "hi",
      config: signal === undefined ? {} : { abortSignal: signal },
    });
    for await (const chunk of stream) {
      for (const part of chunk.candidates?.[0]?.content?.parts ?? []) {
        if (part.thought !== true) turn.text += part.text ?? "";
        if (part.functionCall !== undefined) turn.tools.push(part.functionCall.args);
      }
    }
  },
};

/** All clients. */
export const clients: ReadonlyArray<Client> = [
  openaiChat,
  openaiResponses,
  anthropicRaw,
  anthropicHelper,
  ...(langChain === undefined ? [] : [langChainClient(langChain)]),
  genai,
];

/** Plays a turn and keeps what it throws. */
export const playTurn = async (
  client: Client,
  fetch: typeof globalThis.fetch,
  url: string,
  signal?: AbortSignal,
): Promise<Turn> => {
  const turn: Turn = { text: "", tools: [], completed: false, error: undefined };
  try {
    await client.play(fetch, url, turn, signal);
    turn.completed = true;
  } catch (error) {
    turn.error = error;
  }
  return turn;
};
