/**
 * Effect AI with text that is shown at once, and withdrawn if its response breaks and is requested again.
 */
import { Effect, Layer, Redacted, Stream } from "effect";
import { RunRecorder, StreamProcessor, UserDecisions } from "effect-stream-recovery";
import { EffectAi } from "effect-stream-recovery/effect-ai";
import { ProviderModel } from "effect-stream-recovery/provider-model";
import { FaultProvider } from "effect-stream-recovery/testing";

const answers = [
  { content: [{ text: 3 }], break: { kind: "rst", at: "terminal" } },
  { content: [{ text: 3 }] },
] as const;

const model = Layer.unwrap(
  Effect.map(FaultProvider, ({ url }) =>
    ProviderModel.layer({
      protocol: "anthropic-messages",
      model: "claude",
      baseUrl: url, // the real one: "https://api.anthropic.com"
      apiKey: Redacted.make("not-a-key"), // the real one: Config.Redacted("ANTHROPIC_API_KEY")
    }),
  ),
);

// A person or your code; without this layer every question gets its default, `stop`.
const asking = UserDecisions.layerAsk(({ choices, default_choice, may_repeat }) =>
  Effect.succeed(choices.includes("retry") && may_repeat.length === 0 ? "retry" : default_choice),
);
const services = StreamProcessor.layer.pipe(
  Layer.provide([asking, RunRecorder.layerMemory()]),
  Layer.merge(model), // `EffectAi.run` recovers the model itself, so `EffectAi.layer` is not needed
  Layer.provide(FaultProvider.layer({ script: { answers } })),
);

const program = EffectAi.run({ prompt: "Say hello" }).pipe(
  Stream.runForEach((event) =>
    Effect.sync(() => {
      if (event._tag === "Part" && event.part.type === "text-delta") process.stdout.write(event.part.delta);
      if (event._tag === "AttemptDiscarded") process.stdout.write("\n[withdrawn]\n");
    }),
  ),
);
await Effect.runPromise(Effect.provide(program, services));
