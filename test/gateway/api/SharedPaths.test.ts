import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import { TestClock } from "effect/testing";
import * as SharedPaths from "../../../src/gateway/api/SharedPaths.ts";
import type { BusEnvelope } from "../../../src/gateway/workers/BusEnvelope.ts";
import { type BusEnd, WorkerBus } from "../../../src/gateway/workers/WorkerBus.ts";
import type { Probed } from "../../../src/paths/Path.ts";
import { probeFirstMs } from "../../../src/paths/PathState.ts";
import { Paths } from "../../../src/paths/Paths.ts";
import { firstWave } from "../../../src/paths/Waves.ts";
import { members, newcomer } from "../workers/Members.ts";

const scope = { path: "https://api.example", credential: "c".repeat(32), model: "m" };
const refusal = { kind: "rate_limited", waitMs: 5_000, onlyThis: false } as const;

const built = ({ bus }: Pick<BusEnd, "bus">) =>
  Effect.map(Layer.build(Layer.provide(Layer.fresh(SharedPaths.layer), Layer.succeed(WorkerBus, bus))), (context) =>
    Context.get(context, Paths),
  );

const two = Effect.gen(function* () {
  const { ends, router } = yield* members(2);
  const [first, second] = yield* Effect.forEach(ends, built);
  if (first === undefined || second === undefined) return yield* Effect.die("too few");
  return { first, second, router };
});

/** A way whose probe finds what `isWell` says; how often it was asked. */
const way = (isWell: () => boolean) => {
  const asked = { times: 0 };
  const probe = Effect.sync((): Probed => {
    asked.times += 1;
    return isWell() ? { _tag: "works" } : { _tag: "failed", reason: "network", code: "ECONNREFUSED" };
  });
  return { asked, way: { probe, dropIdle: () => undefined } };
};

const admission = { scope, maxRetryAfterMs: 60_000, withinMs: 600_000, told: () => {} };

/** What is due now, and what that makes due. */
const settled = TestClock.adjust(1);

/** A request that waits for as long as it must; gives whether it went. */
const waits = Effect.fnUntraced(function* (paths: Paths["Service"]) {
  const it = { went: false };
  const hold = () => (it.went = true);
  yield* Effect.forkScoped(paths.admit({ ...admission, hold }), { startImmediately: true });
  return it;
});

/** A request that keeps what another one heard for no longer than a millisecond, and is answered: the wait is over. */
const findsItOver = Effect.fnUntraced(function* (paths: Paths["Service"]) {
  let over = () => {};
  const hold = (leave: () => void) => (over = leave);
  yield* Effect.forkScoped(paths.admit({ ...admission, maxRetryAfterMs: 1, hold }), { startImmediately: true });
  yield* TestClock.adjust(10);
  paths.answered(scope);
  over();
  yield* settled;
});

const stateOf = (paths: Paths["Service"]) => paths.list().find(({ path }) => path === scope.path)?.state;

describe("an outage that one of several workers has met", () => {
  it.effect("is asked about at once by each of them, and so is its end", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      let isWell = true;
      const [one, other] = [way(() => isWell), way(() => isWell)];
      first.attach(scope.path, one.way);
      second.attach(scope.path, other.way);
      first.answered(scope);
      assert.isTrue(second.hasReached(scope.path));
      isWell = false;
      yield* Effect.forkScoped(first.unconnected(scope, "ECONNREFUSED"), { startImmediately: true });
      yield* settled;
      assert.deepStrictEqual([stateOf(first), stateOf(second)], ["down", "down"]);
      assert.strictEqual(other.asked.times, 1);
      const waiting = yield* Effect.forEach([first, second], waits);
      yield* TestClock.adjust(60_000);
      isWell = true;
      yield* first.tryNow(scope.path);
      // The other one may have asked just now.
      yield* TestClock.adjust(probeFirstMs);
      assert.deepStrictEqual([stateOf(first), stateOf(second)], ["returning", "returning"]);
      assert.deepStrictEqual(waiting, [{ went: true }, { went: true }]);
    }),
  );

  it.effect("is none for a worker that reaches the path, and is told once however long it lasts", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      const [one, other] = [way(() => false), way(() => true)];
      first.attach(scope.path, { ...one.way, probe: Effect.delay(one.way.probe, 100) });
      second.attach(scope.path, other.way);
      first.answered(scope);
      yield* Effect.forkScoped(first.unconnected(scope, "ECONNREFUSED"), { startImmediately: true });
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

  it.effect("is known to a worker that takes the place of another one, and so is what was reached before it", () =>
    Effect.gen(function* () {
      const { first, router, second } = yield* two;
      first.attach(scope.path, way(() => false).way);
      first.answered(scope);
      second.answered({ ...scope, path: "https://other.example" });
      yield* Effect.forkScoped(first.unconnected(scope, "ECONNREFUSED"), { startImmediately: true });
      yield* settled;
      const come = yield* newcomer(2, router, 2);
      const third = yield* built(come);
      come.join();
      assert.isTrue(third.hasReached("https://other.example"));
      // Nobody can ask it from there yet: a route that nothing has gone by is no way that is down.
      assert.isTrue(third.isOpen(scope));
      yield* TestClock.adjust(60_000);
      assert.strictEqual(third.standing(scope, 60_000).path, "up");
      third.attach(scope.path, way(() => false).way);
      yield* settled;
      assert.strictEqual(stateOf(third), "down");
    }),
  );

  it.effect("is asked about no more often for a sibling's word, where probes work and connections fail", () =>
    Effect.gen(function* () {
      const asked = Effect.fnUntraced(function* (sibling?: "reaches it" | "fails as well") {
        const { ends } = yield* members(sibling === undefined ? 1 : 2);
        const [first, second] = yield* Effect.forEach(ends, built);
        if (first === undefined) return yield* Effect.die("too few");
        let isWell = false;
        const [one, other] = [way(() => isWell), way(() => isWell || sibling === "reaches it")];
        first.attach(scope.path, one.way);
        second?.attach(scope.path, other.way);
        first.answered(scope);
        const fails = (paths: Paths["Service"]) =>
          Effect.forkScoped(paths.unconnected(scope, "ECONNREFUSED"), { startImmediately: true });
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

  it.effect("lets as many requests go together behind it as one gateway would", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      let isWell = false;
      for (const paths of [first, second]) paths.attach(scope.path, way(() => isWell).way);
      first.answered(scope);
      yield* Effect.forkScoped(first.unconnected(scope, "ECONNREFUSED"), { startImmediately: true });
      yield* settled;
      const waiting = yield* Effect.forEach(
        Array.from({ length: 4 * firstWave }, (_, n) => (n % 2 === 0 ? first : second)),
        waits,
      );
      isWell = true;
      yield* second.tryNow(scope.path);
      // The other one has asked just now.
      yield* TestClock.adjust(probeFirstMs);
      assert.lengthOf(
        waiting.filter(({ went }) => went),
        firstWave,
      );
    }),
  );
});

describe("waits that a provider announces to one of several workers", () => {
  it.effect("hold the same credential and model at each of them, for as long", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      first.refused(scope, refusal);
      for (const paths of [first, second]) {
        assert.strictEqual(paths.standing(scope, 60_000).cooldownMs, 5_000);
        assert.isTrue(paths.isOpen({ ...scope, credential: "d".repeat(32) }));
        assert.isTrue(paths.isOpen({ ...scope, model: "n" }));
      }
      yield* TestClock.adjust(5_000);
      for (const paths of [first, second]) assert.isTrue(paths.isOpen(scope));
      second.refused({ ...scope, model: undefined }, { ...refusal, kind: "overloaded" });
      assert.isFalse(first.isOpen({ ...scope, model: undefined }));
    }),
  );

  it.effect("hold at a worker that takes the place of another one, for what is left of them", () =>
    Effect.gen(function* () {
      const { first, router, second } = yield* two;
      const over = { ...scope, model: "over" };
      first.refused(over, { ...refusal, waitMs: 1_000 });
      second.refused(scope, refusal);
      second.refused(scope, { ...refusal, waitMs: 100 });
      second.refused({ ...scope, model: undefined }, { ...refusal, kind: "overloaded" });
      yield* TestClock.adjust(2_000);
      const come = yield* newcomer(2, router, 2);
      const third = yield* built(come);
      assert.isTrue(third.isOpen(scope));
      come.join();
      assert.strictEqual(third.standing(scope, 60_000).cooldownMs, 3_000);
      assert.isFalse(third.isOpen({ ...scope, model: undefined }));
      assert.isTrue(third.isOpen(over));
      assert.isTrue(third.isOpen({ ...scope, credential: "d".repeat(32) }));
    }),
  );

  it.effect("are told to one that comes for as long as each of them holds, whatever else does", () =>
    Effect.gen(function* () {
      const { first, router } = yield* two;
      first.refused(scope, { ...refusal, waitMs: 60_000 });
      yield* findsItOver(first);
      assert.isTrue(first.isOpen(scope));
      first.refused(scope, { ...refusal, kind: "overloaded", waitMs: 60_000 });
      const come = yield* newcomer(2, router, 2);
      const third = yield* built(come);
      come.join();
      assert.deepStrictEqual(
        third.list().flatMap(({ cooldowns }) => cooldowns.map(({ kind }) => kind)),
        ["overloaded"],
      );
    }),
  );

  it.effect("are as old for one that comes as they are", () =>
    Effect.gen(function* () {
      const { first, router } = yield* two;
      first.refused(scope, { ...refusal, waitMs: 100_000 });
      const crowded = { ...scope, model: "crowded" };
      first.refused(crowded, { ...refusal, kind: "overloaded", waitMs: 100_000 });
      yield* TestClock.adjust(50_000);
      const come = yield* newcomer(2, router, 2);
      const third = yield* built(come);
      come.join();
      for (const paths of [first, third]) {
        assert.strictEqual(paths.standing(scope, 60_000).cooldownMs, 10_000);
        assert.strictEqual(paths.standing(scope, 200_000).cooldownMs, 50_000);
        assert.isFalse(paths.isOpen(crowded));
        assert.isTrue(paths.isOpen({ ...crowded, credential: "d".repeat(32) }));
      }
    }),
  );

  it.effect("are not brought back by a second one that tells of them, and a longer one is", () =>
    Effect.gen(function* () {
      const { first, router, second } = yield* two;
      first.refused(scope, { ...refusal, waitMs: 60_000 });
      const come = yield* newcomer(3, router, 3);
      const third = yield* built(come);
      const late: Array<BusEnvelope> = [];
      router.join(3, {
        send: (it) => (it._tag === "Notice" && it.from === 2 ? late.push(it) > 0 : come.port.send(it)),
      });
      yield* findsItOver(third);
      assert.isAbove(late.length, 0);
      for (const it of late.splice(0)) come.port.send(it);
      assert.isTrue(third.isOpen(scope));
      second.refused(scope, { ...refusal, waitMs: 90_000 });
      for (const it of late.splice(0)) come.port.send(it);
      assert.strictEqual(third.standing(scope, 600_000).cooldownMs, 90_000);
    }),
  );

  it.effect("hold no other request where they are about one alone, and no word that is none holds any (L11)", () =>
    Effect.gen(function* () {
      const { first, router, second } = yield* two;
      first.refused(scope, { ...refusal, onlyThis: true });
      first.refused({ ...scope, path: "x".repeat(3_000) }, refusal);
      const word = { ...scope, kind: "rate_limited", waitMs: 5_000 };
      const tell = (body: unknown): BusEnvelope => ({ _tag: "Notice", topic: "path_refused", from: 1, to: 2, body });
      for (const body of [
        null,
        {},
        { ...word, waitMs: -1 },
        { ...word, waitMs: Number.NaN },
        { ...word, kind: "later" },
      ])
        router.route(1, tell(body));
      for (const body of [null, {}, { path: 1, word: "down" }, { path: scope.path, word: "gone" }])
        router.route(1, { ...tell(body), topic: "path_found" });
      assert.isTrue(second.isOpen(scope));
      assert.lengthOf(second.list(), 0);
      router.route(1, tell({ ...word, later: "a version that says more" }));
      assert.isFalse(second.isOpen(scope));
    }),
  );
});
