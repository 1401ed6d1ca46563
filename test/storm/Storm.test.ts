/** Two hundred runs over one provider that breaks all of them: judged by the server's own log. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Stream } from "effect";
import { ProviderClient } from "../../src/client/index.ts";
import * as OpenAiChat from "../../src/provider/openai-chat/Decode.ts";
import { tokensMax, tokensPerSecond } from "../../src/runtime/pacing/Throttle.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { FaultProvider } from "../../src/testing/index.ts";

const runs = 200;
/** The provider answers and fails. Connections that break together are an outage: their runs go in waves instead. */
const broken = { status: 500 } as const;
const script = { answers: [...Array.from({ length: runs }, () => broken), { content: [{ text: 1 }] }] } as const;

describe("a storm on real sockets", () => {
  it.live("200 runs do not retry in lockstep, and each is asked for exactly twice", () =>
    Effect.gen(function* () {
      const provider = yield* FaultProvider.make({ script });
      const client = yield* ProviderClient;
      const processor = yield* StreamProcessor;
      const ends = yield* Effect.forEach(
        Array.from({ length: runs }, (_, index) => index),
        (index) =>
          Stream.runLast(
            processor.run({
              provider: { id: "storm", reasoning: false },
              tools: [],
              attempt: ({ bytes, delivery }) =>
                client.stream({
                  protocol: OpenAiChat.protocol,
                  url: provider.endpoint("openai-chat"),
                  body: { stream: true, run: index },
                  bytes,
                  delivery,
                }),
              observe: OpenAiChat.observe,
            }),
          ),
        { concurrency: "unbounded" },
      );
      assert.isTrue(ends.every((end) => end._tag === "Some" && end.value._tag === "RunCompleted"));
      const log = yield* provider.log;
      assert.strictEqual(log.length, 2 * runs);
      const seen = new Set<string>();
      const retries = log.filter(({ body_hash }) => seen.size === seen.add(body_hash).size);
      assert.strictEqual(retries.length, runs);
      // No second of the server's clock holds more than the burst and what two seconds refill.
      const perSecond = new Map<number, number>();
      const began = Math.min(...retries.map(({ started_ms }) => started_ms));
      for (const { started_ms } of retries) {
        const second = Math.floor((started_ms - began) / 1_000);
        perSecond.set(second, (perSecond.get(second) ?? 0) + 1);
      }
      assert.isAtMost(Math.max(...perSecond.values()), tokensMax + 2 * tokensPerSecond);
    }).pipe(Effect.scoped, Effect.provide(Layer.merge(StreamProcessor.layerDefault, ProviderClient.layer()))),
  );
});
