/**
 * A user's cancel and a lifecycle's close, wherever a run is: they stop it, and they win over every other reason (L10).
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

describe("A user's cancel", () => {
  it.effect("is recorded as one in the middle of a stream", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.text("half"), S.never]);
      const seen = yield* S.played(processor.run(S.options(provider, { runId: "r" })), (event) =>
        S.line(event) === "half" ? processor.cancel("r") : Effect.void,
      );
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry user_cancelled");
      const record = yield* S.recordOf("r");
      assert.deepStrictEqual(record.incidents[0]?.failure, { kind: "cancelled", by: "user" });
      assert.strictEqual(record.end?.reason, "user_cancelled");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("during the backoff is an abort, never a recovered success", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.reset], S.hello);
      const seen = yield* S.played(processor.run(S.options(provider, { runId: "r" })), (event) =>
        event._tag === "RetryScheduled" ? processor.cancel("r") : Effect.void,
      );
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "start",
        "retry replay nothing_shown",
        "end do_not_retry user_cancelled",
      ]);
      assert.strictEqual(provider.attempts.length, 1);
      const record = yield* S.recordOf("r");
      assert.deepStrictEqual(
        record.incidents.map((it) => [it.decision.rule, it.status]),
        [
          ["nothing_shown", "superseded"],
          ["user_cancelled", "final"],
        ],
      );
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is looked at before a timeout of ours", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.never]);
      const fiber = yield* Effect.forkChild(
        S.watch(processor.run(S.options(provider, { runId: "r", clocks: { first_progress: 1_000 } }))),
      );
      yield* TestClock.adjust(999);
      yield* processor.cancel("r");
      yield* TestClock.adjust("1 minute");
      assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "end do_not_retry user_cancelled");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("wins over an abort of the provider at the same time", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.wait(1_000), { interrupt: true }], S.hello);
      const fiber = yield* Effect.forkChild(S.watch(processor.run(S.options(provider, { runId: "r" }))));
      yield* TestClock.adjust(999);
      yield* processor.cancel("r");
      yield* TestClock.adjust("1 minute");
      assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "end do_not_retry user_cancelled");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("A lifecycle's close", () => {
  it.effect("before the break stops the retry", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.never], S.hello);
      const fiber = yield* Effect.forkChild(S.watch(processor.run(S.options(provider))));
      yield* TestClock.adjust("1 second");
      yield* processor.close("shutdown");
      const seen = yield* Fiber.join(fiber);
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry lifecycle_closed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("during the backoff stops the retry, and the message is recomputed", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.reset], S.hello);
      const messages: Array<string> = [];
      const seen = yield* S.played(processor.run(S.options(provider)), (event) => {
        if (event._tag !== "RetryScheduled") return Effect.void;
        messages.push(event.message);
        return Effect.forkDetach(processor.close("shutdown"));
      });
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry lifecycle_closed");
      const error = S.errorOf(seen.exit);
      assert.notStrictEqual(error?.message, messages[0]);
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("after the backoff stops the attempt that it started", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.reset], [S.start, S.never]);
      const seen = yield* S.played(processor.run(S.options(provider)), (event) =>
        S.line(event) === "attempt 2 replay" ? Effect.forkDetach(processor.close("shutdown")) : Effect.void,
      );
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry lifecycle_closed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("refuses new runs in a clear sentence", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      yield* processor.close("shutdown");
      const seen = yield* S.played(processor.run(S.options(S.scripted(S.hello))));
      assert.deepStrictEqual(seen.lines, ["end refused lifecycle_closed"]);
      assert.strictEqual(S.errorOf(seen.exit)?.message, "the processor is closed: shutdown");
    }).pipe(Effect.provide(S.processor())),
  );
});
