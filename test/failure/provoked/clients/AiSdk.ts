/**
 * The AI SDK's `streamText`, with its gateway provider and with a model that reports errors like its provider packages.
 */
import {
  APICallError,
  createGateway,
  generateText,
  jsonSchema,
  type LanguageModel,
  parseJsonEventStream,
  streamText,
} from "ai";
import type { Ask, Client } from "./Client.ts";
import { bundledAgent, type NodeDispatcher, using } from "./NodeFetch.ts";

type Model = Exclude<LanguageModel, string>;
type CallOptions = Parameters<Model["doStream"]>[0];

/** `doStream` as in the provider packages: an APICallError for an answer that is no stream, error parts for a break within one. */
export const model = (ask: Ask, dispatcher: NodeDispatcher): Model => ({
  specificationVersion: "v3",
  provider: "test",
  modelId: "test",
  supportedUrls: {},
  doGenerate: async (options) => {
    await call(ask, dispatcher, options);
    throw new Error("only failing calls are made");
  },
  doStream: async (options) => {
    const response = await call(ask, dispatcher, options);
    if (response.body === null) throw new Error("every server here sends a body");
    const events = parseJsonEventStream({
      stream: response.body,
      schema: jsonSchema<{ readonly error?: unknown }>({}),
    });
    const parts = new TransformStream<Event, Part>({
      start: (controller) => controller.enqueue({ type: "text-start", id: "0" }),
      transform: (event, controller) => {
        if (!event.success) controller.enqueue({ type: "error", error: event.error });
        else if (event.value.error !== undefined) controller.enqueue({ type: "error", error: event.value.error });
        else controller.enqueue({ type: "text-delta", id: "0", delta: "hello" });
      },
    });
    return { stream: events.pipeThrough(parts) };
  },
});

type Event =
  | { readonly success: true; readonly value: { readonly error?: unknown } }
  | { readonly success: false; readonly error: unknown };
type Part =
  | { type: "text-start"; id: string }
  | { type: "error"; error: unknown }
  | { type: "text-delta"; id: string; delta: string };

const call = async (ask: Ask, dispatcher: NodeDispatcher, options: CallOptions): Promise<Response> => {
  const { url } = ask;
  const requestBodyValues = { messages: options.prompt };
  const signal = options.abortSignal === undefined ? {} : { signal: options.abortSignal };
  const response = await fetch(url, { method: "POST", body: "{}", dispatcher, ...signal }).catch((error: unknown) => {
    if (!(error instanceof TypeError) || !(error.cause instanceof Error)) throw error;
    const message = `Cannot connect to API: ${error.cause.message}`;
    throw new APICallError({ message, cause: error.cause, url, requestBodyValues, isRetryable: true });
  });
  ask.onHead?.();
  if (response.ok) return response;
  throw new APICallError({
    message: response.statusText,
    url,
    requestBodyValues,
    statusCode: response.status,
    responseHeaders: Object.fromEntries(response.headers),
    responseBody: await response.text(),
  });
};

const stream = async (languageModel: Model, ask: Ask): Promise<undefined> => {
  const result = streamText({
    model: languageModel,
    prompt: "hello",
    maxRetries: 0,
    onError: () => undefined, // the error part has it, too, and the default prints it
    ...(ask.signal === undefined ? {} : { abortSignal: ask.signal }),
    ...(ask.timeoutMs === undefined ? {} : { timeout: ask.timeoutMs }),
  });
  for await (const part of result.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta") ask.onBytes?.();
  }
};

export const aiSdkClients: ReadonlyArray<Client> = [
  {
    name: "AI SDK",
    protocol: "openai-chat",
    ask: (ask) => using(bundledAgent(ask), (dispatcher) => stream(model(ask, dispatcher), ask)),
  },
  {
    name: "AI SDK gateway",
    protocol: "ai-gateway",
    ask: (ask) =>
      using(bundledAgent(ask), (dispatcher) => {
        const over: typeof fetch = async (input, init) => {
          const response = await fetch(input, { ...init, dispatcher });
          ask.onHead?.();
          return response;
        };
        return stream(createGateway({ baseURL: ask.url, apiKey: "a key of a test", fetch: over })("test"), ask);
      }),
  },
];

/** Calls with the AI SDK's own retries, and returns its RetryError when they are exhausted. */
export const generateWithRetries = (url: string, maxRetries: number): Promise<unknown> =>
  using(bundledAgent({ url }), (dispatcher) =>
    generateText({ model: model({ url }, dispatcher), prompt: "hello", maxRetries }),
  );
