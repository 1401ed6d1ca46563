/**
 * A user's cancel and a lifecycle's close at any point of a run: they stop it, and they outrank every other reason (L10).
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Fiber, Layer, Logger, Stream } from "effect";
import { TestClock } from "effect/testing";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { InterruptSignature } from "../../../src/runtime/contract/InterruptSignature.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Linger from "../../../src/stages/output/Linger.ts";
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

  it.effect("is checked before our own timeout", () =>
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

  it.effect("wins over a simultaneous abort of the provider", () =>
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

  it.effect("during the backoff stops the retry, and the message is updated", () =>
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

  it.effect("refuses new runs with a clear sentence", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      yield* processor.close("shutdown");
      const seen = yield* S.played(processor.run(S.options(S.scripted(S.hello))));
      assert.deepStrictEqual(seen.lines, ["end refused lifecycle_closed"]);
      assert.strictEqual(S.errorOf(seen.exit)?.message, "the processor is closed: shutdown");
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("A custom policy", () => {
  /** A policy that retries the provider's own cancels without reading `by`. */
  const eager = (asked: () => void) =>
    S.policyOf({
      name: "eager",
      decide: () => {
        asked();
        return {
          action: "auto_retry_once",
          rule: "nothing_shown",
          mode: "replay",
          delay_ms: 0,
          policy_version: "1",
          because: [],
        };
      },
    });

  for (const [how, rule] of [
    ["cancel", "user_cancelled"],
    ["close", "lifecycle_closed"],
    ["timeout", "caller_interrupted"],
  ] as const)
    it.effect(`is not asked after a ${how}: ${rule} applies`, () =>
      Effect.gen(function* () {
        const processor = yield* StreamProcessor;
        const provider = S.scripted([S.start, S.never]);
        let asked = 0;
        const policy = eager(() => {
          asked += 1;
        });
        const stream = processor.run(S.options(provider, { runId: "r", policy }));
        const fiber = yield* Effect.forkChild(
          Effect.exit(Effect.timeout(S.watch(stream), how === "timeout" ? "5 seconds" : "1 hour")),
        );
        yield* TestClock.adjust("5 seconds");
        if (how === "cancel") yield* processor.cancel("r");
        if (how === "close") yield* processor.close("bye");
        yield* TestClock.adjust("6 seconds");
        assert.isDefined(fiber.pollUnsafe());
        assert.strictEqual(asked, 0);
        assert.strictEqual(provider.attempts.length, 1);
        const record = yield* S.recordOf("r");
        assert.strictEqual(record.end?.reason, rule);
        assert.strictEqual(record.incidents.at(-1)?.decision.rule, rule);
      }).pipe(Effect.provide(S.processor())),
    );

  it.effect("that throws ends the run as RunInterrupted with the provider's own error, and is reported", () => {
    const logged: Array<unknown> = [];
    const logger = Logger.make(({ message }) => void logged.push(message));
    const policy = S.policyOf({
      name: "throws",
      decide: () => {
        throw new Error("no idea");
      },
    });
    return Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r", policy })));
      const error = S.errorOf(seen.exit);
      assert.strictEqual(error?._tag, "RunInterrupted");
      assert.strictEqual(error?.failure.code, "ECONNRESET");
      assert.instanceOf(error?.cause, S.ProviderBroke);
      assert.deepStrictEqual((yield* S.recordOf("r")).incidents[0]?.decision.because, ["decision=threw"]);
      assert.isTrue(logged.flat().includes("the policy threw"));
    }).pipe(Effect.provide(S.processor().pipe(Layer.provideMerge(Logger.layer([logger])))));
  });
});

describe("A stop during the first write of a run", () => {
  const slow = Layer.effect(
    RunRecorder,
    Effect.map(RunRecorder, (recorder) => {
      let writes = 0;
      return {
        ...recorder,
        write: (...given: Parameters<typeof recorder.write>) => {
          writes += 1;
          return writes === 1
            ? Effect.andThen(Effect.sleep("1 second"), recorder.write(...given))
            : recorder.write(...given);
        },
      };
    }),
  ).pipe(Layer.provide(RunRecorder.layerMemory()));
  const processor = StreamProcessor.layer.pipe(Layer.provideMerge(Layer.merge(slow, UserDecisions.layerHeadless())));

  for (const [how, rule] of [
    ["a signed interrupt", "user_cancelled"],
    ["a plain interrupt", "caller_interrupted"],
    ["a timeout", "caller_interrupted"],
  ] as const)
    for (const lingerMs of [0, 5_000])
      it.effect(`${how}${lingerMs > 0 ? ", of a run that lingers," : ""} is heard before the request is sent`, () =>
        Effect.gen(function* () {
          const provider = S.scripted([S.start, S.never]);
          const options = S.options(provider, { runId: "r", ...(lingerMs > 0 ? { linger: Linger.of(lingerMs) } : {}) });
          const run = Stream.runDrain((yield* StreamProcessor).run(options));
          const fiber = yield* Effect.forkDetach(Effect.exit(how === "a timeout" ? Effect.timeout(run, 300) : run), {
            startImmediately: true,
          });
          yield* TestClock.adjust(300);
          if (how !== "a timeout") {
            const signature = how === "a signed interrupt" ? Context.make(InterruptSignature, "user") : Context.empty();
            yield* Effect.forkDetach(Fiber.interruptAs(fiber, 7, signature), { startImmediately: true });
          }
          yield* TestClock.adjust("2 seconds");
          // An unsigned interrupt does not end a run that lingers.
          const goesOn = lingerMs > 0 && rule === "caller_interrupted";
          assert.strictEqual(provider.attempts.length, goesOn ? 1 : 0);
          assert.strictEqual((yield* S.recordOf("r")).end?.reason, goesOn ? undefined : rule);
          yield* TestClock.adjust("10 seconds");
          assert.isTrue(Exit.isExit(fiber.pollUnsafe()));
        }).pipe(Effect.provide(processor)),
      );
});
