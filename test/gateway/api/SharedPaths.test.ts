import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Effect, Layer } from "effect";
import { TestClock } from "effect/testing";
import * as SharedPaths from "../../../src/gateway/api/SharedPaths.ts";
import { WorkerSockets } from "../../../src/gateway/workers/WorkerSockets.ts";
import type { Probed } from "../../../src/paths/Path.ts";
import { probeFirstMs } from "../../../src/paths/PathState.ts";
import { Paths } from "../../../src/paths/Paths.ts";
import { firstWave } from "../../../src/paths/Waves.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";

const scope = { path: "https://api.example", credential: "c".repeat(32), model: "m" };

/** A gateway of several workers, and its store. */
const gateway = Effect.fnUntraced(function* (workers: number) {
  const clock = yield* Clock.Clock;
  const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
  const recorder = yield* Effect.provide(RunRecorder, RunRecorder.layerMemory());
  const start = (self: number, folder = "mine") => {
    // Paths only need a worker's place.
    const sockets = { self, workers, folder } as WorkerSockets["Service"];
    const services = Layer.merge(
      Layer.succeed(RunRecorder, { ...recorder, shared: store.process() }),
      Layer.succeed(WorkerSockets, sockets),
    );
    return Effect.map(Layer.build(Layer.provide(Layer.fresh(SharedPaths.layer), services)), (context) =>
      Context.get(context, Paths),
    );
  };
  return { start, store };
});

const two = Effect.gen(function* () {
  const { start, store } = yield* gateway(2);
  return { first: yield* start(1), second: yield* start(2), start, store };
});

/** A path whose probe reports `isWell`, and the number of its probes. */
const way = (isWell: () => boolean) => {
  const asked = { times: 0 };
  const probe = Effect.sync((): Probed => {
    asked.times += 1;
    return isWell() ? { _tag: "works" } : { _tag: "failed", reason: "network", code: "ECONNREFUSED" };
  });
  return { asked, way: { probe, dropIdle: () => undefined } };
};

const admission = { scope, maxRetryAfterMs: 60_000, withinMs: 600_000, onWait: () => {} };

/** Runs everything that is due, its consequences, and the notifications of them. */
const settled = Effect.repeat(TestClock.adjust(1), { times: 3 });

/** A request that waits for its path; `went` is true once it was admitted. */
const waits = Effect.fnUntraced(function* (paths: Paths["Service"]) {
  const it = { went: false };
  const hold = () => (it.went = true);
  yield* Effect.forkScoped(paths.admit({ ...admission, hold }), { startImmediately: true });
  return it;
});

const stateOf = (paths: Paths["Service"]) => paths.list().find(({ path }) => path === scope.path)?.state;

describe("an outage found by one of several workers", () => {
  it.effect("is asked about at once by each of them, and so is its end", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      let isWell = true;
      const [one, other] = [way(() => isWell), way(() => isWell)];
      first.attach(scope.path, one.way);
      second.attach(scope.path, other.way);
      first.recordResponse(scope);
      yield* settled;
      assert.isTrue(second.hasReached(scope.path));
      isWell = false;
      yield* Effect.forkScoped(first.recordConnectFailure(scope, "ECONNREFUSED"), { startImmediately: true });
      yield* settled;
      assert.deepStrictEqual([stateOf(first), stateOf(second)], ["down", "down"]);
      assert.strictEqual(other.asked.times, 1);
      const waiting = yield* Effect.forEach([first, second], waits);
      yield* TestClock.adjust(60_000);
      isWell = true;
      yield* first.tryNow(scope.path);
      yield* settled;
      // The other one may have probed just now.
      yield* TestClock.adjust(probeFirstMs);
      assert.deepStrictEqual([stateOf(first), stateOf(second)], ["returning", "returning"]);
      assert.deepStrictEqual(waiting, [{ went: true }, { went: true }]);
    }),
  );

  it.effect("is none for a worker that reaches the path, and is reported once, however long it lasts", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      const [one, other] = [way(() => false), way(() => true)];
      first.attach(scope.path, { ...one.way, probe: Effect.delay(one.way.probe, 100) });
      second.attach(scope.path, other.way);
      first.recordResponse(scope);
      yield* Effect.forkScoped(first.recordConnectFailure(scope, "ECONNREFUSED"), { startImmediately: true });
      yield* TestClock.adjust(100);
      assert.deepStrictEqual([stateOf(first), stateOf(second)], ["down", "up"]);
      assert.isTrue(second.isOpen(scope));
      yield* waits(first);
      yield* TestClock.adjust(30_000);
      assert.deepStrictEqual([stateOf(first), stateOf(second)], ["down", "up"]);
      assert.isAbove(one.asked.times, 10);
      assert.strictEqual(other.asked.times, 1);
      assert.isTrue(second.isOpen(scope));
    }),
  );

  it.effect("is known to a worker that takes the place of another one, and so are the paths reached before it", () =>
    Effect.gen(function* () {
      const { first, second, start } = yield* two;
      first.attach(scope.path, way(() => false).way);
      first.recordResponse(scope);
      second.recordResponse({ ...scope, path: "https://other.example" });
      yield* Effect.forkScoped(first.recordConnectFailure(scope, "ECONNREFUSED"), { startImmediately: true });
      yield* settled;
      const third = yield* start(2);
      yield* settled;
      assert.isTrue(third.hasReached("https://other.example"));
      // It cannot probe the path yet, and a route without any request so far does not count as down.
      assert.isTrue(third.isOpen(scope));
      yield* TestClock.adjust(60_000);
      assert.strictEqual(third.standing(scope, 60_000).path, "up");
      third.attach(scope.path, way(() => false).way);
      yield* settled;
      assert.strictEqual(stateOf(third), "down");
    }),
  );

  it.effect("causes no additional probes at a sibling's notification, if probes work and connections fail", () =>
    Effect.gen(function* () {
      const asked = Effect.fnUntraced(function* (sibling?: "reaches it" | "fails as well") {
        const { start } = yield* gateway(sibling === undefined ? 1 : 2);
        const [first, second] = [yield* start(1), sibling === undefined ? undefined : yield* start(2)];
        let isWell = false;
        const [one, other] = [way(() => isWell), way(() => isWell || sibling === "reaches it")];
        first.attach(scope.path, one.way);
        second?.attach(scope.path, other.way);
        first.recordResponse(scope);
        const fails = (paths: Paths["Service"]) =>
          Effect.forkScoped(paths.recordConnectFailure(scope, "ECONNREFUSED"), { startImmediately: true });
        yield* fails(first);
        yield* settled;
        isWell = true;
        const failing = second === undefined || sibling === "reaches it" ? [first] : [first, second];
        for (let n = 0; n < 500; n += 1) {
          yield* TestClock.adjust(20);
          for (const paths of failing) if (stateOf(paths) === "returning") yield* fails(paths);
          if (sibling === "reaches it") assert.isTrue(second?.isOpen(scope));
        }
        return [one.asked.times, other.asked.times];
      });
      const [alone = 0] = yield* asked();
      assert.isAbove(alone, 5);
      for (const sibling of ["reaches it", "fails as well"] as const)
        for (const times of yield* asked(sibling)) assert.isAtMost(times, alone + 3, sibling);
    }),
  );

  it.effect("is reported to no other gateway over the same store, and an invalid notification is ignored (L11)", () =>
    Effect.gen(function* () {
      const { first, second, start, store } = yield* two;
      const stranger = yield* start(1, "another");
      first.recordResponse(scope);
      yield* settled;
      assert.deepStrictEqual(
        [second, stranger].map((paths) => paths.hasReached(scope.path)),
        [true, false],
      );
      const other = store.process();
      const word = { gateway: "mine", path: "https://other.example", word: "reached" };
      for (const value of ["", "{}", JSON.stringify({ ...word, path: 1 }), JSON.stringify({ ...word, word: "gone" })])
        yield* other.put("path", value, value, 60_000);
      yield* settled;
      assert.isFalse(second.hasReached(word.path));
      yield* other.put("path", "later", JSON.stringify({ ...word, later: "a version that says more" }), 60_000);
      yield* settled;
      assert.isTrue(second.hasReached(word.path));
    }).pipe(Effect.scoped),
  );

  it.effect("releases together as many requests as one gateway would, after a shared cooldown", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      let isWell = false;
      for (const paths of [first, second]) paths.attach(scope.path, way(() => isWell).way);
      first.recordResponse(scope);
      yield* Effect.forkScoped(first.recordConnectFailure(scope, "ECONNREFUSED"), { startImmediately: true });
      yield* settled;
      const waiting = yield* Effect.forEach(
        Array.from({ length: 4 * firstWave }, (_, n) => (n % 2 === 0 ? first : second)),
        waits,
      );
      isWell = true;
      yield* second.tryNow(scope.path);
      yield* settled;
      // The first worker may have probed just now.
      yield* TestClock.adjust(probeFirstMs);
      assert.lengthOf(
        waiting.filter(({ went }) => went),
        firstWave,
      );
    }),
  );
});
