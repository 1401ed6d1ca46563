import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import * as StoredCancels from "../../../src/runtime/attach/StoredCancels.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";

/** The driver of a run, and another process. */
const two = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
  const [driver, other] = [store.process(), store.process()];
  const cancelled: Array<StoredCancels.Cancel> = [];
  yield* StoredCancels.hearing(
    driver,
    ({ holder, run_id }) => run_id === "run" && holder === "h",
    (asked) => void cancelled.push(asked),
  );
  return { cancelled, driver, other, store };
});

describe("a cancel of a run that another process drives", () => {
  it.effect("reaches it, and is confirmed once it was cancelled", () =>
    Effect.gen(function* () {
      const { cancelled, other } = yield* two;
      const asked = yield* Effect.forkChild(StoredCancels.cancel(other, { run_id: "run", holder: "h" }));
      yield* TestClock.adjust(100);
      assert.isTrue(yield* Fiber.join(asked));
      assert.deepStrictEqual(cancelled, [{ run_id: "run", holder: "h" }]);
    }).pipe(Effect.scoped),
  );

  it.effect("is nobody's where no process drives the run for who asks, and is taken back", () =>
    Effect.gen(function* () {
      const { cancelled, other, store } = yield* two;
      const all = [{ run_id: "run", holder: "another" }, { run_id: "run" }, { run_id: "other", holder: "h" }];
      const asked = yield* Effect.forkChild(Effect.forEach(all, (it) => StoredCancels.cancel(other, it)));
      yield* TestClock.adjust(4 * StoredCancels.cancelMs);
      assert.deepStrictEqual(yield* Fiber.join(asked), [false, false, false]);
      assert.lengthOf(yield* other.all("cancel"), 0);
      store.say({ _tag: "Look" });
      yield* TestClock.adjust(1);
      assert.lengthOf(cancelled, 0);
    }).pipe(Effect.scoped),
  );

  it.effect("is found by the next look where its word was lost, and fails where the store is away", () =>
    Effect.gen(function* () {
      const { cancelled, other, store } = yield* two;
      store.isMute = true;
      const asked = yield* Effect.forkChild(StoredCancels.cancel(other, { run_id: "run", holder: "h" }));
      yield* TestClock.adjust(100);
      assert.lengthOf(cancelled, 0);
      store.say({ _tag: "Look" });
      yield* TestClock.adjust(100);
      assert.isTrue(yield* Fiber.join(asked));
      store.isAway = true;
      assert.isFalse(yield* StoredCancels.cancel(other, { run_id: "run", holder: "h" }));
    }).pipe(Effect.scoped),
  );
});
