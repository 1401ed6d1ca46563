/** The reads of a volatile run share one time budget: a slow store delays the run by that time, however many reads it makes. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import { BoundedReads, readsMsMax } from "../../../src/runtime/run/StoreReads.ts";

const slow = (ms: number) => Effect.as(Effect.sleep(ms), "read" as const);

describe("the reads of a volatile run", () => {
  it.effect("are waited for until their time together is spent", () =>
    Effect.gen(function* () {
      const clock = yield* TestClock.testClockWith(Effect.succeed);
      const reads = new BoundedReads({ isAway: false }, () => 1_000_000 + clock.currentTimeMillisUnsafe());
      const read = (ms: number) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(reads.within(slow(ms), "otherwise"), { startImmediately: true });
          yield* TestClock.adjust(ms);
          return yield* Fiber.join(fiber);
        });
      const most = readsMsMax / 2 - 1;
      assert.deepStrictEqual([yield* read(most), yield* read(most), yield* read(most)], ["read", "read", "otherwise"]);
      assert.strictEqual(yield* read(0), "otherwise");
    }),
  );

  it.effect("are not tried while the store is away", () =>
    Effect.gen(function* () {
      const reads = new BoundedReads({ isAway: true }, () => 0);
      assert.strictEqual(yield* reads.within(Effect.die("tried"), "otherwise"), "otherwise");
    }),
  );
});
