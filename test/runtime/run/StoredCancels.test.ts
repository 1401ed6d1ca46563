import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber, Logger } from "effect";
import { TestClock } from "effect/testing";
import * as StoredCancels from "../../../src/runtime/run/StoredCancels.ts";
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
      yield* TestClock.adjust(3 * StoredCancels.cancelMs + 500);
      assert.deepStrictEqual(yield* Fiber.join(asked), [false, false, false]);
      // Before the last of them would be over by itself.
      assert.lengthOf(yield* other.all("cancel"), 0);
      store.say({ _tag: "Look" });
      yield* TestClock.adjust(1);
      assert.lengthOf(cancelled, 0);
    }).pipe(Effect.scoped),
  );

  it.effect("that was taken back while its driver looked at it is not carried out", () =>
    Effect.gen(function* () {
      const { cancelled, other, store } = yield* two;
      const late = store.process();
      const heard: Array<StoredCancels.Cancel> = [];
      yield* StoredCancels.hearing(
        // Whoever has asked takes it back between this process's look and its step.
        { ...late, take: () => Effect.undefined },
        () => true,
        (asked) => void heard.push(asked),
      );
      const asked = yield* Effect.forkChild(StoredCancels.cancel(other, { run_id: "another", holder: "h" }));
      yield* TestClock.adjust(4 * StoredCancels.cancelMs);
      assert.isFalse(yield* Fiber.join(asked));
      assert.deepStrictEqual([heard, cancelled], [[], []]);
    }).pipe(Effect.scoped),
  );

  it.effect("is said once to be unknown while the store is away, however often it is looked for", () =>
    Effect.gen(function* () {
      const { cancelled, other, store } = yield* two;
      const lines: Array<string> = [];
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)));
      yield* Effect.gen(function* () {
        yield* StoredCancels.hearing(
          store.process(),
          () => false,
          () => undefined,
        );
        store.isAway = true;
        for (let n = 0; n < 20; n += 1) {
          store.say({ _tag: "Look" });
          yield* TestClock.adjust(500);
        }
        store.isAway = false;
        store.say({ _tag: "Look" });
        yield* TestClock.adjust(500);
      }).pipe(Effect.provide(Logger.layer([logger])));
      const about = lines.filter((line) => line.includes("cancellations from other processes"));
      assert.lengthOf(about, 2, about.join("; "));
      const asked = yield* Effect.forkChild(StoredCancels.cancel(other, { run_id: "run", holder: "h" }));
      yield* TestClock.adjust(100);
      assert.isTrue(yield* Fiber.join(asked));
      assert.lengthOf(cancelled, 1);
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
