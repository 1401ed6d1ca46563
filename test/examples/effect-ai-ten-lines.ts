/**
 * Ten lines to embed it in an agent of Effect AI. The test runs them against a provider that breaks.
 */
import { Config, Effect, Layer, Schema, Stream } from "effect";
import { Chat, Tool, Toolkit } from "effect/ai";
import { StreamProcessor } from "effect-stream-recovery";
import { EffectAi } from "effect-stream-recovery/effect-ai";
import { ProviderModel } from "effect-stream-recovery/provider-model";

const Weather = Tool.make("weather", {
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.String,
}).annotate(EffectAi.ToolEffect, "read_only"); // what running it does; unknown where it is left out
const tools = Toolkit.make(Weather);
const handlers = tools.toLayer({ weather: ({ city }) => Effect.succeed(`It rains in ${city}.`) });

const model = ProviderModel.layer({
  protocol: "openai-chat", // or any other LanguageModel of effect/ai
  model: "gpt-5",
  baseUrl: process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
  apiKey: Config.Redacted("OPENAI_API_KEY"),
});
const recovered = EffectAi.layer().pipe(Layer.provide(model), Layer.provideMerge(StreamProcessor.layerDefault));

const program = Effect.gen(function* () {
  const chat = yield* Chat.fromPrompt("You are a helpful assistant.");
  const toolkit = yield* tools;
  for (let prompt = "How is the weather in Ulm?", called = true; called; prompt = "") {
    called = false;
    yield* chat.streamText({ prompt: prompt === "" ? [] : prompt, toolkit }).pipe(
      Stream.runForEach((part) =>
        Effect.sync(() => {
          if (part.type === "tool-call") called = true;
          if (part.type === "text-delta") process.stdout.write(part.delta);
        }),
      ),
    );
  }
});
await Effect.runPromise(program.pipe(Effect.provide([recovered, handlers])));
