/**
 * Client libraries as runtimes of the conformance kit, each as its documentation shows it and with its own retries: those of
 * the command line, and further ones.
 */
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { GoogleGenAI } from "@google/genai";
import { jsonSchema, streamText, tool } from "ai";
import { Effect } from "effect";
import { type LangChain, langChain } from "../../../scripts/langchain/LangChain.ts";
import { aiSdkRuntime } from "../../../src/cli/conformance/AiSdkRuntime.ts";
import { anthropicRuntime } from "../../../src/cli/conformance/AnthropicRuntime.ts";
import { openAiRuntime } from "../../../src/cli/conformance/OpenAiRuntime.ts";
import type { ConformanceRuntime, ConformanceTask } from "../../../src/testing/index.ts";

/** @langchain/openai: the chunks are joined, and the parsed calls run at the end. */
const langChainRuntime = ({ AIMessageChunk, ChatOpenAI }: LangChain): ConformanceRuntime => ({
  name: "LangChain",
  protocols: ["openai-chat"],
  turn: async ({ api_key, base_url, model, prompt, screen, signal, tools }) => {
    const chat = new ChatOpenAI({ model, apiKey: api_key, configuration: { baseURL: base_url } });
    const bound = chat.bindTools(
      tools.map(({ description, name, parameters }) => ({
        type: "function" as const,
        function: { name, description, parameters: { ...parameters } },
      })),
    );
    let all = new AIMessageChunk("");
    for await (const chunk of await bound.stream(prompt, { signal })) {
      screen.write(chunk.text);
      all = all.concat(chunk);
    }
    for (const { args, name } of all.tool_calls ?? []) await named(tools, name)?.execute(args);
  },
});

/**
 * @google/genai: parts as they arrive, calls run at the end.
 *
 * @param options documented options other than the defaults, which use `/v1`
 */
const genai = (name: string, options: { readonly apiVersion?: string }): ConformanceRuntime => ({
  name,
  protocols: ["google-gemini"],
  turn: async ({ api_key, model, origin, prompt, screen, signal, tools }) => {
    const client = new GoogleGenAI({ apiKey: api_key, httpOptions: { baseUrl: origin, ...options } });
    const functionDeclarations = tools.map(({ description, name, parameters }) => ({
      name,
      description,
      parametersJsonSchema: parameters,
    }));
    const stream = await client.models.generateContentStream({
      model,
      contents: prompt,
      config: { abortSignal: signal, tools: [{ functionDeclarations }] },
    });
    const calls: Array<{ readonly name: string; readonly args: unknown }> = [];
    for await (const chunk of stream) {
      for (const { functionCall, text, thought } of chunk.candidates?.[0]?.content?.parts ?? []) {
        if (thought !== true) screen.write(text ?? "");
        if (functionCall !== undefined) calls.push({ name: functionCall.name ?? "", args: functionCall.args });
      }
    }
    for (const { args, name } of calls) await named(tools, name)?.execute(args);
  },
});

/** The AI SDK with @ai-sdk/openai-compatible: one step, whose calls it runs itself. */
const aiSdkCompatible: ConformanceRuntime = {
  name: "AI SDK, openai-compatible",
  protocols: ["openai-chat"],
  turn: async ({ api_key, base_url, model, prompt, screen, signal, tools }) => {
    const provider = createOpenAICompatible({ name: "compatible", apiKey: api_key, baseURL: base_url });
    const result = streamText({
      model: provider(model),
      prompt,
      tools: Object.fromEntries(
        tools.map(({ description, execute, name, parameters }) => [
          name,
          tool({
            description,
            inputSchema: jsonSchema<unknown>({ ...parameters }),
            execute: (input) => execute(input),
          }),
        ]),
      ),
      abortSignal: signal,
      onError: () => undefined, // the error part has it, too, and the default prints it
    });
    for await (const part of result.stream) {
      if (part.type === "text-delta") screen.write(part.text);
      if (part.type === "error") throw part.error;
    }
  },
};

/** All clients, each over every protocol that it speaks. */
export const clients = [
  { name: "openai", runtime: openAiRuntime({ name: "openai" }) },
  { name: "@anthropic-ai/sdk", runtime: anthropicRuntime({ name: "@anthropic-ai/sdk" }) },
  { name: "AI SDK with openai, anthropic and google", runtime: aiSdkRuntime({ name: "AI SDK" }) },
  { name: "AI SDK with openai-compatible", runtime: Effect.succeed(aiSdkCompatible) },
  ...(langChain === undefined ? [] : [{ name: "LangChain", runtime: Effect.succeed(langChainRuntime(langChain)) }]),
  { name: "@google/genai", runtime: Effect.succeed(genai("@google/genai", {})) },
  {
    name: "@google/genai at v1beta",
    runtime: Effect.succeed(genai("@google/genai at v1beta", { apiVersion: "v1beta" })),
  },
];

const named = (tools: ConformanceTask["tools"], name: string) => tools.find((tool) => tool.name === name);
