import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import { awayMs, probeFailingMs, probeIdleMs, StoreHealth, slowMs } from "../../../src/gateway/api/StoreHealth.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { inGroups, type Told, take } from "../../recorder/Committing.ts";
import * as E from "../../recorder/Entries.ts";

type Answer = Effect.Effect<void, RecorderError>;

const failure = (reason: RecorderError["reason"]) => new RecorderError({ reason, run_id: "", message: "no" });

/** A watched recorder with the given results of writes and probes. */
const watched = (probing = true) =>
  Effect.gen(function* () {
    const play: { write: Answer; probe: Answer; probes: number } = {
      write: Effect.void,
      probe: Effect.void,
      probes: 0,
    };
    const memory = Context.get(yield* Layer.build(RunRecorder.layerMemory()), RunRecorder);
    const probe = Effect.suspend(() => {
      play.probes += 1;
      return play.probe;
    });
    const recorder = { ...memory, write: () => Effect.suspend(() => play.write), ...(probing ? { probe } : {}) };
    const services = yield* Layer.build(StoreHealth.layerOver(Layer.succeed(RunRecorder, recorder)));
    const { write } = Context.get(services, RunRecorder);
    return { play, state: Context.get(services, StoreHealth).state, write: Effect.exit(write("run", [])) };
  });

describe("the store's health", () => {
  it.effect("fails with a write that the store refused, and is well again with the first successful probe", () =>
    Effect.gen(function* () {
      const { play, state, write } = yield* watched();
      assert.deepStrictEqual(yield* state, { writes: "ok" });
      yield* TestClock.setTime(5_000);
      play.write = Effect.fail(failure("locked"));
      play.probe = Effect.fail(failure("locked"));
      yield* write;
      assert.deepStrictEqual(yield* state, { writes: "slow", reason: "locked", since: 5_000 });
      yield* TestClock.adjust(awayMs);
      assert.deepStrictEqual(yield* state, { writes: "failing", reason: "locked", since: 5_000 });
      assert.isAbove(play.probes, 1);
      play.probe = Effect.void;
      yield* TestClock.adjust(probeFailingMs);
      assert.deepStrictEqual(yield* state, { writes: "ok" });
      const { probes } = play;
      // No probes run while nothing is wrong and the last result is recent.
      yield* TestClock.adjust(10 * probeFailingMs);
      assert.strictEqual(play.probes, probes);
    }),
  );

  it.effect(
    "stays full while its disk has no room, although a write finds some in existing pages, until its probe succeeds",
    () =>
      Effect.gen(function* () {
        const { play, state, write } = yield* watched();
        play.probe = Effect.fail(failure("disk_full"));
        play.write = play.probe;
        yield* write;
        play.write = Effect.void;
        yield* write;
        assert.strictEqual((yield* state).reason, "disk_full");
        yield* TestClock.adjust(2 * probeFailingMs);
        assert.strictEqual((yield* state).reason, "disk_full");
        play.probe = Effect.void;
        yield* TestClock.adjust(probeFailingMs);
        assert.deepStrictEqual(yield* state, { writes: "ok" });
        const unprobed = yield* watched(false);
        unprobed.play.write = Effect.fail(failure("disk_full"));
        yield* unprobed.write;
        unprobed.play.write = Effect.void;
        yield* unprobed.write;
        assert.deepStrictEqual(yield* unprobed.state, { writes: "ok" });
      }),
  );

  it.effect("does not change because of a single run", () =>
    Effect.gen(function* () {
      const { play, state, write } = yield* watched();
      for (const reason of ["fenced", "run_ended", "unknown_run", "invalid", "run_exists"] as const) {
        play.write = Effect.fail(failure(reason));
        yield* write;
        assert.strictEqual((yield* state).writes, "ok", reason);
      }
      for (const reason of ["disk_full", "read_only", "unavailable", "full"] as const) {
        play.write = Effect.fail(failure(reason));
        play.probe = play.write;
        yield* write;
        if (reason === "unavailable") yield* TestClock.adjust(awayMs);
        assert.strictEqual((yield* state).reason, reason);
        play.write = Effect.void;
        yield* write;
        yield* TestClock.adjust(probeFailingMs);
      }
      assert.strictEqual((yield* state).writes, "ok");
    }),
  );

  it.effect("fails while a write hangs, and if one was abandoned or died", () =>
    Effect.gen(function* () {
      const { play, state, write } = yield* watched(false);
      const free = yield* Deferred.make<void>();
      play.write = Deferred.await(free);
      const hanging = yield* Effect.forkChild(write, { startImmediately: true });
      yield* TestClock.adjust(awayMs - 1);
      assert.strictEqual((yield* state).writes, "slow");
      yield* TestClock.adjust(1);
      assert.deepInclude(yield* state, { writes: "failing", reason: "slow" });
      yield* Deferred.succeed(free, undefined);
      yield* Fiber.await(hanging);
      assert.strictEqual((yield* state).writes, "ok");
      play.write = Effect.never;
      yield* Fiber.interrupt(yield* Effect.forkChild(write, { startImmediately: true }));
      yield* TestClock.adjust(awayMs);
      assert.strictEqual((yield* state).reason, "unavailable");
      play.write = Effect.void;
      yield* write;
      play.write = Effect.die("a recorder of another author");
      yield* write;
      yield* TestClock.adjust(awayMs);
      assert.strictEqual((yield* state).reason, "unavailable");
    }),
  );

  it.effect("is known for a gateway that has nothing to write, and a probe that hangs is no success", () =>
    Effect.gen(function* () {
      const { play, state } = yield* watched();
      play.probe = Effect.fail(failure("disk_full"));
      yield* TestClock.adjust(probeIdleMs + probeFailingMs);
      assert.strictEqual((yield* state).reason, "disk_full");
      play.probe = Effect.never;
      yield* TestClock.adjust(probeIdleMs);
      assert.strictEqual((yield* state).writes, "failing");
      play.probe = Effect.void;
      yield* TestClock.adjust(probeIdleMs);
      assert.strictEqual((yield* state).writes, "ok");
    }),
  );

  it.effect("a store that commits at once keeps doing so, and each such commit counts", () =>
    Effect.gen(function* () {
      const services = yield* Layer.build(StoreHealth.layerOver(RunRecorder.layerMemory({ runsMax: 1 })));
      const recorder = Context.get(services, RunRecorder);
      const { state } = Context.get(services, StoreHealth);
      const outcomes: Array<string> = [];
      const commit = (id: string, entry: ReturnType<typeof E.begun>) =>
        recorder.write.commit?.(id, [entry], (it) => outcomes.push(typeof it === "string" ? it : it.reason));
      assert.strictEqual(recorder.write.commit?.answers, "at_once");
      commit("live", E.begun("live"));
      assert.strictEqual((yield* recorder.run("live"))?.state, "live");
      commit("new", E.begun("new"));
      assert.strictEqual((yield* state).reason, "full");
      commit("live", E.attempt(1));
      assert.deepStrictEqual(yield* state, { writes: "ok" });
      assert.deepStrictEqual(outcomes, ["recorded", "full", "recorded"]);
    }),
  );

  it.effect("a store that commits runs together keeps doing so, and each such commit counts", () =>
    Effect.gen(function* () {
      const memory = Context.get(yield* Layer.build(RunRecorder.layerMemory()), RunRecorder);
      const away = Effect.fail(new RecorderError({ reason: "locked", run_id: "", message: "locked" }));
      const tolds: Array<(isOnRecord: boolean) => void> = [];
      const store = inGroups({ ...memory, write: () => away }, (_id, _entries, told) => tolds.push(told) > 0);
      const services = yield* Layer.build(StoreHealth.layerOver(Layer.succeed(RunRecorder, store)));
      const recorder = Context.get(services, RunRecorder);
      const { state } = Context.get(services, StoreHealth);
      yield* Effect.exit(recorder.write("r", [E.begun("r")]));
      const heard: Array<boolean> = [];
      for (let n = 0; n < 2; n += 1) {
        assert.isTrue(take(recorder, "r", [E.begun("r")], (it) => heard.push(it)));
      }
      tolds[0]?.(false);
      yield* TestClock.adjust(awayMs);
      assert.strictEqual((yield* state).reason, "locked");
      tolds[1]?.(true);
      assert.deepStrictEqual(yield* state, { writes: "ok" });
      assert.deepStrictEqual(heard, [false, true]);
    }),
  );

  it.effect("a store that commits runs together and waits for a server is slow, and fails, as with single writes", () =>
    Effect.gen(function* () {
      const memory = Context.get(yield* Layer.build(RunRecorder.layerMemory()), RunRecorder);
      const tolds: Array<Told> = [];
      let takes = true;
      const store = inGroups(memory, (_id, _entries, told) => takes && tolds.push(told) > 0, "late");
      const services = yield* Layer.build(StoreHealth.layerOver(Layer.succeed(RunRecorder, store)));
      const recorder = Context.get(services, RunRecorder);
      assert.strictEqual(recorder.write.commit?.answers, "late");
      const { state } = Context.get(services, StoreHealth);
      const why: Array<string | undefined> = [];
      const ask = () => take(recorder, "r", [E.begun("r")], (_, error) => why.push(error?.reason));
      takes = false;
      assert.isFalse(ask());
      yield* TestClock.adjust(awayMs);
      assert.deepStrictEqual(yield* state, { writes: "ok" });
      takes = true;
      assert.isTrue(ask());
      yield* TestClock.adjust(slowMs - 1);
      assert.deepStrictEqual(yield* state, { writes: "ok" });
      yield* TestClock.adjust(1);
      assert.strictEqual((yield* state).writes, "slow");
      yield* TestClock.adjust(awayMs - slowMs - 1);
      assert.strictEqual((yield* state).writes, "slow");
      yield* TestClock.adjust(1);
      assert.deepInclude(yield* state, { writes: "failing", reason: "slow" });
      tolds[0]?.(false, new RecorderError({ reason: "unavailable", run_id: "", message: "away" }));
      assert.strictEqual((yield* state).reason, "unavailable");
      assert.deepStrictEqual(why, ["unavailable"]);
      assert.isTrue(ask());
      tolds[1]?.(true);
      assert.deepStrictEqual(yield* state, { writes: "ok" });
    }),
  );

  it.effect("a store whose write was wrapped is not asked to commit at once, past its wrapper", () =>
    Effect.gen(function* () {
      const memory = Context.get(yield* Layer.build(RunRecorder.layerMemory()), RunRecorder);
      const services = yield* Layer.build(
        StoreHealth.layerOver(Layer.succeed(RunRecorder, { ...memory, write: (...all) => memory.write(...all) })),
      );
      assert.isUndefined(Context.get(services, RunRecorder).write.commit);
    }),
  );
});
