/**
 * A store that commits the writes of several runs soon, in one step and without a fiber. Everything is recorded in order and once, even
 * if such a step commits nothing.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Fiber, Layer } from "effect";
import { toBounded } from "../../../src/recorder/BoundedRecorder.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { Backlog } from "../../../src/runtime/run/Backlog.ts";
import { RunWriter } from "../../../src/runtime/run/RunWriter.ts";
import { inGroups, type Told } from "../../recorder/Committing.ts";
import { nameOf } from "../../recorder/Entries.ts";

const runId = "r";

/** A writer over a store whose steps the test takes, and the entries on record, in order. */
const writing = Effect.gen(function* () {
  const memory = Context.get(yield* Layer.build(RunRecorder.layerMemory()), RunRecorder);
  const taken: Array<string> = [];
  const asked: Array<Told> = [];
  const play: { takes: () => boolean; write: RunRecorder["Service"]["write"] } = {
    takes: () => true,
    write: (_id, entries) => Effect.sync(() => void taken.push(...entries.map(nameOf))),
  };
  const recorder = inGroups(
    { ...memory, write: (id: string, entries: ReadonlyArray<Entry>) => Effect.suspend(() => play.write(id, entries)) },
    (_id, entries, told) => {
      if (!play.takes()) return false;
      asked.push((isOnRecord, why) => {
        if (isOnRecord) taken.push(...entries.map((it) => `${nameOf(it)} together`));
        told(isOnRecord, why);
      });
      return true;
    },
  );
  const unrecorded: Array<string> = [];
  const owner = {
    ...{ runId, elapsedMs: 0, services: Context.empty(), stopped: Deferred.makeUnsafe<void>() },
    onLost: (why: string) => void unrecorded.push(why),
    onUnrecorded: (reason: string) => void unrecorded.push(reason),
  };
  const writer = new RunWriter(owner, toBounded(recorder), yield* Backlog.make);
  const start = (entries: ReadonlyArray<Entry>) =>
    Effect.forkChild(writer.write(entries, true), { startImmediately: true });
  return { asked, play, start, taken, unrecorded, writer };
});

const parked = (reason: "question" | "interrupted"): Entry => ({ _tag: "RunParked", reason });

describe("A write that the store commits together with others", () => {
  it.effect("includes the waiting entries, and its caller continues when it is on record", () =>
    Effect.gen(function* () {
      const { asked, start, taken, writer } = yield* writing;
      writer.note(1, "shown", "a");
      const first = yield* start([parked("question")]);
      assert.isUndefined(first.pollUnsafe());
      assert.deepStrictEqual(taken, []);
      writer.note(1, "shown", "b");
      asked[0]?.(true);
      assert.strictEqual(yield* Fiber.join(first), "recorded");
      const second = yield* start([parked("interrupted")]);
      asked[1]?.(true);
      assert.strictEqual(yield* Fiber.join(second), "recorded");
      assert.deepStrictEqual(taken, [
        "noted a together",
        "question together",
        "noted b together",
        "interrupted together",
      ]);
    }),
  );

  it.effect("holds up the next write of its run until it is on record", () =>
    Effect.gen(function* () {
      const { asked, start, taken } = yield* writing;
      const first = yield* start([parked("question")]);
      const second = yield* start([parked("interrupted")]);
      assert.strictEqual(asked.length, 1);
      asked[0]?.(true);
      assert.strictEqual(yield* Fiber.join(first), "recorded");
      assert.strictEqual(asked.length, 2);
      asked[1]?.(true);
      assert.strictEqual(yield* Fiber.join(second), "recorded");
      assert.deepStrictEqual(taken, ["question together", "interrupted together"]);
    }),
  );

  it.effect("is made the other way in its turn, if the step commits nothing", () =>
    Effect.gen(function* () {
      const { asked, play, start, taken, writer } = yield* writing;
      const [free, direct] = [yield* Deferred.make<void>(), play.write];
      play.write = (id, entries) => Effect.andThen(Deferred.await(free), direct(id, entries));
      writer.note(1, "shown", "a");
      const first = yield* start([parked("question")]);
      asked[0]?.(false);
      const second = yield* start([parked("interrupted")]);
      assert.strictEqual(asked.length, 1);
      assert.deepStrictEqual(taken, []);
      yield* Deferred.succeed(free, undefined);
      assert.strictEqual(yield* Fiber.join(first), "recorded");
      asked[1]?.(true);
      assert.strictEqual(yield* Fiber.join(second), "recorded");
      assert.deepStrictEqual(taken, ["noted a", "question", "interrupted together"]);
    }),
  );

  it.effect("that the other way refuses, too, waits with the rest of its write", () =>
    Effect.gen(function* () {
      const { asked, play, start, taken, unrecorded, writer } = yield* writing;
      const direct = play.write;
      play.write = () => Effect.fail(new RecorderError({ reason: "locked", run_id: runId, message: "locked" }));
      writer.note(1, "shown", "a");
      const first = yield* start([parked("question")]);
      asked[0]?.(false);
      assert.strictEqual(yield* Fiber.join(first), "away");
      assert.deepStrictEqual(unrecorded, ["locked"]);
      play.write = direct;
      play.takes = () => false;
      assert.strictEqual(yield* writer.write([parked("interrupted")]), "recorded");
      assert.deepStrictEqual(taken, ["question", "noted a", "interrupted"]);
    }),
  );

  it.effect("that the store refuses with a reason waits, too, and is not asked for a second time", () =>
    Effect.gen(function* () {
      const { asked, play, start, taken, unrecorded, writer } = yield* writing;
      const direct = play.write;
      let again = 0;
      play.write = () =>
        Effect.sync(() => {
          again += 1;
        });
      writer.note(1, "shown", "a");
      const first = yield* start([parked("question")]);
      asked[0]?.(false, new RecorderError({ reason: "unavailable", run_id: runId, message: "away" }));
      assert.strictEqual(yield* Fiber.join(first), "away");
      assert.strictEqual(again, 0);
      assert.deepStrictEqual(unrecorded, ["unavailable"]);
      play.write = direct;
      play.takes = () => false;
      assert.strictEqual(yield* writer.write([parked("interrupted")]), "recorded");
      assert.deepStrictEqual(taken, ["question", "noted a", "interrupted"]);
    }),
  );

  it.effect("that the store refuses because another process owns the run loses the run", () =>
    Effect.gen(function* () {
      const { asked, start, taken, unrecorded, writer } = yield* writing;
      const first = yield* start([parked("question")]);
      asked[0]?.(false, new RecorderError({ reason: "fenced", run_id: runId, message: "fenced" }));
      assert.strictEqual(yield* Fiber.join(first), "lost");
      assert.deepStrictEqual(unrecorded, ["taken_over"]);
      assert.strictEqual(yield* writer.write([parked("interrupted")], true), "lost");
      assert.deepStrictEqual(taken, []);
    }),
  );

  for (const [how, takes] of [
    ["does not take it", () => false],
    [
      "throws",
      () => {
        throw new Error("a value whose getter throws");
      },
    ],
  ] as const) {
    it.effect(`is made the other way, with all waiting entries, if the step ${how}`, () =>
      Effect.gen(function* () {
        const { play, taken, writer } = yield* writing;
        play.takes = takes;
        writer.note(1, "shown", "a");
        assert.strictEqual(yield* writer.write([parked("question")]), "recorded");
        assert.deepStrictEqual(taken, ["noted a", "question"]);
      }),
    );
  }

  it.effect("is made completely if its caller leaves meanwhile", () =>
    Effect.gen(function* () {
      const { asked, start, taken, writer } = yield* writing;
      for (const isOnRecord of [true, false]) {
        const caller = yield* start([parked("question")]);
        yield* Fiber.interrupt(caller);
        asked.at(-1)?.(isOnRecord);
      }
      yield* writer.write([]);
      assert.deepStrictEqual(taken, ["question together", "question"]);
    }),
  );

  it.effect("is no longer made once the run is another process's", () =>
    Effect.gen(function* () {
      const { asked, start, taken, writer } = yield* writing;
      const first = yield* start([parked("question")]);
      writer.onTakenOver();
      asked[0]?.(false);
      assert.strictEqual(yield* Fiber.join(first), "lost");
      assert.strictEqual(yield* writer.write([parked("interrupted")], true), "lost");
      assert.strictEqual(asked.length, 1);
      assert.deepStrictEqual(taken, []);
    }),
  );
});
