/**
 * Reads the events through `streamText` of the AI SDK, with a language model that emits them as its own parts.
 */
import { type LanguageModel, streamText } from "ai";
import { events, eventsOf, type Pace } from "./Events.ts";

type Model = Extract<LanguageModel, { readonly specificationVersion: "v4" }>;
type ModelStream = Awaited<ReturnType<Model["doStream"]>>["stream"];
type ModelPart = ModelStream extends ReadableStream<infer Part> ? Part : never;

/** Reads `count` deltas and returns the number of events of the source. */
export const readWithAiSdk = async (count: number, pace: Pace): Promise<number> => {
  let deltas = 0;
  let finished = 0;
  const result = streamText({ model: model(count, pace), prompt: "hi", onError: raise });
  for await (const part of result.stream) {
    if (part.type === "text-delta") deltas += 1;
    if (part.type === "finish") finished += 1;
  }
  return finished === 1 ? eventsOf(deltas) : 0;
};

const raise = ({ error }: { readonly error: unknown }): never => {
  throw error;
};

const model = (count: number, pace: Pace): Model => ({
  specificationVersion: "v4",
  provider: "bench",
  modelId: "bench",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("the bench only streams")),
  doStream: () => Promise.resolve({ stream: ReadableStream.from(parts(count, pace)) }),
});

async function* parts(count: number, pace: Pace): AsyncGenerator<ModelPart> {
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "1" };
  for await (const { delta, observation } of events(count, pace)) {
    if (observation.shows === "text") yield { type: "text-delta", id: "1", delta };
  }
  yield { type: "text-end", id: "1" };
  yield { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage };
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
