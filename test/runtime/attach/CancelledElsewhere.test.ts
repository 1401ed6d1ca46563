/** A processor hears of cancels of the runs that it drives, and of no others. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import * as StoredCancels from "../../../src/runtime/attach/StoredCancels.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";
import * as S from "../Scripted.ts";

describe("a processor over a store that processes share", () => {
  it.effect("cancels its run for who has the store, and not for a client that the run is not known to be of", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock;
      const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
      const other = store.process();
      const cancels = { ...store.process(), driver: () => Effect.undefined };
      const recorder = S.recorderThat({ cancels });
      yield* Effect.gen(function* () {
        const provider = S.scripted([S.start, S.text("begun"), S.never]);
        const processor = yield* StreamProcessor;
        const reading = yield* Effect.forkChild(S.watch(processor.run(S.options(provider, { runId: "r" }))));
        yield* TestClock.adjust(10);
        const asked = (cancel: StoredCancels.Cancel) =>
          Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(StoredCancels.cancel(other, cancel));
            yield* TestClock.adjust(2 * StoredCancels.cancelMs);
            return yield* Fiber.join(fiber);
          });
        assert.isFalse(yield* asked({ run_id: "r", holder: "a digest of another client" }));
        assert.isFalse(yield* asked({ run_id: "another" }));
        assert.strictEqual((yield* S.recordOf("r")).state, "live");
        assert.isTrue(yield* asked({ run_id: "r" }));
        yield* Fiber.join(reading);
        assert.strictEqual((yield* S.recordOf("r")).end?.reason, "user_cancelled");
      }).pipe(
        Effect.provide(
          StreamProcessor.layer.pipe(Layer.provideMerge(Layer.merge(recorder, UserDecisions.layerHeadless()))),
        ),
      );
    }).pipe(Effect.scoped),
  );
});
