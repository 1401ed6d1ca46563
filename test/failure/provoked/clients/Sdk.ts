/**
 * The OpenAI and Anthropic SDKs, streaming, without their own retries.
 */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Ask, Client } from "./Client.ts";
import { bundledAgent, type NodeDispatcher, using } from "./NodeFetch.ts";

const messages = [{ role: "user" as const, content: "hello" }];

export const options = (ask: Ask, dispatcher: NodeDispatcher) => ({
  apiKey: "a key of a test",
  baseURL: ask.url,
  maxRetries: 0,
  logLevel: "off" as const,
  fetch: async (input: string | URL | Request, init?: RequestInit) => {
    const response = await fetch(input, { ...init, dispatcher });
    ask.onHead?.();
    return response;
  },
  ...(ask.timeoutMs === undefined ? {} : { timeout: ask.timeoutMs }),
});

const drained = async (events: AsyncIterable<unknown>, ask: Ask): Promise<undefined> => {
  for await (const _ of events) ask.onBytes?.();
};

const ofSignal = (ask: Ask) => (ask.signal === undefined ? {} : { signal: ask.signal });

/** Both SDKs over Node's own fetch. */
export const sdkClients: ReadonlyArray<Client> = [
  {
    name: "openai",
    protocol: "openai-chat",
    ask: (ask) =>
      using(bundledAgent(ask), async (dispatcher) => {
        const client = new OpenAI(options(ask, dispatcher));
        const request = { model: "test", stream: true, messages } as const;
        return drained(await client.chat.completions.create(request, ofSignal(ask)), ask);
      }),
  },
  {
    name: "@anthropic-ai/sdk",
    protocol: "anthropic-messages",
    ask: (ask) =>
      using(bundledAgent(ask), async (dispatcher) => {
        const client = new Anthropic(options(ask, dispatcher));
        const request = { model: "test", max_tokens: 16, stream: true, messages } as const;
        return drained(await client.messages.create(request, ofSignal(ask)), ask);
      }),
  },
];
