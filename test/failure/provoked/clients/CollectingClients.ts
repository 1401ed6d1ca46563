/**
 * The convenience calls of the SDKs that collect a whole stream, and their errors when it ends early.
 */
import Anthropic from "@anthropic-ai/sdk";
import { streamText } from "ai";
import OpenAI from "openai";
import { model } from "./AiSdk.ts";
import type { Client } from "./Client.ts";
import { bundledAgent, using } from "./NodeFetch.ts";
import { options } from "./Sdk.ts";

const messages = [{ role: "user" as const, content: "hello" }];

/** One collecting call of each SDK. */
export const collectingClients: ReadonlyArray<Client> = [
  {
    name: "openai chat.completions.stream",
    protocol: "openai-chat",
    ask: (ask) =>
      using(bundledAgent(ask), async (dispatcher) => {
        const { chat } = new OpenAI(options(ask, dispatcher));
        await chat.completions.stream({ model: "test", messages }).finalChatCompletion();
        return undefined;
      }),
  },
  {
    name: "@anthropic-ai/sdk messages.stream",
    protocol: "anthropic-messages",
    ask: (ask) =>
      using(bundledAgent(ask), async (dispatcher) => {
        const client = new Anthropic(options(ask, dispatcher));
        await client.messages.stream({ model: "test", max_tokens: 16, messages }).finalMessage();
        return undefined;
      }),
  },
  {
    name: "AI SDK streamText().text",
    protocol: "openai-chat",
    ask: (ask) =>
      using(bundledAgent(ask), async (dispatcher) => {
        const result = streamText({
          model: model(ask, dispatcher),
          prompt: "hello",
          maxRetries: 0,
          onError: () => undefined,
        });
        await result.text;
        return undefined;
      }),
  },
];
