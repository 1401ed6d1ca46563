/**
 * A store that commits a write in the step of its call, without a fiber. Everything is recorded in order and once, even if such a
 * store suddenly takes time, refuses or throws.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope, Stream } from "effect";
import { toBounded } from "../../../src/recorder/BoundedRecorder.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder, withCommit } from "../../../src/recorder/RunRecorder.ts";
import { Backlog } from "../../../src/runtime/run/Backlog.ts";
import { RunWriter } from "../../../src/runtime/run/RunWriter.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { nameOf } from "../../recorder/Entries.ts";
import * as S from "../Scripted.ts";

const runId = "r";

/** A writer over a store whose behaviour the test can change, and the entries that the store has accepted, in order. */
const writing = Effect.gen(function* () {
  const memory = Context.get(yield* Layer.build(RunRecorder.layerMemory()), RunRecorder);
  const taken: Array<string> = [];
  const store = (_runId: string, entries: ReadonlyArray<Entry>) => {
    taken.push(...entries.map(nameOf));
    return undefined;
  };
  const play: {
    atOnce: (runId: string, entries: ReadonlyArray<Entry>) => RecorderError | "undecided" | undefined;
    write: RunRecorder["Service"]["write"];
  } = {
    atOnce: store,
    write: (id, entries) => Effect.sync(() => store(id, entries)),
  };
  const write = withCommit(
    (id, entries) => Effect.suspend(() => play.write(id, entries)),
    "at_once",
    (id, entries, onDone) => onDone(play.atOnce(id, entries) ?? "recorded"),
  );
  const owner = {
    ...{ runId, elapsedMs: 0, services: Context.empty(), stopped: Deferred.makeUnsafe<void>() },
    onLost: () => undefined,
    onUnrecorded: () => undefined,
  };
  return { play, store, taken, writer: new RunWriter(owner, toBounded({ ...memory, write }), yield* Backlog.make) };
});

const parked = (reason: "question" | "interrupted"): Entry => ({ _tag: "RunParked", reason });
const undecided = () => "undecided" as const;

describe("A write that the store commits in the same step", () => {
  it.effect("includes the waiting entries, and each entry once", () =>
    Effect.gen(function* () {
      const { taken, writer } = yield* writing;
      writer.note(1, "shown", "a");
      assert.strictEqual(yield* writer.write([parked("question")]), "recorded");
      assert.strictEqual(yield* writer.write([parked("interrupted")]), "recorded");
      assert.deepStrictEqual(taken, ["noted a", "question", "interrupted"]);
    }),
  );

  it.effect("waits behind one that takes time", () =>
    Effect.gen(function* () {
      const { play, store, taken, writer } = yield* writing;
      const free = yield* Deferred.make<void>();
      const { atOnce } = play;
      play.atOnce = undecided;
      play.write = (id, entries) => Effect.map(Deferred.await(free), () => void store(id, entries));
      const first = yield* Effect.forkChild(writer.write([parked("question")]), { startImmediately: true });
      play.atOnce = atOnce;
      const second = yield* Effect.forkChild(writer.write([parked("interrupted")]), { startImmediately: true });
      assert.deepStrictEqual(taken, []);
      yield* Deferred.succeed(free, undefined);
      assert.deepStrictEqual([yield* Fiber.join(first), yield* Fiber.join(second)], ["recorded", "recorded"]);
      assert.deepStrictEqual(taken, ["question", "interrupted"]);
    }),
  );

  for (const [how, atOnce] of [
    ["leaves it to that way", undecided],
    [
      "throws in that step",
      () => {
        throw new Error("a store of another author");
      },
    ],
  ] as const) {
    it.effect(`falls back to the other way, with all waiting entries, if the store ${how}`, () =>
      Effect.gen(function* () {
        const { play, taken, writer } = yield* writing;
        writer.note(1, "shown", "a");
        play.atOnce = atOnce;
        assert.strictEqual(yield* writer.write([parked("question")]), "recorded");
        assert.deepStrictEqual(taken, ["noted a", "question"]);
      }),
    );
  }

  it.effect("that it refuses in that step waits, and is not requested a second time", () =>
    Effect.gen(function* () {
      const { play, taken, writer } = yield* writing;
      const { atOnce, write } = play;
      play.atOnce = () => new RecorderError({ reason: "locked", run_id: runId, message: "locked" });
      play.write = () => Effect.die("a second try");
      writer.note(1, "shown", "a");
      assert.strictEqual(yield* writer.write([parked("question")], true), "away");
      [play.atOnce, play.write] = [atOnce, write];
      assert.strictEqual(yield* writer.write([parked("interrupted")]), "recorded");
      assert.deepStrictEqual(taken, ["question", "noted a", "interrupted"]);
    }),
  );

  it.effect("is no longer made once the run is another process's", () =>
    Effect.gen(function* () {
      const { taken, writer } = yield* writing;
      writer.onTakenOver();
      assert.strictEqual(yield* writer.write([parked("question")], true), "lost");
      assert.deepStrictEqual(taken, []);
    }),
  );

  it.effect("is whole, and made once, if its caller is interrupted in the middle of it", () =>
    Effect.gen(function* () {
      const { play, store, taken, writer } = yield* writing;
      const caller: { fiber?: Fiber.Fiber<unknown> } = {};
      play.atOnce = (id, entries) => {
        caller.fiber?.interruptUnsafe();
        return store(id, entries);
      };
      writer.note(1, "shown", "a");
      const writes = Effect.andThen(Effect.yieldNow, writer.write([parked("question")]));
      caller.fiber = yield* Effect.forkChild(Effect.andThen(writes, Effect.never));
      assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(caller.fiber)));
      yield* writer.write([]);
      assert.deepStrictEqual(taken, ["noted a", "question"]);
    }),
  );
});

describe("An attempt whose source has ended", () => {
  it.effect("has closed by the end of its run, even if its close takes time", () =>
    Effect.gen(function* () {
      const [begun, free] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const closing = Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(free));
      const script = S.scripted([S.text("a"), S.done]);
      const attempt: typeof script.attempt = (context) =>
        Stream.transformPull(script.attempt(context), (pull, scope) =>
          Effect.as(Scope.addFinalizer(scope, closing), pull),
        );
      const run = Stream.runDrain((yield* StreamProcessor).run(S.options({ attempt })));
      const running = yield* Effect.forkChild(run, { startImmediately: true });
      yield* Deferred.await(begun);
      for (let step = 0; step < 20; step += 1) yield* Effect.yieldNow;
      assert.isUndefined(running.pollUnsafe());
      yield* Deferred.succeed(free, undefined);
      yield* Fiber.join(running);
    }).pipe(Effect.provide(S.processor())),
  );
});
