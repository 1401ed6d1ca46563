/**
 * Cancels runs that this process owns, that another one owns, and that have no owner.
 */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import { incidentsMax } from "../../../src/domain/Limits.ts";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { SharedCancels } from "../../../src/recorder/shared/SharedCancels.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import * as RunCancel from "../../../src/runtime/crash/RunCancel.ts";
import * as StoredCancels from "../../../src/runtime/run/StoredCancels.ts";
import { cancelWords } from "../../../src/story/CancelWords.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";
import * as L from "./Lives.ts";

type Recorder = RunRecorder["Service"];

const memory = () => Layer.fresh(RunRecorder.layerMemory());

const within = <A, E>(recorder: Recorder, effect: Effect.Effect<A, E, RunRecorder>) =>
  Effect.provideService(effect, RunRecorder, recorder);

/** Two processes with one store: each writes to the same record, and neither may claim the other's run. */
const two = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
  const record = yield* RunRecorder;
  /** The state of the process that owns runs. */
  const driver = { is: "living" as "living" | "silent" | "gone" };
  const owned = new RecorderError({ reason: "owned", run_id: L.runId, message: "driven" });
  const process = (name: string): Recorder => {
    const cancels: SharedCancels = {
      ...store.process(),
      findOwner: (runId) =>
        Effect.map(Effect.orDie(record.run(runId)), (it) =>
          it === undefined || it.state === "ended" || driver.is === "gone" ? undefined : "4711@host",
        ),
    };
    const claim: Recorder["claim"] = (runId) => {
      if (name === "driver" || driver.is === "gone") return Effect.andThen(record.release(runId), record.claim(runId));
      return driver.is === "silent" ? Effect.never : Effect.fail(owned);
    };
    return { ...record, claim, cancels };
  };
  return { store, driver, driving: process("driver"), other: process("other") };
});

/** Advances time until an effect is done. */
const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect, { startImmediately: true });
    while (fiber.pollUnsafe() === undefined) yield* TestClock.adjust(100);
    return yield* Fiber.join(fiber);
  });

/** Lets the owner receive cancels and end its run. */
const hearing = (recorder: Recorder) => {
  const { cancels } = recorder;
  if (cancels === undefined) return Effect.die("it has cancels");
  const end = { state: "stopped", reason: "user_cancelled", attempts: 1, at: 0 } as const;
  return StoredCancels.hearing(
    cancels,
    ({ run_id }) => run_id === L.runId,
    () => void Effect.runFork(recorder.write(L.runId, [{ _tag: "RunEnded", end }])),
  );
};

describe("a run without an owner", () => {
  for (const [name, life] of Object.entries(L.lives)) {
    it.effect(`is decided as cancelled and ends, whatever was due: ${name}`, () =>
      Effect.gen(function* () {
        yield* TestClock.setTime(1_000);
        const recorder = yield* RunRecorder;
        yield* L.written(recorder, life);
        yield* recorder.release(L.runId);
        const before = yield* recorder.run(L.runId);
        const told = yield* RunCancel.cancel(L.runId);
        if (told === undefined || before === undefined) return assert.fail("it is on record");
        const { record } = told;
        if (before.state === "ended") {
          assert.strictEqual(told.outcome, "ended");
          assert.deepStrictEqual(record, before);
          return;
        }
        assert.strictEqual(told.outcome, "unowned");
        assert.strictEqual(record.state, "ended");
        if (before.attempts.length === 0) return;
        assert.deepInclude(record.end, { state: "stopped", reason: "user_cancelled" });
        const incident = record.incidents.at(-1);
        assert.strictEqual(incident?.decision.rule, "user_cancelled");
        assert.strictEqual(incident?.id, record.end?.incident);
        assert.isTrue(incident?.run.user_cancelled);
        assert.isAtMost(record.incidents.length, incidentsMax);
        if (incident === undefined) return;
        // The recorded decision is repeated (L9).
        assert.deepStrictEqual(RecoveryPolicy.default.decide(incident), incident.decision);
        assert.lengthOf((yield* CrashRecovery.recover()).runs, 0, "nothing is left to do");
        assert.strictEqual((yield* RunCancel.cancel(L.runId))?.outcome, "ended");
      }).pipe(Effect.provide(memory())),
    );
  }

  it.effect("is unknown if it is not on record", () =>
    Effect.map(RunCancel.cancel("nothing"), (told) => assert.isUndefined(told)).pipe(Effect.provide(memory())),
  );
});

describe("a run with an owner", () => {
  it.effect("is cancelled here if this process owns it", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* L.written(recorder, L.lifeOf("text was shown"));
      const end = { state: "stopped", reason: "user_cancelled", attempts: 1, at: 0 } as const;
      const here = (runId: string) => Effect.as(Effect.orDie(recorder.write(runId, [{ _tag: "RunEnded", end }])), true);
      const told = yield* inTime(RunCancel.cancel(L.runId, { cancelHere: here }));
      assert.strictEqual(told?.outcome, "here");
      assert.strictEqual(told?.record.end?.reason, "user_cancelled");
    }).pipe(Effect.provide(memory())),
  );

  it.effect("is cancelled by its owner, which is named, and has ended when that is reported", () =>
    Effect.gen(function* () {
      const { driving, other } = yield* two;
      yield* hearing(driving);
      yield* L.written(driving, L.lifeOf("text was shown").slice(0, 1));
      const told = yield* inTime(within(other, RunCancel.cancel(L.runId)));
      assert.deepInclude(told, { outcome: "forwarded", driver: "4711@host" });
      assert.strictEqual(told?.record.end?.reason, "user_cancelled");
      assert.include(told === undefined ? "" : cancelWords(told), "4711@host");
      assert.lengthOf(yield* other.cancels?.all("cancel") ?? Effect.succeed([]), 0);
    }).pipe(Effect.scoped, Effect.provide(memory())),
  );

  it.effect("whose live owner does not take the cancel keeps it, and the cancel is pending until it does", () =>
    Effect.gen(function* () {
      const { driving, other } = yield* two;
      yield* L.written(driving, L.lifeOf("text was shown").slice(0, 1));
      const told = yield* inTime(within(other, RunCancel.cancel(L.runId)));
      assert.deepInclude(told, { outcome: "pending", driver: "4711@host" });
      assert.strictEqual(told?.record.state, "live");
      // Repeated requests leave a single cancel.
      yield* inTime(within(other, RunCancel.cancel(L.runId)));
      assert.lengthOf(yield* other.cancels?.all("cancel") ?? Effect.succeed([]), 1);
      yield* hearing(driving);
      const again = yield* inTime(within(other, RunCancel.cancel(L.runId)));
      assert.strictEqual(again?.outcome, "forwarded");
      assert.strictEqual(again?.record.end?.reason, "user_cancelled");
    }).pipe(Effect.scoped, Effect.provide(memory())),
  );

  it.effect(
    "with a silent owner is waited for as long as requested; the process that decides its run then decides it as cancelled",
    () =>
      Effect.gen(function* () {
        const { driver, driving, other } = yield* two;
        yield* L.written(driving, L.lifeOf("nothing was shown"));
        driver.is = "silent";
        const told = yield* inTime(within(other, RunCancel.cancel(L.runId, { silentMs: 3_000 })));
        assert.strictEqual(told?.outcome, "pending");
        driver.is = "gone";
        yield* driving.release(L.runId);
        const { runs } = yield* within(other, CrashRecovery.recover());
        assert.deepStrictEqual(runs, [{ run_id: L.runId, outcome: "stopped", rule: "user_cancelled" }]);
        assert.strictEqual((yield* other.run(L.runId))?.end?.reason, "user_cancelled");
        assert.lengthOf(yield* other.cancels?.all("cancel") ?? Effect.succeed([]), 0, "it is carried out");
      }).pipe(Effect.scoped, Effect.provide(memory())),
  );

  it.effect("that was taken up after it was looked at keeps the cancel", () =>
    Effect.gen(function* () {
      const { driver, driving, other } = yield* two;
      yield* L.written(driving, L.lifeOf("text was shown").slice(0, 1));
      const { cancels } = other;
      if (cancels === undefined) return assert.fail("it has cancels");
      // It has no owner when it is looked at, and has one when it is claimed.
      let looks = 0;
      const late = (runId: string) => (++looks === 1 ? Effect.undefined : cancels.findOwner(runId));
      const told = yield* inTime(
        within({ ...other, cancels: { ...cancels, findOwner: late } }, RunCancel.cancel(L.runId)),
      );
      assert.deepInclude(told, { outcome: "pending", driver: "4711@host" });
      assert.deepStrictEqual([...(yield* StoredCancels.standing(cancels))], [L.runId]);
      looks = 0;
      yield* hearing(driving);
      const heard = yield* inTime(
        within({ ...other, cancels: { ...cancels, findOwner: late } }, RunCancel.cancel(L.runId)),
      );
      assert.deepInclude(heard, { outcome: "forwarded", driver: "4711@host" });
      assert.strictEqual(driver.is, "living");
    }).pipe(Effect.scoped, Effect.provide(memory())),
  );

  it.effect("keeps the owner's name that the store reported before it stopped reporting one", () =>
    Effect.gen(function* () {
      const { driving, other } = yield* two;
      yield* L.written(driving, L.lifeOf("text was shown").slice(0, 1));
      const { cancels } = other;
      if (cancels === undefined) return assert.fail("it has cancels");
      let looks = 0;
      const once = (runId: string) => (++looks === 1 ? cancels.findOwner(runId) : Effect.undefined);
      const told = yield* inTime(
        within({ ...other, cancels: { ...cancels, findOwner: once } }, RunCancel.cancel(L.runId)),
      );
      assert.deepInclude(told, { outcome: "pending", driver: "4711@host" });
    }).pipe(Effect.scoped, Effect.provide(memory())),
  );

  it.effect("has no pending cancel if the store has not accepted it", () =>
    Effect.gen(function* () {
      const { driving, other } = yield* two;
      yield* L.written(driving, L.lifeOf("text was shown").slice(0, 1));
      const { cancels } = other;
      if (cancels === undefined) return assert.fail("it has cancels");
      const put = () => Effect.fail({ message: "the store is away" });
      const told = yield* inTime(
        Effect.result(within({ ...other, cancels: { ...cancels, put } }, RunCancel.cancel(L.runId))),
      );
      if (told._tag === "Success") return assert.fail("nothing stands");
      assert.deepInclude(told.failure, { reason: "unavailable", message: "the store is away" });
    }).pipe(Effect.scoped, Effect.provide(memory())),
  );

  it.effect(
    "has a cancel that is pending for an hour and no longer, and one for a client's own runs is never pending",
    () =>
      Effect.gen(function* () {
        const { driver, driving, other } = yield* two;
        yield* L.written(driving, L.lifeOf("nothing was shown"));
        driver.is = "silent";
        yield* inTime(within(other, RunCancel.cancel(L.runId, { silentMs: 3_000 })));
        const { cancels } = other;
        if (cancels === undefined) return assert.fail("it has cancels");
        yield* TestClock.adjust(StoredCancels.standsMs - 10_000);
        assert.deepStrictEqual([...(yield* StoredCancels.standing(cancels))], [L.runId]);
        yield* TestClock.adjust(10_000);
        assert.deepStrictEqual([...(yield* StoredCancels.standing(cancels))], []);
        const asked = StoredCancels.cancel(cancels, { run_id: L.runId, holder: "h" });
        const fiber = yield* Effect.forkChild(asked, { startImmediately: true });
        yield* TestClock.adjust(100);
        assert.lengthOf(yield* cancels.all("cancel"), 1);
        assert.deepStrictEqual([...(yield* StoredCancels.standing(cancels))], []);
        yield* TestClock.adjust(StoredCancels.cancelMs);
        assert.isFalse(yield* Fiber.join(fiber));
      }).pipe(Effect.scoped, Effect.provide(memory())),
  );

  it.effect("whose owner cannot be told is left alone, and that is reported", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* L.written(recorder, L.lifeOf("text was shown").slice(0, 1));
      const before = yield* recorder.run(L.runId);
      const told = yield* inTime(RunCancel.cancel(L.runId));
      assert.strictEqual(told?.outcome, "unreachable");
      assert.deepStrictEqual(yield* recorder.run(L.runId), before);
    }).pipe(Effect.provide(memory())),
  );
});
