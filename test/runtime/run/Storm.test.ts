/** Many runs over one broken provider: they do not retry in lockstep, their retries are bounded, and no run starves. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber, Layer, Stream } from "effect";
import { TestClock } from "effect/testing";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { RetryGate, waitingRetriesMax } from "../../../src/runtime/pacing/RetryGate.ts";
import { Throttle, tokensMax, tokensPerSecond } from "../../../src/runtime/pacing/Throttle.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

/** Real jitter, because with a fixed one every run would wait equally long. */
const jittered = StreamProcessor.layer.pipe(
  Layer.provideMerge(Layer.merge(RunRecorder.layerMemory(), UserDecisions.layerHeadless())),
);

/** The provider answers with an error. */
const failing = S.fail({ kind: "server_error", status: 500 });

/** Plays `count` runs whose first attempt breaks at the same moment, and returns the start of each retry and the ends. */
const storm = (
  count: number,
  first: S.Step,
  second: (open: () => void, answered: () => void) => ReadonlyArray<S.Step>,
) =>
  Effect.gen(function* () {
    const processor = yield* StreamProcessor;
    const clock = yield* Clock.Clock;
    const opened: Array<number> = [];
    let unanswered = 0;
    let most = 0;
    const script = second(
      () => {
        unanswered += 1;
        most = Math.max(most, unanswered);
      },
      () => {
        unanswered -= 1;
      },
    );
    const attempt = (context: AttemptContext) => {
      if (context.attempt > 1) opened.push(clock.currentTimeMillisUnsafe());
      return S.scripted(context.attempt === 1 ? [first] : script).attempt(context);
    };
    const fibers = yield* Effect.forEach(Array.from({ length: count }), () =>
      Effect.forkChild(S.watch(processor.run(S.options({ attempt })))),
    );
    for (let second = 0; second < 1_200; second += 1) yield* TestClock.adjust("100 millis");
    yield* TestClock.adjust("1 hour");
    const seen = yield* Effect.forEach(fibers, Fiber.join);
    return { opened, most, ends: seen.map((it) => it.lines.at(-1)) };
  }).pipe(Effect.provide(jittered));

describe("a storm", () => {
  it.effect("200 runs that break together do not retry in lockstep, and all recover", () =>
    Effect.gen(function* () {
      const { opened, ends } = yield* storm(200, failing, () => S.hello);
      assert.strictEqual(opened.length, 200);
      assert.deepStrictEqual([...new Set(ends)], ["completed"]);
      const windows = new Map<number, number>();
      for (const at of opened) windows.set(Math.floor(at / 1_000), (windows.get(Math.floor(at / 1_000)) ?? 0) + 1);
      // No second can have more than the bucket's burst and one second's refill.
      assert.isAtMost(Math.max(...windows.values()), tokensMax + 2 * tokensPerSecond);
      assert.isAbove(new Set(opened).size, 100);
    }),
  );

  it.effect("200 runs whose connections break together start in waves: eight at first, and more with each head", () =>
    Effect.gen(function* () {
      const headMs = 100;
      const { opened, ends } = yield* storm(200, S.reset, () => [S.wait(headMs), ...S.hello]);
      assert.strictEqual(opened.length, 200);
      assert.deepStrictEqual([...new Set(ends)], ["completed"]);
      const begin = Math.min(...opened);
      const within = (ms: number) => opened.filter((at) => at - begin < ms).length;
      assert.isAtMost(within(headMs), 8);
      assert.isAtMost(within(2 * headMs), 8 + 16);
    }),
  );

  it.effect("retries without a response are bounded, and the next one starts when a response arrives", () =>
    Effect.gen(function* () {
      const { most, ends, opened } = yield* storm(80, failing, (open, answered) => [
        { run: Effect.sync(open) },
        S.wait(20_000),
        { run: Effect.sync(answered) },
        ...S.hello,
      ]);
      assert.strictEqual(most, waitingRetriesMax);
      assert.strictEqual(opened.length, 80);
      assert.deepStrictEqual([...new Set(ends)], ["completed"]);
    }),
  );

  it.effect("a retry that becomes a question after its wait releases its place while a person thinks", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      // Automatic at first and a question at the second decision, like a policy whose facts have changed meanwhile.
      const wavering = () => {
        let asked = 0;
        const decide: RecoveryPolicy.RecoveryPolicy["decide"] = (input) => {
          asked += 1;
          return RecoveryPolicy.decide(asked === 1 ? input : { ...input, failure: { kind: "unknown" } });
        };
        return S.policyOf({ decide });
      };
      const asking = yield* Effect.forEach(Array.from({ length: waitingRetriesMax }), () => {
        const provider = S.scripted([S.reset]);
        return Effect.forkChild(S.watch(processor.run(S.options(provider, { policy: wavering() }))));
      });
      yield* TestClock.adjust("2 minutes");
      const last = yield* Effect.forkChild(S.watch(processor.run(S.options(S.scripted([S.reset], S.hello)))));
      yield* TestClock.adjust("2 minutes");
      assert.strictEqual((yield* Fiber.join(last)).lines.at(-1), "completed");
      yield* Fiber.interruptAll(asking);
    }).pipe(
      Effect.provide(
        StreamProcessor.layer.pipe(
          Layer.provideMerge(
            Layer.merge(
              RunRecorder.layerMemory(),
              UserDecisions.layerAsk(() => Effect.never),
            ),
          ),
        ),
      ),
    ),
  );

  it.effect("a run that is cancelled while it waits for its place releases the place", () =>
    Effect.gen(function* () {
      const gate = new RetryGate();
      const leaves: Array<() => void> = [];
      const hold = (leave: () => void) => void leaves.push(leave);
      for (let place = 0; place < waitingRetriesMax; place += 1) yield* gate.enter("p", hold);
      const waiting = yield* Effect.forkChild(gate.enter("p", hold), { startImmediately: true });
      const next = yield* Effect.forkChild(gate.enter("p", hold), { startImmediately: true });
      yield* Fiber.interrupt(waiting);
      leaves[0]?.();
      leaves[0]?.();
      yield* Fiber.join(next);
      assert.strictEqual(gate.activeCount("p"), waitingRetriesMax);
      for (const it of leaves) it();
      assert.strictEqual(gate.activeCount("p"), 0);
    }),
  );

  it.effect("a place that is granted in the step of an interrupt is held, and can be released", () =>
    Effect.gen(function* () {
      const gate = new RetryGate();
      const leaves: Array<() => void> = [];
      const hold = (leave: () => void) => void leaves.push(leave);
      for (let place = 0; place < waitingRetriesMax; place += 1) yield* gate.enter("p", hold);
      const waiting = yield* Effect.forkChild(gate.enter("p", hold), { startImmediately: true });
      leaves[0]?.();
      yield* Fiber.interrupt(waiting);
      assert.strictEqual(leaves.length, waitingRetriesMax + 1);
      for (const leave of leaves) leave();
      assert.strictEqual(gate.activeCount("p"), 0);
    }),
  );

  it("the throttle gives its burst, then one token every tenth of a second, separately for each provider", () => {
    const throttle = new Throttle();
    for (let taken = 0; taken < tokensMax; taken += 1) {
      assert.strictEqual(throttle.waitMs("p", 0), 0);
      throttle.take("p", 0);
    }
    assert.strictEqual(throttle.waitMs("p", 0), 1_000 / tokensPerSecond);
    throttle.take("p", 0);
    assert.strictEqual(throttle.waitMs("p", 0), 2_000 / tokensPerSecond);
    assert.strictEqual(throttle.waitMs("other", 0), 0);
    assert.strictEqual(throttle.waitMs("p", 10_000), 0);
  });

  it.effect("a healthy run never waits for the gate", () =>
    Effect.gen(function* () {
      const provider = S.scripted(S.hello);
      const events = yield* Stream.runCollect((yield* StreamProcessor).run(S.options(provider)));
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted");
    }).pipe(Effect.provide(jittered)),
  );
});

describe("runs that break and do not retry", () => {
  it.effect("take no place from those that do", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const asks = Array.from({ length: 2 * tokensMax }, () => S.options(S.scripted([S.start, S.text("a"), S.reset])));
      const last = S.options(S.scripted([S.start, S.wait(1), S.reset], S.hello), { runId: "last" });
      const fibers = yield* Effect.forEach([...asks, last], (it) => Effect.forkChild(S.watch(processor.run(it))));
      yield* TestClock.adjust("10 seconds");
      const seen = yield* Effect.forEach(fibers, Fiber.join);
      assert.strictEqual(seen.at(-1)?.lines.at(-1), "completed");
      const [incident] = (yield* S.recordOf("last")).incidents;
      assert.strictEqual(incident?.run.throttle_wait_ms, 0);
    }).pipe(Effect.provide(jittered)),
  );
});
