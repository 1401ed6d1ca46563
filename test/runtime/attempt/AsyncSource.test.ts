/** An async iterable as a source: chunks of what has arrived, the same whether an attempt reads it directly or mapped. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import * as Observation from "../../../src/domain/Observation.ts";
import { fromAsyncIterable, readAheadMax } from "../../../src/runtime/attempt/AsyncSource.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const numbers = (count: number, log: Array<string> = []) =>
  async function* () {
    try {
      for (let n = 0; n < count; n += 1) yield n;
    } finally {
      log.push("closed");
    }
  };

const observe = (part: number) => (part === 99 ? Observation.terminal("stop") : Observation.text(1));

const readers = {
  directly: (stream: Stream.Stream<number, unknown>) => stream,
  "through an operator": (stream: Stream.Stream<number, unknown>) => Stream.map(stream, (it) => it),
};

describe("fromAsyncIterable", () => {
  it.effect("gives every element once, in order, and ends with the iterable", () =>
    Effect.gen(function* () {
      const all = yield* Stream.runCollect(fromAsyncIterable(numbers(1_000), (error) => error));
      assert.deepStrictEqual(
        all,
        Array.from({ length: 1_000 }, (_, index) => index),
      );
    }),
  );

  it.effect("hands over what has arrived together as one chunk, bounded (L11)", () =>
    Effect.gen(function* () {
      const sizes: Array<number> = [];
      yield* Stream.runForEachArray(
        fromAsyncIterable(numbers(1_000), (error) => error),
        (chunk) => Effect.sync(() => sizes.push(chunk.length)),
      );
      assert.isAbove(Math.max(...sizes), 1);
      assert.isAtMost(Math.max(...sizes), readAheadMax);
    }),
  );

  it.effect("gives what arrived before an error first, then the error", () =>
    Effect.gen(function* () {
      const failing = async function* () {
        yield 1;
        yield 2;
        throw new Error("broke");
      };
      const seen: Array<number> = [];
      const stream = fromAsyncIterable(failing, (error) => (error as Error).message); // the generator throws only this
      const exit = yield* Effect.exit(Stream.runForEach(stream, (it) => Effect.sync(() => seen.push(it))));
      assert.deepStrictEqual(seen, [1, 2]);
      assert.strictEqual(S.errorOf(exit), "broke");
    }),
  );

  it.effect("closes the iterable when its reader has had enough", () =>
    Effect.gen(function* () {
      const log: Array<string> = [];
      yield* Stream.runDrain(
        Stream.take(
          fromAsyncIterable(numbers(1_000, log), (error) => error),
          3,
        ),
      );
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)));
      assert.deepStrictEqual(log, ["closed"]);
    }),
  );

  for (const [name, reader] of Object.entries(readers)) {
    it.effect(`a run reads it ${name}: complete, every part once`, () =>
      Effect.gen(function* () {
        const attempt = () => reader(fromAsyncIterable(numbers(100), (error) => error));
        const events = yield* Stream.runCollect(
          (yield* StreamProcessor).run({ provider: { id: "p" }, tools: [], attempt, observe }),
        );
        assert.deepStrictEqual(
          events.flatMap((event) => (event._tag === "Part" ? [event.part] : [])),
          Array.from({ length: 100 }, (_, index) => index),
        );
        assert.strictEqual(events.at(-1)?._tag, "RunCompleted");
      }).pipe(Effect.provide(S.processor())),
    );

    it.effect(`a run reads it ${name}: what the source throws is the cause, unchanged (L12)`, () =>
      Effect.gen(function* () {
        const broken = { status: 400, message: "bad request" };
        const attempt = () =>
          reader(
            fromAsyncIterable(
              async function* () {
                throw broken;
              },
              (error) => error,
            ),
          );
        const exit = yield* Effect.exit(
          Stream.runDrain((yield* StreamProcessor).run({ provider: { id: "p" }, tools: [], attempt, observe })),
        );
        assert.strictEqual(S.errorOf(exit)?.cause, broken);
      }).pipe(Effect.provide(S.processor())),
    );

    it.effect(`a run reads it ${name}: a source deaf to return() holds nothing up`, () =>
      Effect.gen(function* () {
        const deaf = () => ({
          [Symbol.asyncIterator]: () => ({
            next: () => new Promise<IteratorResult<number>>(() => undefined),
            return: () => new Promise<IteratorResult<number>>(() => undefined),
          }),
        });
        const attempt = () => reader(fromAsyncIterable(deaf, (error) => error));
        const run = (yield* StreamProcessor).run({
          provider: { id: "p" },
          tools: [],
          attempt,
          observe,
          clocks: { first_progress: 1_000 },
          budget: { max_auto_retries: 0 },
        });
        const fiber = yield* Effect.forkChild(Effect.exit(Stream.runDrain(run)));
        yield* TestClock.adjust("5 seconds");
        const exit = yield* Fiber.join(fiber);
        assert.isTrue(Exit.isFailure(exit));
        assert.strictEqual(S.errorOf(exit)?.failure.kind, "stalled");
      }).pipe(Effect.provide(S.processor())),
    );

    it.effect(`a run reads it ${name}: a slow caller is not overrun`, () =>
      Effect.gen(function* () {
        let made = 0;
        const counting = async function* () {
          for (; made < 10_000; made += 1) yield made % 2;
        };
        const attempt = () => reader(fromAsyncIterable(counting, (error) => error));
        const run = (yield* StreamProcessor).run({ provider: { id: "p" }, tools: [], attempt, observe });
        yield* Stream.runDrain(Stream.take(run, 2));
        assert.isAtMost(made, 3 * readAheadMax);
      }).pipe(Effect.provide(S.processor())),
    );
  }
});
