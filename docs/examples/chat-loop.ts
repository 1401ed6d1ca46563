/**
 * A chat loop with a tool, in Effect: each response is one run, a guarded tool runs once per call, and the loop ends with an answer that
 * calls no tool.
 */
import { Effect, Layer, Stream } from "effect";
import { StreamProcessor, ToolGuard } from "effect-stream-recovery";
import { ProviderClient } from "effect-stream-recovery/client";
import { Continuation, OpenAiChat } from "effect-stream-recovery/provider";
import { FaultProvider } from "effect-stream-recovery/testing";

const call = [{ tool: "weather", input: { city: "Ulm" } }];
const answers = [
  { content: call, break: { kind: "end", at: "tool_arguments" } }, // cut in its arguments
  { content: call },
  { status: 503 },
  { content: [{ text: 2 }] },
] as const;

const program = Effect.gen(function* () {
  const processor = yield* StreamProcessor;
  const client = yield* ProviderClient;
  const { url } = yield* FaultProvider; // the real one: const url = "https://api.openai.com"
  const weather = (yield* ToolGuard).readOnly("weather", (input: string) => Effect.succeed(`It rains: ${input}`));
  let body: object = { model: "gpt-5", stream: true, messages: [{ role: "user", content: "The weather in Ulm?" }] };
  for (let called = true; called; ) {
    const received = Continuation.collector("openai-chat");
    const results: Array<{ readonly attempt: number; readonly call: string; readonly output: string }> = [];
    const sent = body;
    const run = processor.run({
      provider: { id: "openai", model: "gpt-5" },
      tools: [weather],
      observe: OpenAiChat.observe,
      attempt: ({ bytes, delivery }) =>
        client.stream({
          protocol: OpenAiChat.protocol,
          url: `${url}/v1/chat/completions`,
          headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY ?? "not-a-key"}` },
          body: sent,
          bytes,
          delivery,
        }),
    });
    yield* Stream.runForEach(run, (event) => {
      if (event._tag === "AttemptDiscarded")
        return Effect.sync(() => received.discard(event.attempt, event.keep_through));
      if (event._tag !== "Part") return Effect.void;
      received.take(event.attempt, event.ordinal, event.part);
      process.stdout.write(Continuation.textOf(event.part));
      return Effect.forEach(event.calls ?? [], (each) =>
        weather.run(each, each.input ?? "").pipe(
          Effect.map((output) => results.push({ attempt: each.attempt, call: each.call, output })),
          Effect.catchTag("ToolRefused", () => Effect.void), // its response broke first; the retry asks for it again
        ),
      );
    });
    called = results.length > 0;
    const calls = results.map((result) => ({ ...result, outcome: "settled" as const }));
    const next = { body: sent, received: received.received(), calls, results };
    body = yield* Effect.fromResult(Continuation.build("openai-chat", next));
  }
});

const services = Layer.mergeAll(
  StreamProcessor.layerDefault,
  ProviderClient.layer(),
  FaultProvider.layer({ script: { answers } }),
);
await Effect.runPromise(Effect.provide(program, services));
