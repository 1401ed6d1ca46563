/** Law L10: each stop has its correct name. Only a signature attributes an interrupt to a user or a lifecycle. */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Exit, Fiber, Layer, ManagedRuntime, Stream } from "effect";
import { TestClock } from "effect/testing";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { InterruptSignature } from "../../../src/runtime/contract/InterruptSignature.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

const hanging = () => S.scripted([S.start, S.text("half"), S.never]);
const runOf = (provider = hanging()) =>
  Effect.map(StreamProcessor, (processor) => processor.run(S.options(provider, { runId: "r" })));

/** The recorded end of the run "r": its reason, and its incident's rule and failure. */
const endOf = Effect.map(S.recordOf("r"), (record) => ({
  end: record.end?.reason,
  rule: record.incidents.at(-1)?.decision.rule,
  failure: record.incidents.at(-1)?.failure,
}));
const unsigned = {
  end: "caller_interrupted",
  rule: "caller_interrupted",
  failure: { kind: "cancelled", by: "caller" },
} as const;

describe("L10 whose cancel", () => {
  it.effect("a plain interrupt of the caller's fiber is caller_interrupted", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Stream.runDrain(yield* runOf()));
      yield* TestClock.adjust("1 second");
      yield* Fiber.interrupt(fiber);
      assert.deepStrictEqual(yield* endOf, unsigned);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an Effect.timeout around us is caller_interrupted", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Effect.exit(Effect.timeout(Stream.runDrain(yield* runOf()), "5 seconds")));
      yield* TestClock.adjust("1 minute");
      yield* Fiber.join(fiber);
      assert.deepStrictEqual(yield* endOf, unsigned);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a lost race is caller_interrupted", () =>
    Effect.gen(function* () {
      const race = Effect.race(Stream.runDrain(yield* runOf()), Effect.sleep("5 seconds"));
      const fiber = yield* Effect.forkChild(race);
      yield* TestClock.adjust("1 minute");
      yield* Fiber.join(fiber);
      assert.deepStrictEqual(yield* endOf, unsigned);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a disposed runtime interrupts plainly, before its layer closes", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>();
      const ended = yield* Deferred.make<unknown>();
      const watching = Layer.effectDiscard(
        Effect.addFinalizer(() => Effect.andThen(endOf, (it) => Deferred.succeed(ended, it))),
      );
      const runtime = ManagedRuntime.make(
        StreamProcessor.layerDefault.pipe(
          (layer) => Layer.provideMerge(layer, Layer.empty),
          (layer) => Layer.provideMerge(watching.pipe(Layer.provide(layer)), layer),
        ),
      );
      const fiber = runtime.runFork(
        Effect.flatMap(runOf(), (stream) =>
          Stream.runForEach(stream, (event) =>
            event._tag === "Part" ? Deferred.succeed(started, undefined) : Effect.void,
          ),
        ),
      );
      yield* Deferred.await(started);
      yield* Effect.promise(() => runtime.dispose());
      assert.isTrue(Exit.isFailure(yield* Fiber.await(fiber)));
      assert.deepStrictEqual(yield* Deferred.await(ended), unsigned);
    }),
  );

  it.effect("an interrupt signed by a user is user_cancelled, one signed by a lifecycle lifecycle_closed", () =>
    Effect.gen(function* () {
      for (const [by, rule] of [
        ["user", "user_cancelled"],
        ["lifecycle", "lifecycle_closed"],
      ] as const) {
        const runId = `signed-${by}`;
        const stream = (yield* StreamProcessor).run(S.options(hanging(), { runId }));
        const fiber = yield* Effect.forkChild(Stream.runDrain(stream));
        yield* TestClock.adjust("1 second");
        yield* Fiber.interruptAs(fiber, 1, Context.make(InterruptSignature, by));
        const record = yield* S.recordOf(runId);
        assert.strictEqual(record.end?.reason, rule);
        assert.strictEqual(record.incidents.at(-1)?.decision.rule, rule);
      }
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("the signature of Effect's HTTP server for a disconnected client is a user's cancel", () =>
    Effect.gen(function* () {
      const { ClientAbort } = yield* Effect.promise(() => import("effect/http/HttpServerError"));
      const fiber = yield* Effect.forkChild(Stream.runDrain(yield* runOf()));
      yield* TestClock.adjust("1 second");
      yield* Fiber.interruptAs(fiber, 1, Context.make(ClientAbort, true));
      assert.strictEqual((yield* endOf).rule, "user_cancelled");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("Stream.take is a consumer that has finished: nothing broke, no incident, and its source is closed", () =>
    Effect.gen(function* () {
      let closed = false;
      const provider = S.scripted([
        S.start,
        S.text("a"),
        {
          finalizer: Effect.sync(() => {
            closed = true;
          }),
        },
      ]);
      const taken = yield* Stream.runCollect(Stream.take(yield* runOf(provider), 3));
      assert.strictEqual(taken.length, 3);
      assert.deepStrictEqual(yield* endOf, { end: "consumer_finished", rule: undefined, failure: undefined });
      assert.isTrue(closed);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a consumer's own error is caller_failed and is not retried", () =>
    Effect.gen(function* () {
      const stream = yield* runOf();
      const exit = yield* Effect.exit(
        Stream.runForEach(stream, (event) => (event._tag === "Part" ? Effect.fail("consumer broke") : Effect.void)),
      );
      assert.strictEqual(S.errorOf(exit), "consumer broke");
      assert.deepStrictEqual(yield* endOf, {
        end: "not_retryable",
        rule: "not_retryable",
        failure: { kind: "caller_failed" },
      });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a client that disconnects after the terminal marker cancelled nothing", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("all"), S.done, S.never]);
      const fiber = yield* Effect.forkChild(Stream.runDrain(yield* runOf(provider)));
      yield* TestClock.adjust("1 second");
      yield* Fiber.interruptAs(fiber, 1, Context.make(InterruptSignature, "user"));
      const record = yield* S.recordOf("r");
      assert.strictEqual(record.end?.state, "completed");
      assert.strictEqual(record.incidents.at(-1)?.decision.rule, "already_complete");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an interrupt during the backoff is caller_interrupted, not a recovery", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.fail({ kind: "rate_limited", retry_after_ms: 30_000 })]);
      const fiber = yield* Effect.forkChild(Stream.runDrain(yield* runOf(provider)));
      yield* TestClock.adjust("5 seconds");
      yield* Fiber.interrupt(fiber);
      assert.strictEqual((yield* endOf).end, "caller_interrupted");
      assert.strictEqual(provider.attempts.length, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect(
    "an error thrown by the caller's own observer is caller_failed, with the original error as the cause (L12)",
    () =>
      Effect.gen(function* () {
        const broken = new TypeError("no such field");
        const options = S.options(hanging(), {
          observe: () => {
            throw broken;
          },
        });
        const seen = yield* S.played((yield* StreamProcessor).run(options));
        assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
        assert.strictEqual(S.errorOf(seen.exit)?.cause, broken);
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a factory that throws is caller_failed, and its error is passed on unchanged (L12)", () =>
    Effect.gen(function* () {
      const broken = new Error("no api key");
      const options = S.options({
        attempt: () => {
          throw broken;
        },
      });
      const seen = yield* S.played((yield* StreamProcessor).run(options));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      assert.strictEqual(S.errorOf(seen.exit)?.cause, broken);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a user's cancel reaches a running tool at once, and its outcome is recorded as unknown", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const guard = yield* ToolGuard;
      let stopped = false;
      const bash = guard.mutating("bash", () =>
        Effect.onInterrupt(Effect.never, () =>
          Effect.sync(() => {
            stopped = true;
          }),
        ),
      );
      const provider = S.scripted([S.start, S.callReady("bash"), S.never]);
      const fiber = yield* Effect.forkChild(
        S.watch(processor.run(S.options(provider, { runId: "r", tools: [bash] })), (event) =>
          event._tag === "Part" && event.calls?.[0] !== undefined
            ? Effect.forkDetach(bash.run(event.calls[0], undefined))
            : Effect.void,
        ),
      );
      yield* TestClock.adjust("1 second");
      assert.isTrue(yield* processor.cancel("r"));
      yield* TestClock.adjust("1 second");
      assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "end do_not_retry user_cancelled");
      assert.isTrue(stopped);
      assert.strictEqual((yield* S.recordOf("r")).incidents.at(-1)?.facts.tools[0]?.phase, "outcome_unknown");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("an error thrown by the caller's own classify is caller_failed, and the run ends", () =>
    Effect.gen(function* () {
      const broken = new TypeError("no such field");
      const options = S.options(S.scripted([S.start, S.reset]), {
        classify: () => {
          throw broken;
        },
      });
      const seen = yield* S.played((yield* StreamProcessor).run(options));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
      assert.strictEqual(S.errorOf(seen.exit)?.cause, broken);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a recorder that dies is a failed write: nothing is retried, and the run ends (L8)", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.strictEqual(seen.lines.at(-1), "end record_failed nothing_shown");
    }).pipe(
      Effect.provide(
        StreamProcessor.layer.pipe(
          Layer.provideMerge(
            Layer.merge(UserDecisions.layerHeadless(), S.recorderThat({ write: () => Effect.die("the disk is gone") })),
          ),
        ),
      ),
    ),
  );

  it.effect("a service that dies during recovery ends the run with its defect, never silently", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.text("half"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.isTrue(Exit.isFailure(seen.exit) && seen.exit.cause.reasons.some((it) => it._tag === "Die"));
      assert.strictEqual((yield* S.recordOf("r")).end?.reason, "defect");
    }).pipe(
      Effect.provide(
        StreamProcessor.layer.pipe(
          Layer.provideMerge(
            Layer.merge(
              RunRecorder.layerMemory(),
              UserDecisions.layerAsk(() => Effect.die("the prompt broke")),
            ),
          ),
        ),
      ),
    ),
  );

  it.effect("cancelling a run that is not live reports that", () =>
    Effect.gen(function* () {
      assert.isFalse(yield* (yield* StreamProcessor).cancel("nobody"));
    }).pipe(Effect.provide(S.processor())),
  );
});
