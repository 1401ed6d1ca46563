/** Law L10: a user's Stop stays the user's through every layer above the run. No request follows it. */
import { getEventListeners } from "node:events";
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Exit, Fiber, FiberSet, Queue, Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import * as Observation from "../../../src/domain/Observation.ts";
import { fromAsyncIterable } from "../../../src/runtime/attempt/AsyncSource.ts";
import { InterruptSignature } from "../../../src/runtime/contract/InterruptSignature.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

type Drained = Effect.Effect<void, unknown>;

const hanging = (runId: string, more: Parameters<typeof S.options>[1] = {}) =>
  Effect.map(StreamProcessor, (processor): Drained => {
    const provider = S.scripted([S.start, S.reasoning("hm"), S.never]);
    return Stream.runDrain(processor.run(S.options(provider, { runId, ...more })));
  });

const stopButton = () => new AbortController();

const ruleOf = (runId: string) => Effect.map(S.recordOf(runId), (record) => record.end?.reason);

/** Layers of an embedder around a run: the run's consumer is a fiber below the interrupted one. */
const around: Readonly<Record<string, (run: Drained) => Effect.Effect<unknown, unknown>>> = {
  "Effect.timeout": (run) => Effect.timeout(run, "1 hour"),
  "two timeouts": (run) => Effect.timeoutOption(Effect.timeout(run, "1 hour"), "2 hours"),
  "Effect.race": (run) => Effect.race(run, Effect.never),
  "Effect.raceFirst": (run) => Effect.raceFirst(Effect.never, run),
  "a child": (run) => Effect.flatMap(Effect.forkChild(run), Fiber.join),
  "a child that is only left behind": (run) => Effect.andThen(Effect.forkChild(run), Effect.never),
  "a fiber of its scope": (run) =>
    Effect.scoped(Effect.flatMap(Effect.forkScoped(Effect.timeout(run, "1 hour")), Fiber.join)),
  "a set of fibers": (run) =>
    Effect.scoped(
      Effect.gen(function* () {
        const set = yield* FiberSet.make<void, unknown>();
        yield* FiberSet.run(set, run);
        yield* FiberSet.join(set);
      }),
    ),
  "Effect.forEach": (run) => Effect.forEach([run, Effect.never], (it) => it, { concurrency: 2 }),
  "a queue between two fibers": (run) =>
    Effect.scoped(
      Effect.gen(function* () {
        const queue = yield* Queue.bounded<void>(1);
        yield* Effect.forkScoped(Effect.andThen(run, Queue.offer(queue, undefined)));
        yield* Queue.take(queue);
      }),
    ),
  "a finalizer that takes its time": (run) => Effect.ensuring(Effect.timeout(run, "1 hour"), Effect.yieldNow),
};

describe("L10 a signed interrupt", () => {
  for (const [name, wrap] of Object.entries(around)) {
    it.effect(`is the signer's below: ${name}`, () =>
      Effect.gen(function* () {
        for (const [by, rule] of [
          ["user", "user_cancelled"],
          ["lifecycle", "lifecycle_closed"],
          [undefined, "caller_interrupted"],
        ] as const) {
          const runId = `r-${by}`;
          const fiber = yield* Effect.forkDetach(wrap(yield* hanging(runId)));
          yield* TestClock.adjust("1 second");
          const signature = by === undefined ? undefined : Context.make(InterruptSignature, by);
          yield* Fiber.interruptAs(fiber, 7, signature);
          assert.strictEqual(yield* ruleOf(runId), rule, runId);
        }
      }).pipe(Effect.provide(S.processor())),
    );
  }

  it.effect("concerns only the fibers below it: a timeout beside it stays a caller's", () =>
    Effect.gen(function* () {
      const cancelled = yield* Effect.forkDetach(Effect.timeout(yield* hanging("cancelled"), "1 hour"));
      const beside = yield* Effect.forkDetach(Effect.timeout(yield* hanging("beside"), "5 seconds"));
      yield* TestClock.adjust("1 second");
      yield* Fiber.interruptAs(cancelled, 7, Context.make(InterruptSignature, "user"));
      yield* TestClock.adjust("10 seconds");
      yield* Fiber.await(beside);
      assert.strictEqual(yield* ruleOf("cancelled"), "user_cancelled");
      assert.strictEqual(yield* ruleOf("beside"), "caller_interrupted");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("with two signatures in one exit is the user's, in any order", () =>
    Effect.gen(function* () {
      for (const order of [
        ["user", "lifecycle"],
        ["lifecycle", "user"],
      ] as const) {
        const runId = order.join();
        const scope = yield* Scope.make();
        const stream = (yield* StreamProcessor).run(S.options(S.scripted([S.start, S.never]), { runId }));
        const pull = yield* Scope.provide(Stream.toPull(stream), scope);
        yield* Effect.forkChild(pull);
        yield* TestClock.adjust("1 second");
        const fiber = yield* Effect.forkDetach(
          Effect.uninterruptible(Effect.sleep("5 seconds")).pipe(Effect.andThen(Effect.never)),
        );
        yield* TestClock.adjust("1 second");
        for (const by of order) fiber.interruptUnsafe(1, Context.make(InterruptSignature, by));
        yield* TestClock.adjust("10 seconds");
        const exit = yield* Fiber.await(fiber);
        yield* Scope.close(scope, exit);
        assert.strictEqual(yield* ruleOf(runId), "user_cancelled", runId);
      }
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("L10 the signal of the user's Stop", () => {
  it.effect("stops the run in the user's name while it reads, waits or asks", () =>
    Effect.gen(function* () {
      const scripts = {
        reading: [S.start, S.reasoning("hm"), S.never],
        waiting: [S.start, S.fail({ kind: "rate_limited", retry_after_ms: 30_000 })],
        "a tool": [S.start, S.callReady("bash"), S.never],
      };
      const bash = (yield* ToolGuard).mutating("bash", () => Effect.never);
      for (const [runId, script] of Object.entries(scripts)) {
        const stop = stopButton();
        const provider = S.scripted(script);
        // Each run has its own path, because a delay announced to one would apply to the others.
        const options = S.options(provider, { runId, path: runId, tools: [bash], signal: stop.signal });
        const fiber = yield* Effect.forkChild(
          S.watch((yield* StreamProcessor).run(options), (event) =>
            event._tag === "Part" && event.calls?.[0] !== undefined
              ? Effect.forkDetach(bash.run(event.calls[0], undefined))
              : Effect.void,
          ),
        );
        yield* TestClock.adjust("5 seconds");
        stop.abort();
        yield* TestClock.adjust("1 second");
        const seen = yield* Fiber.join(fiber);
        assert.strictEqual(seen.lines.at(-1), "end do_not_retry user_cancelled", runId);
        assert.strictEqual(provider.attempts.length, 1);
        assert.lengthOf(getEventListeners(stop.signal, "abort"), 0);
      }
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that has aborted before the run prevents the request", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.done]);
      const options = S.options(provider, { runId: "r", signal: AbortSignal.abort() });
      const seen = yield* S.played((yield* StreamProcessor).run(options));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry user_cancelled");
      assert.lengthOf(provider.attempts, 0);
      assert.strictEqual(yield* ruleOf("r"), "user_cancelled");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is known when its error is seen before it, and there is no second request", () =>
    Effect.gen(function* () {
      const stop = stopButton();
      let requests = 0;
      // This listener was added before the run's own, so its error is decided before the run learns of the abort.
      const broken = yield* Deferred.make<never, S.ProviderBroke>();
      stop.signal.addEventListener("abort", () =>
        Deferred.doneUnsafe(broken, Effect.fail(new S.ProviderBroke({ kind: "transport", code: "ECONNRESET" }))),
      );
      const attempt = () => {
        requests += 1;
        return Stream.fromEffect(Deferred.await(broken));
      };
      const options = S.options({ attempt }, { runId: "r", signal: stop.signal });
      const fiber = yield* Effect.forkChild(S.watch((yield* StreamProcessor).run(options)));
      yield* TestClock.adjust("1 second");
      stop.abort();
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual((yield* Fiber.join(fiber)).lines, ["attempt 1 first", "end do_not_retry user_cancelled"]);
      assert.strictEqual(requests, 1);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that aborts by a timeout is a limit of the caller", () =>
    Effect.gen(function* () {
      const stop = stopButton();
      const fiber = yield* Effect.forkChild(Effect.exit(yield* hanging("r", { signal: stop.signal })));
      yield* TestClock.adjust("1 second");
      stop.abort(new DOMException("The operation timed out.", "TimeoutError"));
      yield* Fiber.join(fiber);
      assert.strictEqual(yield* ruleOf("r"), "caller_interrupted");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("is the user's if the consumer fails with it or is interrupted by it", () =>
    Effect.gen(function* () {
      for (const leave of [Effect.fail("aborted"), Effect.interrupt]) {
        const runId = `r-${Exit.isExit(leave)}`;
        const stop = stopButton();
        const stream = (yield* StreamProcessor).run(
          S.options(S.scripted([S.text("a"), S.never]), { runId, signal: stop.signal }),
        );
        yield* Effect.exit(
          Stream.runForEach(stream, (event) =>
            event._tag === "Part"
              ? Effect.andThen(
                  Effect.sync(() => stop.abort()),
                  leave,
                )
              : Effect.void,
          ),
        );
        assert.strictEqual(yield* ruleOf(runId), "user_cancelled");
      }
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("cancels nothing after the provider's terminal marker, and nothing once the run has ended", () =>
    Effect.gen(function* () {
      const stop = stopButton();
      const late = S.options(S.scripted([S.text("all"), S.done, S.never]), { runId: "late", signal: stop.signal });
      const fiber = yield* Effect.forkChild(S.watch((yield* StreamProcessor).run(late)));
      yield* TestClock.adjust("1 second");
      stop.abort();
      yield* Fiber.join(fiber);
      assert.strictEqual((yield* S.recordOf("late")).end?.state, "completed");
      const again = stopButton();
      const whole = S.options(S.scripted([S.text("all"), S.done]), { runId: "whole", signal: again.signal });
      const seen = yield* S.played((yield* StreamProcessor).run(whole), () => Effect.void);
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.lengthOf(getEventListeners(again.signal, "abort"), 0);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("one signal of many runs keeps no listener of those that have ended", () =>
    Effect.gen(function* () {
      const { signal } = stopButton();
      for (let n = 0; n < 20; n += 1) {
        const script = n % 2 === 0 ? [S.text("all"), S.done] : [S.text("half"), S.reset];
        yield* S.played((yield* StreamProcessor).run(S.options(S.scripted(script), { signal })));
      }
      assert.lengthOf(getEventListeners(signal, "abort"), 0);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("A Stop that comes while the attempt's factory runs", () => {
  it.effect("opens no source", () =>
    Effect.gen(function* () {
      const stop = new AbortController();
      let opened = 0;
      const iterable = (): AsyncIterable<S.ScriptedPart> => {
        opened += 1;
        return { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }) };
      };
      const attempt = () => {
        stop.abort();
        return fromAsyncIterable(iterable, () => new S.ProviderBroke({ kind: "unknown" }));
      };
      const { lines } = yield* S.watch((yield* StreamProcessor).run(S.options({ attempt }, { signal: stop.signal })));
      assert.deepStrictEqual(lines.slice(-1), ["end do_not_retry user_cancelled"]);
      assert.strictEqual(opened, 0);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("L10 an SDK's own error for its caller's abort", () => {
  for (const name of ["APIUserAbortError", "CanceledError"]) {
    it.effect(`${name} is the caller's, and is not replayed`, () =>
      Effect.gen(function* () {
        let requests = 0;
        const broken = Object.assign(new Error("Request was aborted."), { name });
        const attempt = () => {
          requests += 1;
          return fromAsyncIterable(
            async function* () {
              yield S.reasoning("hm");
              throw broken;
            },
            (error) => error,
          );
        };
        const seen = yield* Effect.exit(
          Stream.runDrain(
            (yield* StreamProcessor).run({
              runId: "r",
              provider: { id: "scripted" },
              tools: [],
              observe: () => Observation.reasoning(2),
              attempt,
            }),
          ),
        );
        assert.strictEqual(S.errorOf(seen)?.cause, broken);
        assert.strictEqual(yield* ruleOf("r"), "caller_interrupted");
        assert.strictEqual(requests, 1);
      }).pipe(Effect.provide(S.processor())),
    );
  }
});
