/**
 * A chat of Effect AI: one layer makes its language model recoverable, and the program stays as it is.
 */
import { Effect, Layer, Redacted, Schema, Stream } from "effect";
import { Chat, Tool, Toolkit } from "effect/ai";
import { StreamProcessor } from "effect-stream-recovery";
import { EffectAi } from "effect-stream-recovery/effect-ai";
import { ProviderModel } from "effect-stream-recovery/provider-model";
import { FaultProvider } from "effect-stream-recovery/testing";

const call = [{ tool: "weather", input: { city: "Ulm" } }];
const answers = [
  { content: call, break: { kind: "end", at: "tool_arguments" } },
  { content: call },
  { content: [{ text: 2 }] },
] as const;

const Weather = Tool.make("weather", {
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.String,
}).annotate(EffectAi.ToolEffect, "read_only"); // running it twice is as good as once; without this line: unknown
const tools = Toolkit.make(Weather);
const handlers = tools.toLayer({ weather: ({ city }) => Effect.succeed(`It rains in ${city}.`) });

const model = Layer.unwrap(
  Effect.map(FaultProvider, ({ url }) =>
    ProviderModel.layer({
      protocol: "openai-chat", // or any other LanguageModel of effect/ai
      model: "gpt-5",
      baseUrl: `${url}/v1`, // the real one: "https://api.openai.com/v1"
      apiKey: Redacted.make("not-a-key"), // the real one: Config.Redacted("OPENAI_API_KEY")
    }),
  ),
);
const recovered = EffectAi.layer().pipe(
  Layer.provide(model),
  Layer.provideMerge(StreamProcessor.layerDefault),
  Layer.provide(FaultProvider.layer({ script: { answers } })),
);

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
