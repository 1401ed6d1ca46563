import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import { retryWhileTransient, storeWaitMs } from "../../../src/cli/serve/Start.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";

const failed = (reason: "locked" | "unavailable") => new RecorderError({ reason, run_id: "", message: "it is away" });

/** A store with the given results in turn, the last of which repeats. It counts its openings. */
const storeOf = (...said: ReadonlyArray<RecorderError | "open">) => {
  let tries = 0;
  const once = Effect.suspend(() => {
    const now = said[Math.min(tries, said.length - 1)];
    tries += 1;
    return typeof now === "object" ? Effect.fail(now) : Effect.succeed(now);
  });
  return { opened: retryWhileTransient(once), tries: () => tries };
};

describe("a start", () => {
  it.effect("tries a store again that may become available soon", () =>
    Effect.gen(function* () {
      const { opened, tries } = storeOf(failed("locked"), failed("locked"), "open");
      const fiber = yield* Effect.forkChild(opened, { startImmediately: true });
      assert.strictEqual(tries(), 1);
      yield* TestClock.adjust("2 seconds");
      assert.strictEqual(yield* Fiber.join(fiber), "open");
      assert.strictEqual(tries(), 3);
    }),
  );

  it.effect("fails with the store's own error after the maximum wait", () =>
    Effect.gen(function* () {
      const { opened, tries } = storeOf(failed("locked"));
      const fiber = yield* Effect.forkChild(Effect.flip(opened), { startImmediately: true });
      yield* TestClock.adjust(storeWaitMs - 1);
      assert.isUndefined(fiber.pollUnsafe());
      yield* TestClock.adjust(1);
      assert.strictEqual((yield* Fiber.join(fiber)).reason, "locked");
      assert.strictEqual(tries(), 61);
    }),
  );

  it.effect("fails at once if the options are the reason, even after a wait", () =>
    Effect.gen(function* () {
      const wrong = storeOf(failed("unavailable"), "open");
      assert.strictEqual((yield* Effect.flip(wrong.opened)).reason, "unavailable");
      assert.strictEqual(wrong.tries(), 1);
      const later = storeOf(failed("locked"), failed("unavailable"), "open");
      const fiber = yield* Effect.forkChild(Effect.flip(later.opened), { startImmediately: true });
      yield* TestClock.adjust("1 second");
      assert.strictEqual((yield* Fiber.join(fiber)).reason, "unavailable");
    }),
  );
});
