/**
 * Entries that wait for a store that may never accept them. Abandoned entries, and entries of a deleted record, do not count as recorded
 * (L8), and a waiting run does not delay another one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Deferred, Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import { toBounded } from "../../../src/recorder/BoundedRecorder.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { ReadyCall } from "../../../src/runtime/contract/ToolCall.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { Backlog, type Written } from "../../../src/runtime/run/Backlog.ts";
import { RunWriter } from "../../../src/runtime/run/RunWriter.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { faulty } from "./FaultyStore.ts";

/** A run that has completed and handed over one call, on a store that fails from then on with a reason that may change. */
const completed = Effect.gen(function* () {
  const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
  const state: { reason: RecorderError["reason"] | undefined } = { reason: undefined };
  const store = faulty(memory, () =>
    state.reason === undefined
      ? undefined
      : () => Effect.fail(new RecorderError({ reason: state.reason ?? "locked", run_id: "r", message: "no" })),
  );
  const services = yield* Layer.build(
    StreamProcessor.layer.pipe(
      Layer.provide(Layer.succeed(RunRecorder, store.recorder)),
      Layer.provide(UserDecisions.layerHeadless()),
    ),
  );
  const processor = Context.get(services, StreamProcessor);
  const ran: Array<string> = [];
  const pay = Context.get(services, ToolGuard).mutating("pay", () => Effect.sync(() => void ran.push("pay")));
  const calls: Array<ReadyCall> = [];
  const run = (runId: string) =>
    S.played(processor.run(S.options(S.scripted([S.callReady("pay"), S.done]), { runId, tools: [pay] })), (event) =>
      Effect.sync(() => void calls.push(...(event._tag === "Part" ? (event.calls ?? []) : []))),
    );
  /** Starts the call of a run, and returns the reason if it was refused. */
  const started = (runId: string) =>
    Effect.gen(function* () {
      const call = calls.find(({ run_id }) => run_id === runId);
      assert.isDefined(call);
      const fiber = yield* Effect.forkChild(Effect.exit(call === undefined ? Effect.void : pay.run(call, undefined)), {
        startImmediately: true,
      });
      return { fiber, refused: Effect.map(Fiber.join(fiber), (exit) => S.errorOf(exit)?.reason) };
    });
  return { processor, state, ran, run, started };
});

describe("A tool whose dispatch can never be recorded", () => {
  it.effect("does not start if the processor has closed and its last writes were given up", () =>
    Effect.gen(function* () {
      const { processor, ran, run, started, state } = yield* completed;
      yield* run("r");
      yield* processor.close("the program ends");
      state.reason = "unavailable";
      const { refused } = yield* started("r");
      yield* TestClock.adjust("1 minute");
      assert.strictEqual(yield* refused, "not_recorded");
      assert.deepStrictEqual(ran, []);
    }).pipe(Effect.scoped),
  );

  for (const reason of ["unknown_run", "corrupt"] as const) {
    it.effect(`does not start if the run's record is gone (${reason}), and does not wait for it`, () =>
      Effect.gen(function* () {
        const { ran, run, started, state } = yield* completed;
        yield* run("r");
        state.reason = reason;
        const { fiber, refused } = yield* started("r");
        assert.isDefined(fiber.pollUnsafe(), "nothing is waited for");
        assert.strictEqual(yield* refused, "not_recorded");
        yield* TestClock.adjust("1 minute");
        assert.deepStrictEqual(ran, []);
      }).pipe(Effect.scoped),
    );
  }
});

describe("The wait for a store that is away", () => {
  it.effect("has its limit, even if the wall clock is set back meanwhile", () =>
    Effect.gen(function* () {
      const it = yield* completed;
      yield* it.run("r");
      it.state.reason = "unavailable";
      const clock = yield* Clock.Clock;
      let setBack = 0;
      const wall: Clock.Clock = {
        ...clock,
        sleep: (duration) => clock.sleep(duration),
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() - setBack,
      };
      const { fiber } = yield* it.started("r").pipe(Effect.provideService(Clock.Clock, wall));
      yield* TestClock.adjust(1_000);
      setBack = 3_600_000;
      for (let second = 0; second < 6; second += 1) yield* TestClock.adjust("1 second");
      const ended = fiber.pollUnsafe();
      it.state.reason = undefined;
      assert.isDefined(ended);
      assert.deepStrictEqual(it.ran, []);
    }).pipe(Effect.scoped),
  );
});

describe("Runs that wait for the store", () => {
  /** A run of the backlog with the results of its next writes (the last one repeats), and whether it was abandoned. */
  const waiting = (runId: string, ...writes: ReadonlyArray<Written>) => {
    const seen = { tried: 0, givenUp: false };
    const flush = Effect.sync(() => {
      seen.tried += 1;
      return writes[Math.min(seen.tried, writes.length) - 1] ?? "away";
    });
    const giveUp = () => {
      seen.givenUp = true;
      return 1;
    };
    return { seen, run: { runId, flush, giveUp } };
  };

  it.effect("are not abandoned with one that arrives while the processor closes, nor with one that arrives later", () =>
    Effect.gen(function* () {
      const backlog = yield* Backlog.make;
      const early = waiting("early", "away", "away", "away", "recorded");
      const late = waiting("late", "recorded");
      yield* backlog.add(early.run);
      const closing = yield* Effect.forkChild(backlog.close, { startImmediately: true });
      yield* backlog.add(late.run);
      yield* TestClock.adjust("2 seconds");
      yield* Fiber.join(closing);
      assert.deepStrictEqual([early.seen.givenUp, late.seen.givenUp], [false, false]);
      const later = waiting("later", "away");
      yield* backlog.add(later.run);
      assert.isTrue(later.seen.givenUp, "nothing is written any more");
    }).pipe(Effect.scoped),
  );

  it.effect("wait no more once their record is gone", () =>
    Effect.gen(function* () {
      const backlog = yield* Backlog.make;
      const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
      let reason: RecorderError["reason"] = "unavailable";
      const write = () => Effect.suspend(() => Effect.fail(new RecorderError({ reason, run_id: "r", message: "no" })));
      const owner = {
        runId: "r",
        elapsedMs: 0,
        services: yield* Effect.context<never>(),
        stopped: Deferred.makeUnsafe<void>(),
        onLost: () => undefined,
        onUnrecorded: () => undefined,
      };
      const writer = new RunWriter(owner, toBounded({ ...memory, write }), backlog);
      assert.strictEqual(yield* writer.write([{ _tag: "RunParked", reason: "question" }], true), "away");
      assert.strictEqual(backlog.size, 1);
      reason = "unknown_run";
      yield* TestClock.adjust(250);
      assert.strictEqual(backlog.size, 0);
    }).pipe(Effect.scoped),
  );

  it.effect("are not delayed by runs whose record is gone", () =>
    Effect.gen(function* () {
      const backlog = yield* Backlog.make;
      for (let gone = 0; gone < 20; gone += 1) yield* backlog.add(waiting(`gone${gone}`, "gone").run);
      const last = waiting("last", "recorded");
      yield* backlog.add(last.run);
      yield* TestClock.adjust(250);
      assert.strictEqual(last.seen.tried, 1);
      assert.strictEqual(backlog.size, 0);
    }).pipe(Effect.scoped),
  );
});
