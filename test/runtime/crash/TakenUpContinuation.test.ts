/** A run whose last request was a continuation, taken up by a program that cannot build one. */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Layer } from "effect";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

const layer = StreamProcessor.layer.pipe(
  Layer.provideMerge(
    Layer.merge(S.recorderThat({ durable: true }), UserDecisions.layerHeadless({ otherwise: "retry" })),
  ),
);

describe("A run that is taken up after a continuation", () => {
  it.live("sends no first request instead of it, because a settled call would run again (L2)", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const pay = (yield* ToolGuard).mutating("pay", () => Effect.void);
      const continued = yield* Deferred.make<void>();
      const first = S.scripted([S.callReady("pay"), S.wait(20), S.reset], [S.never]);
      const options = S.options(first, { runId: "r", tools: [pay], canContinue: true, transcript: "t" });
      const fiber = yield* Effect.forkChild(
        S.watch(processor.run(options), (event) => {
          if (event._tag === "AttemptStarted" && event.attempt === 2) return Deferred.succeed(continued, undefined);
          const call = event._tag === "Part" ? event.calls?.[0] : undefined;
          return call === undefined ? Effect.void : pay.run(call, undefined);
        }),
      );
      yield* Deferred.await(continued);
      yield* Fiber.interrupt(fiber);
      assert.strictEqual((yield* S.recordOf("r")).attempts.at(-1)?.request, "continue");

      const next = S.scripted(S.hello, S.hello, S.hello, S.hello, S.hello, S.hello);
      const request = S.options(next, { tools: [pay], transcript: "t" });
      yield* S.watch(processor.takeUp("r", { request, transcript: "t" }));
      assert.deepStrictEqual(next.attempts, []);
    }).pipe(Effect.provide(layer)),
  );
});
