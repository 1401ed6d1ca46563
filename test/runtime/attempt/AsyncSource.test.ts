/** An async iterable as a source: chunks of what has arrived, the same whether an attempt reads it directly or mapped. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import * as Observation from "../../../src/domain/Observation.ts";
import { fromAsyncIterable, readAheadMax, sourceOf } from "../../../src/runtime/attempt/AsyncSource.ts";
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

/** An iterator whose answers the test gives, with the number of its requests and whether it was closed. */
const driven = () => {
  const pending: Array<{
    readonly resolve: (it: IteratorResult<number>) => void;
    readonly reject: (error: unknown) => void;
  }> = [];
  const counts = { asked: 0, atOnce: 0, returned: 0, woken: 0 };
  const iterator: AsyncIterator<number> = {
    next: () => {
      counts.asked += 1;
      counts.atOnce = Math.max(counts.atOnce, pending.length + 1);
      return new Promise((resolve, reject) => pending.push({ resolve, reject }));
    },
    return: () => {
      counts.returned += 1;
      return Promise.reject(new Error("it does not close"));
    },
  };
  const reader = sourceOf(
    fromAsyncIterable<number, unknown>(
      () => ({ [Symbol.asyncIterator]: () => iterator }),
      (error) => error,
    ),
  )?.open();
  if (reader === undefined) throw new Error("the stream has no source");
  return {
    counts,
    reader,
    wait: () => reader.wait(() => (counts.woken += 1)),
    say: (value: number) => pending.shift()?.resolve({ value, done: false }),
    end: () => pending.shift()?.resolve({ value: undefined, done: true }),
    fail: (error: unknown) => pending.shift()?.reject(error),
  };
};

/** Resolves after all microtasks and what they scheduled. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe("the reader of an async iterable", () => {
  it("reads nothing before someone waits, then ahead, and never asks twice at once", async () => {
    const { counts, reader, say, wait } = driven();
    assert.isUndefined(reader.poll());
    await turn();
    assert.strictEqual(counts.asked, 0);
    wait();
    wait();
    assert.deepStrictEqual([counts.asked, counts.woken], [1, 0]);
    say(1);
    await turn();
    assert.deepStrictEqual([counts.asked, counts.woken], [2, 1]);
    say(2);
    await turn();
    assert.deepStrictEqual(reader.poll(), { _tag: "chunk", chunk: [1, 2] });
    assert.isUndefined(reader.poll());
    assert.deepStrictEqual([counts.asked, counts.atOnce, counts.woken], [3, 1, 1]);
    wait();
    say(3);
    await turn();
    assert.deepStrictEqual([counts.woken, counts.atOnce, reader.poll()], [2, 1, { _tag: "chunk", chunk: [3] }]);
  });

  it("stops at its limit, and reads on when a chunk is taken", async () => {
    const { counts, reader, say, wait } = driven();
    wait();
    for (let each = 0; each < readAheadMax; each += 1) {
      say(each);
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
    }
    await turn();
    assert.deepStrictEqual([counts.asked, counts.woken], [readAheadMax, 1]);
    const polled = reader.poll();
    assert.strictEqual(polled?._tag === "chunk" && polled.chunk.length, readAheadMax);
    assert.strictEqual(counts.asked, readAheadMax + 1);
  });

  it("tells the end and an error after what came before, wakes its reader for them, and asks no more", async () => {
    for (const [how, expected] of [
      ["end", { _tag: "end" }],
      ["fail", { _tag: "error", error: "broken" }],
    ] as const) {
      const { counts, reader, say, wait, ...it } = driven();
      wait();
      say(1);
      await turn();
      if (how === "end") it.end();
      else it.fail("broken");
      await turn();
      assert.strictEqual(counts.woken, 1);
      assert.deepStrictEqual(reader.poll(), { _tag: "chunk", chunk: [1] });
      assert.deepStrictEqual([reader.poll(), reader.poll()], [expected, expected]);
      reader.close();
      assert.deepStrictEqual([counts.asked, counts.returned], [2, 0]);
      const other = driven();
      other.wait();
      if (how === "end") other.end();
      else other.fail("broken");
      await turn();
      assert.deepStrictEqual([other.counts.woken, other.reader.poll()], [1, expected]);
    }
  });

  it("closes the iterator once, wakes nobody after that, and asks no more", async () => {
    const { counts, reader, say, wait } = driven();
    wait();
    reader.close();
    reader.close();
    assert.strictEqual(counts.returned, 1);
    say(1);
    await turn();
    assert.deepStrictEqual([counts.asked, counts.woken], [1, 0]);
    wait();
    assert.strictEqual(counts.asked, 1);
  });
});
