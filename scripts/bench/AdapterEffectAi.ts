/**
 * Reads a stream with Effect AI and this package's model, both bare and recovered.
 */
import { Effect, Layer, ManagedRuntime, Redacted, Stream } from "effect";
import { LanguageModel } from "effect/ai";
import { EffectAi } from "../../src/adapters/effect-ai/index.ts";
import { ProviderModel } from "../../src/adapters/provider-model/index.ts";
import { StreamProcessor } from "../../src/index.ts";
import type { Pair, Read } from "./Adapters.ts";

/** Effect AI over Chat Completions. */
export const effectAi = (url: string): Pair => {
  const apiKey = Redacted.make("not-a-key");
  const model = ProviderModel.layer({ protocol: "openai-chat", model: "bench", baseUrl: `${url}/v1`, apiKey });
  const recovered = EffectAi.layer().pipe(Layer.provide(model), Layer.provide(StreamProcessor.layerDefault));
  return { bare: reader(model), recovered: reader(recovered) };
};

const reader = <E>(model: Layer.Layer<LanguageModel.LanguageModel, E>): Read => {
  const runtime = ManagedRuntime.make(model);
  return async () => {
    let seen = 0;
    const one = (part: { readonly type: string }) => {
      if (part.type === "text-delta") seen += 1;
      return Effect.void;
    };
    await runtime.runPromise(Stream.runForEach(LanguageModel.streamText({ prompt: "hi" }), one));
    return seen;
  };
};
