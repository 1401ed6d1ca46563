/** A source that is read directly: no fiber stands around it, and whatever it does, its run hears of an end and it is closed. */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Stream } from "effect";
import * as Observation from "../../../src/domain/Observation.ts";
import { fromReader, type Polled, type PolledReader } from "../../../src/runtime/attempt/AsyncSource.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const hello: S.ScriptedPart = { name: "hello", says: Observation.text(5) };
const done: S.ScriptedPart = { name: "done", says: Observation.terminal("stop") };
const error: S.ScriptedPart = { name: "error", says: Observation.failed({ kind: "overloaded", in_band: true }) };

const chunk = (...parts: readonly [S.ScriptedPart, ...Array<S.ScriptedPart>]): Polled<S.ScriptedPart> => ({
  _tag: "chunk",
  chunk: parts,
});

/** A reader that gives these, each in the step after the one before it, and then whatever `then` says. */
const reader = (given: ReadonlyArray<Polled<S.ScriptedPart>>, more: Partial<PolledReader<S.ScriptedPart>> = {}) => {
  const told = { closed: 0, polls: 0 };
  const made: PolledReader<S.ScriptedPart> = {
    poll: () => {
      told.polls += 1;
      return given[told.polls - 1];
    },
    wait: (wake) => void setImmediate(wake),
    close: () => {
      told.closed += 1;
    },
    ...more,
  };
  return { told, made };
};

const run = (open: () => PolledReader<S.ScriptedPart>, signal = new AbortController().signal) =>
  Effect.flatMap(StreamProcessor, (processor) => {
    const attempt = () => fromReader(open, () => new S.ProviderBroke({ kind: "truncated" }));
    return Effect.exit(
      Stream.runCollect(
        processor.parts(S.options({ attempt }, { budget: { max_auto_retries: 0, max_not_processed: 0 }, signal })),
      ),
    );
  });

describe("A source that is read directly", () => {
  it.live("is read to its end, and is not closed behind it", () =>
    Effect.gen(function* () {
      const { made, told } = reader([chunk(hello), undefined, chunk(done), { _tag: "end" }]);
      const exit = yield* run(() => made);
      assert.deepStrictEqual(exit, yield* Effect.exit(Effect.succeed([hello, done])));
      assert.strictEqual(told.closed, 0);
    }).pipe(Effect.provide(S.processor())),
  );

  it.live("is closed once where an event of its very first step carries an error", () =>
    Effect.gen(function* () {
      const { made, told } = reader([chunk(error), chunk(hello)]);
      const exit = yield* run(() => made);
      assert.strictEqual(S.errorOf(exit)?.failure.kind, "overloaded");
      assert.deepStrictEqual(told, { closed: 1, polls: 1 });
    }).pipe(Effect.provide(S.processor())),
  );

  it.live("is closed once where it is cancelled while it waits, and what it says then is refused", () =>
    Effect.gen(function* () {
      const waits = yield* Deferred.make<() => void>();
      const { made, told } = reader([chunk(hello), undefined, chunk(done)], {
        wait: (wake) => Deferred.doneUnsafe(waits, Effect.succeed(wake)),
      });
      const fiber = yield* Effect.forkChild(run(() => made));
      const wake = yield* Deferred.await(waits);
      yield* Fiber.interrupt(fiber);
      assert.deepStrictEqual(told, { closed: 1, polls: 2 });
      wake();
      assert.deepStrictEqual(told, { closed: 1, polls: 2 });
    }).pipe(Effect.provide(S.processor())),
  );

  for (const [when, given] of [
    ["in its first step", []],
    ["in a later one", [chunk(hello), undefined]],
  ] as const) {
    it.live(`ends its attempt where it throws ${when}, and is closed`, () =>
      Effect.gen(function* () {
        const thrown = new Error("a reader of another author");
        const { made, told } = reader(given);
        const poll = () => {
          if (told.polls < given.length) return made.poll();
          throw thrown;
        };
        const exit = yield* run(() => ({ ...made, poll }));
        assert.strictEqual(S.errorOf(exit)?.cause, thrown);
        assert.strictEqual(told.closed, 1);
      }).pipe(Effect.provide(S.processor())),
    );
  }

  it.live("ends its attempt where it cannot be opened", () =>
    Effect.gen(function* () {
      const thrown = new Error("cannot be opened");
      const exit = yield* run(() => {
        throw thrown;
      });
      assert.strictEqual(S.errorOf(exit)?.cause, thrown);
    }).pipe(Effect.provide(S.processor())),
  );

  it.live("is closed where its run is stopped while it is opened, and is not read", () =>
    Effect.gen(function* () {
      const stop = new AbortController();
      const { made, told } = reader([chunk(hello)]);
      const exit = yield* run(() => {
        stop.abort();
        return made;
      }, stop.signal);
      assert.strictEqual(S.errorOf(exit)?.failure.kind, "cancelled");
      assert.deepStrictEqual(told, { closed: 1, polls: 0 });
    }).pipe(Effect.provide(S.processor())),
  );

  it.live("holds nothing up where its close throws", () =>
    Effect.gen(function* () {
      const close = () => {
        throw new Error("cannot be closed");
      };
      const waits = yield* Deferred.make<void>();
      const { made } = reader([chunk(hello)], { close, wait: () => Deferred.doneUnsafe(waits, Effect.void) });
      const fiber = yield* Effect.forkChild(run(() => made));
      yield* Deferred.await(waits);
      yield* Fiber.interrupt(fiber);
    }).pipe(Effect.provide(S.processor())),
  );
});
