/**
 * Runs turns with the official SDKs of Ollama, Cohere, Google, Mistral and Bedrock, each as its documentation shows it: one streamed
 * request, with the tools run at its end.
 *
 * Not all of these SDKs accept a `fetch`, so their columns with this package have a gateway in front of the provider.
 */
import type Anthropic from "@anthropic-ai/sdk";
import { Effect } from "effect";
import type { ConformanceRuntime, ConformanceTask } from "../../testing/conformance/ConformanceRuntime.ts";
import { messages } from "./AnthropicRuntime.ts";
import { type MissingPackage, requirePackages } from "./Packages.ts";
import { ToolCalls } from "./ToolCalls.ts";

/** The packages and protocols of an SDK, and its turn. */
export interface WireSdk {
  readonly packages: readonly [string, ...Array<string>];
  readonly protocols: ConformanceRuntime["protocols"];
  /**
   * Runs a turn.
   *
   * @param exported the exports of all packages
   */
  readonly turn: (exported: object, task: ConformanceTask) => Promise<void>;
}

/** Creates the runtime of an SDK. */
export const wireRuntime = Effect.fn("conformance.wire")(function* (sdk: WireSdk, name: string) {
  const { exported, versions } = yield* requirePackages(sdk.packages);
  const runtime: ConformanceRuntime = {
    name,
    versions,
    protocols: sdk.protocols,
    turn: (task) => sdk.turn(exported, task),
  };
  return runtime;
}) satisfies (sdk: WireSdk, name: string) => Effect.Effect<ConformanceRuntime, MissingPackage>;

/** The part of an SDK that its turn uses. */
const wireSdk = <Exported>(
  packages: WireSdk["packages"],
  protocols: WireSdk["protocols"],
  turn: (exported: Exported, task: ConformanceTask) => Promise<void>,
): WireSdk => ({
  packages,
  protocols,
  // Cast, because the packages are not installed during type checking.
  turn: (exported, task) => turn(exported as Exported, task),
});

type Stream<Event> = Promise<AsyncIterable<Event>>;

const userMessage = (content: string) => [{ role: "user", content }];

const functions = ({ tools }: ConformanceTask) =>
  tools.map(({ description, name, parameters }) => ({ type: "function", function: { name, description, parameters } }));

interface OllamaExports {
  readonly Ollama: new (config: {
    readonly host: string;
  }) => {
    readonly abort: () => void;
    readonly chat: (request: object) => Stream<{
      readonly message: {
        readonly content: string;
        readonly tool_calls?: ReadonlyArray<{
          readonly function: { readonly name: string; readonly arguments: object };
        }>;
      };
    }>;
  };
}

/** Ollama's SDK. */
export const ollama = wireSdk<OllamaExports>(["ollama"], ["ollama"], async ({ Ollama }, task) => {
  const { model, origin, prompt, screen, signal, tools } = task;
  const client = new Ollama({ host: origin });
  signal.addEventListener("abort", () => client.abort(), { once: true });
  const [calls, request] = [new ToolCalls(), { model, stream: true, messages: userMessage(prompt) }];
  let index = 0;
  for await (const { message } of await client.chat({ ...request, tools: functions(task) })) {
    screen.write(message.content);
    for (const call of message.tool_calls ?? []) {
      calls.start(index, call.function.name);
      calls.add(index, JSON.stringify(call.function.arguments));
      index += 1;
    }
  }
  signal.throwIfAborted();
  await calls.run(tools);
});

interface CohereEvent {
  readonly type: string;
  readonly index?: number;
  readonly delta?: {
    readonly finishReason?: string;
    readonly error?: string;
    readonly message?: {
      readonly content?: { readonly text?: string };
      readonly toolCalls?: { readonly function?: { readonly name?: string; readonly arguments?: string } };
    };
  };
}

interface CohereExports {
  readonly CohereClientV2: new (options: {
    readonly token: string;
    readonly environment: string;
  }) => {
    readonly chatStream: (request: object, options: { readonly abortSignal: AbortSignal }) => Stream<CohereEvent>;
  };
}

/** Cohere's SDK. */
export const cohere = wireSdk<CohereExports>(["cohere-ai"], ["cohere-chat"], async ({ CohereClientV2 }, task) => {
  const { api_key, model, origin, prompt, screen, signal, tools } = task;
  const client = new CohereClientV2({ token: api_key, environment: origin });
  const calls = new ToolCalls();
  const request = { model, messages: userMessage(prompt), tools: functions(task) };
  for await (const { delta, index = 0, type } of await client.chatStream(request, { abortSignal: signal })) {
    const call = delta?.message?.toolCalls?.function;
    if (type === "content-delta") screen.write(delta?.message?.content?.text ?? "");
    if (type === "tool-call-start") calls.start(index, call?.name ?? "");
    if (type === "tool-call-start" || type === "tool-call-delta") calls.add(index, call?.arguments ?? "");
    if (type === "message-end" && delta?.finishReason === "ERROR") throw new Error(`Cohere reports: ${delta.error}`);
  }
  signal.throwIfAborted();
  await calls.run(tools);
});

interface GooglePart {
  readonly text?: string;
  readonly thought?: boolean;
  readonly functionCall?: { readonly name: string; readonly args: object };
}

interface GoogleEvent {
  readonly event_type: string;
  readonly index?: number;
  readonly step?: { readonly type: string; readonly name?: string };
  readonly delta?: { readonly type: string; readonly text?: string; readonly arguments?: string };
  readonly error?: { readonly message: string };
}

interface GoogleClient {
  readonly models: {
    readonly generateContentStream: (request: object) => Stream<{
      readonly candidates?: ReadonlyArray<{ readonly content?: { readonly parts?: ReadonlyArray<GooglePart> } }>;
    }>;
  };
  readonly interactions: {
    readonly create: (request: object, options: { readonly signal: AbortSignal }) => Stream<GoogleEvent>;
  };
}

interface GoogleExports {
  readonly GoogleGenAI: new (options: { readonly apiKey: string; readonly httpOptions: object }) => GoogleClient;
}

/** Google's SDK, for Gemini and for Interactions. */
export const google = wireSdk<GoogleExports>(
  ["@google/genai"],
  ["google-gemini", "google-interactions"],
  async ({ GoogleGenAI }, task) => {
    const httpOptions = { baseUrl: task.origin, apiVersion: "v1beta" };
    const client = new GoogleGenAI({ apiKey: task.api_key, httpOptions });
    const calls = new ToolCalls();
    await (task.protocol === "google-gemini" ? contents : interaction)(client, task, calls);
    task.signal.throwIfAborted();
    await calls.run(task.tools);
  },
);

type GoogleTurn = (client: GoogleClient, task: ConformanceTask, calls: ToolCalls) => Promise<void>;

const contents: GoogleTurn = async (client, { model, prompt, screen, signal, tools }, calls) => {
  const functionDeclarations = tools.map(({ description, name, parameters }) => ({
    ...{ name, description, parametersJsonSchema: parameters },
  }));
  const config = { abortSignal: signal, tools: [{ functionDeclarations }] };
  let index = 0;
  for await (const chunk of await client.models.generateContentStream({ model, contents: prompt, config })) {
    for (const { functionCall, text, thought } of chunk.candidates?.[0]?.content?.parts ?? []) {
      if (thought !== true) screen.write(text ?? "");
      if (functionCall === undefined) continue;
      calls.start(index, functionCall.name);
      calls.add(index, JSON.stringify(functionCall.args));
      index += 1;
    }
  }
};

const interaction: GoogleTurn = async (client, { model, prompt, screen, signal, tools }, calls) => {
  const declared = tools.map(({ description, name, parameters }) => ({
    ...{ type: "function", name, description, parameters },
  }));
  const request = { model, input: prompt, stream: true, tools: declared };
  for await (const event of await client.interactions.create(request, { signal })) {
    const { delta, error, event_type, index = 0, step } = event;
    if (event_type === "step.start" && step?.type === "function_call") calls.start(index, step.name ?? "");
    if (event_type === "step.delta" && delta?.type === "text") screen.write(delta.text ?? "");
    if (event_type === "step.delta" && delta?.type === "arguments_delta") calls.add(index, delta.arguments ?? "");
    if (event_type === "error") throw new Error(`Google reports: ${error?.message}`);
  }
};

interface MistralEvent {
  readonly type: string;
  readonly outputIndex?: number;
  readonly content?: unknown;
  readonly name?: string;
  readonly arguments?: string;
  readonly message?: string;
}

interface MistralClient {
  readonly beta: {
    readonly conversations: {
      readonly startStream: (
        request: object,
        options: { readonly fetchOptions: { readonly signal: AbortSignal } },
      ) => Stream<{ readonly data: MistralEvent }>;
    };
  };
}

interface MistralExports {
  readonly Mistral: new (options: { readonly apiKey: string; readonly serverURL: string }) => MistralClient;
}

/** Mistral's SDK, for conversations that Mistral stores (the default). */
export const mistral = wireSdk<MistralExports>(
  ["@mistralai/mistralai"],
  ["mistral-conversations"],
  async ({ Mistral }, task) => {
    const { api_key, model, origin, prompt, screen, signal, tools } = task;
    const client = new Mistral({ apiKey: api_key, serverURL: origin });
    const calls = new ToolCalls();
    const request = { model, inputs: prompt, tools: functions(task) };
    const stream = await client.beta.conversations.startStream(request, { fetchOptions: { signal } });
    for await (const { data } of stream) {
      const { content, message, name = "", outputIndex = 0, type } = data;
      if (type === "message.output.delta" && typeof content === "string") screen.write(content);
      if (type === "function.call.delta") {
        calls.start(outputIndex, name);
        calls.add(outputIndex, data.arguments ?? "");
      }
      if (type === "conversation.response.error") throw new Error(`Mistral reports: ${message}`);
    }
    signal.throwIfAborted();
    await calls.run(tools);
  },
);

/** Any region: the provider's address is given. */
const awsRegion = "us-east-1";

interface ConverseEvent {
  readonly contentBlockStart?: {
    readonly contentBlockIndex: number;
    readonly start: { readonly toolUse?: { readonly name: string } };
  };
  readonly contentBlockDelta?: {
    readonly contentBlockIndex: number;
    readonly delta: { readonly text?: string; readonly toolUse?: { readonly input: string } };
  };
}

interface BedrockExports {
  readonly BedrockRuntimeClient: new (
    options: object,
  ) => {
    readonly send: (
      command: object,
      options: { readonly abortSignal: AbortSignal },
    ) => Promise<{ readonly stream: AsyncIterable<ConverseEvent> }>;
    readonly destroy: () => void;
  };
  readonly ConverseStreamCommand: new (input: object) => object;
  readonly NodeHttpHandler: new () => object;
}

/** AWS's SDK with an API key, and with the handler for HTTP/1.1. */
export const bedrock = wireSdk<BedrockExports>(
  ["@aws-sdk/client-bedrock-runtime", "@smithy/node-http-handler"],
  ["bedrock-converse"],
  async ({ BedrockRuntimeClient, ConverseStreamCommand, NodeHttpHandler }, task) => {
    const { api_key, model, origin, prompt, screen, signal, tools } = task;
    const client = new BedrockRuntimeClient({
      region: awsRegion,
      endpoint: origin,
      token: { token: api_key },
      authSchemePreference: ["httpBearerAuth"],
      requestHandler: new NodeHttpHandler(),
    });
    const toolConfig = {
      tools: tools.map(({ description, name, parameters }) => ({
        toolSpec: { name, description, inputSchema: { json: parameters } },
      })),
    };
    const input = { modelId: model, messages: [{ role: "user", content: [{ text: prompt }] }], toolConfig };
    const calls = new ToolCalls();
    try {
      const { stream } = await client.send(new ConverseStreamCommand(input), { abortSignal: signal });
      for await (const { contentBlockDelta, contentBlockStart } of stream) {
        const { contentBlockIndex = 0, delta } = contentBlockDelta ?? {};
        const called = contentBlockStart?.start.toolUse;
        if (called !== undefined) calls.start(contentBlockStart?.contentBlockIndex ?? 0, called.name);
        if (delta?.toolUse !== undefined) calls.add(contentBlockIndex, delta.toolUse.input);
        screen.write(delta?.text ?? "");
      }
    } finally {
      client.destroy();
    }
    signal.throwIfAborted();
    await calls.run(tools);
  },
);

interface AnthropicBedrockExports {
  readonly AnthropicBedrock: new (options: object) => Pick<Anthropic, "messages">;
}

/** Anthropic's SDK for Bedrock. */
export const anthropicBedrock = wireSdk<AnthropicBedrockExports>(
  ["@anthropic-ai/bedrock-sdk"],
  ["bedrock-invoke"],
  ({ AnthropicBedrock }, task) => {
    const options = { baseURL: task.origin, awsRegion, skipAuth: true, logLevel: "off" };
    return messages(new AnthropicBedrock(options), { ...task, model: `anthropic.${task.model}` });
  },
);
