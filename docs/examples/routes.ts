/**
 * A run that moves to a second provider, because the first one is down.
 */
import { Effect, Layer, Stream } from "effect";
import { type AttemptContext, StreamProcessor } from "effect-stream-recovery";
import { ProviderClient } from "effect-stream-recovery/client";
import { Continuation, OpenAiChat } from "effect-stream-recovery/provider";
import { Routes } from "effect-stream-recovery/stages";
import { FaultProvider } from "effect-stream-recovery/testing";

const program = Effect.gen(function* () {
  const processor = yield* StreamProcessor;
  const client = yield* ProviderClient;
  const { url } = yield* FaultProvider; // yours: the base URL of the second provider
  const route = (id: string, base: string, model: string) => ({
    provider: { id, model },
    observe: OpenAiChat.observe,
    attempt: ({ bytes, delivery }: AttemptContext) =>
      client.stream({
        protocol: OpenAiChat.protocol,
        url: `${base}/v1/chat/completions`,
        headers: { authorization: "Bearer not-a-key" },
        body: { model, stream: true, messages: [{ role: "user", content: "Say hello" }] },
        bytes,
        delivery,
      }),
  });
  const run = processor.run({
    ...route("first", "http://127.0.0.1:9", "gpt-5"), // refuses connections; the real one: "https://api.openai.com"
    tools: [],
    // `own: true`: the first route's key and model are the program's too, so their rejection also moves the run.
    routes: Routes.of([{ id: "spare", ...route("second", url, "llama") }], { own: true }),
  });
  yield* Stream.runForEach(run, (event) =>
    Effect.sync(() => {
      if (event._tag === "Part") process.stdout.write(Continuation.textOf(event.part));
      if (event._tag === "RunCompleted") console.log(`\nanswered by ${event.route ?? "the first"}`);
    }),
  );
});
const services = Layer.mergeAll(
  StreamProcessor.layerDefault,
  ProviderClient.layer(),
  FaultProvider.layer({ script: { answers: [{ content: [{ text: 2 }] }] } }),
);
await Effect.runPromise(Effect.provide(program, services));
