/**
 * One recovered request through each entry that runs without Node: the first answer breaks, the second is whole.
 */
import { Effect, Layer, References, Stream } from "effect";
import { AiError, type Response as AiResponse, LanguageModel } from "effect/ai";
import { createRecovery } from "../../src/adapters/ai-sdk/AiSdk.ts";
import { EffectAi } from "../../src/adapters/effect-ai/index.ts";
import { recoveringFetch } from "../../src/adapters/fetch/FetchRecovery.ts";
import * as Observation from "../../src/domain/Observation.ts";
import { fromAsyncIterable, StreamProcessor } from "../../src/index.ts";

/** The result of a turn. */
export interface Turn {
  readonly text: string;
  readonly requests: number;
}

const chunk = (delta: object, finish: string | null = null): string =>
  `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

const encoder = new TextEncoder();

/** Through `./fetch`, over a fetch of the page that breaks as the runtime says it. */
export const fetched = async (broken: () => Error): Promise<Turn> => {
  let requests = 0;
  const fetch = recoveringFetch({
    fetch: async () => {
      requests += 1;
      const first = requests === 1;
      let sent = false;
      const body = new ReadableStream<Uint8Array>({
        pull: (controller) => {
          if (first && sent) return controller.error(broken());
          sent = true;
          const bytes = first
            ? chunk({ role: "assistant", content: "" })
            : `${chunk({ role: "assistant", content: "GOOD" })}${chunk({}, "stop")}data: [DONE]\n\n`;
          controller.enqueue(encoder.encode(bytes));
          if (!first) controller.close();
        },
      });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  });
  const answer = await fetch("https://provider.test/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "x" }] }),
  });
  const body = await answer.text();
  await fetch.close();
  return { text: body.includes("GOOD") ? "GOOD" : body, requests };
};

const reset = AiError.make({
  module: "Page",
  method: "streamText",
  reason: new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "https://provider.test" }),
});

const quiet = Layer.succeed(References.MinimumLogLevel, "None");

/** Through `./effect-ai`, over a language model of the page. */
export const effectAi = async (): Promise<Turn> => {
  let requests = 0;
  const whole: ReadonlyArray<AiResponse.StreamPartEncoded> = [
    { type: "text-start", id: "t" },
    { type: "text-delta", id: "t", delta: "GOOD" },
    { type: "text-end", id: "t" },
    { type: "finish", reason: "stop", usage: { inputTokens: {}, outputTokens: {} } },
  ];
  const model = LanguageModel.make({
    streamText: () =>
      Stream.suspend(() => {
        requests += 1;
        return requests === 1 ? Stream.fail(reset) : Stream.fromIterable(whole);
      }),
    generateText: () => Effect.succeed([]),
  });
  const layer = EffectAi.layer().pipe(
    Layer.provide(Layer.effect(LanguageModel.LanguageModel, model)),
    Layer.provide(StreamProcessor.layerDefault),
    Layer.provideMerge(quiet),
  );
  const parts = await LanguageModel.streamText({ prompt: "x" }).pipe(
    Stream.runCollect,
    Effect.provide(layer),
    Effect.runPromise,
  );
  return { text: parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join(""), requests };
};

/** Through `./ai-sdk`, over a model of specification v4. */
export const aiSdk = async (): Promise<Turn> => {
  let requests = 0;
  const recovery = createRecovery({ layer: Layer.provideMerge(StreamProcessor.layerDefault, quiet) });
  const model = recovery.recover({
    specificationVersion: "v4",
    provider: "page",
    modelId: "m",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("not asked for")),
    doStream: async () => {
      requests += 1;
      if (requests === 1) throw Object.assign(new TypeError("network error"), {});
      return {
        stream: new ReadableStream({
          start: (controller) => {
            controller.enqueue({ type: "text-start", id: "t" });
            controller.enqueue({ type: "text-delta", id: "t", delta: "GOOD" });
            controller.enqueue({ type: "text-end", id: "t" });
            controller.enqueue({
              type: "finish",
              finishReason: { unified: "stop", raw: "stop" },
              usage: {
                inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
                outputTokens: { total: 1, text: 1, reasoning: 0 },
              },
            });
            controller.close();
          },
        }),
      };
    },
  });
  const { stream } = await model.doStream({ prompt: [] });
  let text = "";
  const reader = stream.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read())
    if (read.value.type === "text-delta") text += read.value.delta;
  await recovery.close();
  return { text, requests };
};

/** Through the processor itself. */
export const processor = async (): Promise<Turn> => {
  let requests = 0;
  const parts = Effect.flatMap(StreamProcessor, (it) =>
    it
      .parts({
        provider: { id: "page" },
        tools: [],
        attempt: () =>
          fromAsyncIterable(
            async function* () {
              requests += 1;
              if (requests === 1) throw Object.assign(new TypeError("Failed to fetch"), {});
              yield { text: "GOOD", is: Observation.text(4) };
              yield { text: "", is: Observation.terminal("stop") };
            },
            (error) => error,
          ),
        observe: (part) => part.is,
      })
      .pipe(Stream.runCollect),
  );
  const layer = Layer.provideMerge(StreamProcessor.layerDefault, quiet);
  const seen = await Effect.runPromise(Effect.provide(parts, layer));
  return { text: seen.map((part) => part.text).join(""), requests };
};
