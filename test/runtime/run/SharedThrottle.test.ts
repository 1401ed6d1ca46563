/** Retries of several processes over one store: together they start no more than one process would, under any conditions. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Effect, Fiber, Layer, Ref, Scheduler } from "effect";
import { TestClock } from "effect/testing";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { SharedPacing } from "../../../src/recorder/shared/SharedFacts.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { SharedThrottle } from "../../../src/runtime/pacing/SharedThrottle.ts";
import { tokensMax, tokensPerSecond } from "../../../src/runtime/pacing/Throttle.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";
import * as S from "../Scripted.ts";

const now = () => 0;

const storeOf = Effect.map(Clock.Clock, (clock) => MemoryFacts.make(() => clock.currentTimeMillisUnsafe()));

/** Maximum wait of a run for its token, in milliseconds. */
const maxWaitMs = 60_000;

const drawn = (throttle: SharedThrottle) => throttle.draw("p", maxWaitMs, now);

/** The provider answers with an error. */
const failing = S.fail({ kind: "server_error", status: 500 });

/** Lets other fibers run before one step of a fiber, as in a busy process. */
const pausing = (step: number): Scheduler.Scheduler => {
  const scheduler = new Scheduler.MixedScheduler();
  let steps = 0;
  scheduler.shouldYield = () => {
    steps += 1;
    return steps === step;
  };
  return scheduler;
};

/** A process with its own recorder, whose retries are bounded by the store. */
const processOver = Effect.fnUntraced(function* (store: MemoryFacts.MemoryFacts) {
  const recorder = yield* Effect.map(Layer.build(RunRecorder.layerMemory()), Context.get(RunRecorder));
  const services = Layer.merge(
    Layer.succeed(RunRecorder, { ...recorder, pacing: store.process() }),
    UserDecisions.layerHeadless(),
  );
  return Context.get(yield* Layer.build(Layer.provide(StreamProcessor.layer, services)), StreamProcessor);
});

type Processor = Effect.Success<ReturnType<typeof processOver>>;

/** Lets runs of some processes break at the same moment, and returns the time from then to the start of each retry. */
const storm = Effect.fnUntraced(function* (processors: ReadonlyArray<Processor>, count: number, first: S.Step) {
  const clock = yield* Clock.Clock;
  const began = clock.currentTimeMillisUnsafe();
  const opened = yield* Ref.make<ReadonlyArray<number>>([]);
  const attempt = (context: AttemptContext) => {
    if (context.attempt === 1) return S.scripted([first]).attempt(context);
    const at = Ref.update(opened, (all) => [...all, clock.currentTimeMillisUnsafe() - began]);
    return S.scripted([{ run: at }, ...S.hello]).attempt(context);
  };
  const fibers = yield* Effect.forEach(
    Array.from({ length: count }, (_, n) => processors[n % processors.length]),
    (processor) =>
      processor === undefined ? Effect.never : Effect.forkChild(S.watch(processor.run(S.options({ attempt })))),
  );
  for (let step = 0; step < 600; step += 1) yield* TestClock.adjust("100 millis");
  yield* TestClock.adjust("1 hour");
  const ends = yield* Effect.map(Effect.forEach(fibers, Fiber.join), (all) => all.map(({ lines }) => lines.at(-1)));
  return { ends, opened: yield* Ref.get(opened) };
});

describe("processes over one store", () => {
  it.effect("together start no more retries than one would, even in their first moment", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const processors = yield* Effect.forEach([1, 2, 3], () => processOver(store));
      const { ends, opened } = yield* storm(processors, 120, failing);
      assert.lengthOf(opened, 120);
      assert.deepStrictEqual([...new Set(ends)], ["completed"]);
      // A wait has jitter in addition to the token's time, so a retry within some time has its token within it.
      for (const ms of [1_000, 2_000, 4_000, 8_000])
        assert.isAtMost(
          opened.filter((at) => at <= ms).length,
          tokensMax + (tokensPerSecond * ms) / 1_000,
          `in the first ${ms} ms`,
        );
    }).pipe(Effect.scoped),
  );

  it.effect("leave the whole budget to one of them if the others are idle", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const [throttle] = [1, 2, 3, 4].map(() => new SharedThrottle(store.process()));
      if (throttle === undefined) return;
      const all = yield* Effect.forEach(Array.from({ length: tokensMax + 1 }), () => drawn(throttle));
      assert.deepStrictEqual(
        all.map((it) => it?.waitMs),
        [...Array.from({ length: tokensMax }, () => 0), 1_000 / tokensPerSecond],
      );
    }),
  );

  it.effect("draw once for all runs that break together, and each run gets its own token", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const throttle = new SharedThrottle(store.process());
      const runs = 100;
      const all = yield* Effect.all(
        Array.from({ length: runs }, () => drawn(throttle)),
        { concurrency: "unbounded" },
      );
      assert.deepStrictEqual(
        all.map((it) => it?.waitMs),
        Array.from({ length: runs }, (_, n) => Math.max(0, n + 1 - tokensMax) * (1_000 / tokensPerSecond)),
      );
      assert.isAtMost(store.calls(), 2);
    }),
  );

  it.effect("take no token for a run that is not retried or is retried in another way", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const processor = yield* processOver(store);
      const calls = store.calls();
      const provider = () => S.scripted([S.start, S.text("hel"), S.reset]);
      for (let n = 0; n < 5; n += 1)
        assert.notInclude((yield* S.watch(processor.run(S.options(provider())))).lines, "completed");
      assert.strictEqual(store.calls(), calls, "the store is not even asked");
      const left = yield* store.process().draw("scripted", 0, { max: tokensMax, perSecond: tokensPerSecond });
      assert.strictEqual(left, tokensMax);
    }).pipe(Effect.scoped),
  );

  it.effect("put a token back that a run does not need after its draw", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const throttle = new SharedThrottle(store.process());
      const held = yield* drawn(throttle);
      if (held === undefined) return assert.fail("the store is there");
      yield* throttle.returnToken(held, now);
      for (let n = 0; n < 3; n += 1) yield* Effect.yieldNow;
      assert.strictEqual(yield* store.process().draw("p", 0, { max: tokensMax, perSecond: 0 }), tokensMax);
    }),
  );

  it.effect("put a token back whose time a run cannot wait for", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const processor = yield* processOver(store);
      const size = { max: tokensMax, perSecond: tokensPerSecond };
      yield* store.process().draw("scripted", tokensMax, size);
      const budget = { max_retry_after_ms: 0 };
      const { lines } = yield* S.watch(processor.run(S.options(S.scripted([failing]), { budget })));
      assert.notInclude(lines, "completed");
      for (let n = 0; n < 3; n += 1) yield* Effect.yieldNow;
      assert.strictEqual(yield* store.process().draw("scripted", 0, size), 0);
    }).pipe(Effect.scoped),
  );

  it.effect("stop drawing from the store while each token is reserved for longer than a run would wait", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const throttle = new SharedThrottle(store.process());
      const ahead = (maxWaitMs / 1_000) * tokensPerSecond + 1;
      yield* store.process().draw("p", tokensMax + ahead, { max: tokensMax, perSecond: tokensPerSecond });
      const first = yield* drawn(throttle);
      assert.isAbove(first?.waitMs ?? 0, maxWaitMs);
      const calls = store.calls();
      const next = yield* drawn(throttle);
      assert.isAbove(next?.waitMs ?? 0, maxWaitMs);
      if (next !== undefined) yield* throttle.returnToken(next, now);
      assert.strictEqual(store.calls(), calls, "nor put back what was not taken");
      assert.isDefined(yield* throttle.draw("p", maxWaitMs, () => maxWaitMs));
      assert.strictEqual(store.calls(), calls + 1);
    }),
  );
});

describe("a process's knowledge of tokens that were taken in advance", () => {
  it.effect("is no more than a moment old, because others put theirs back", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const [others, throttle] = [store.process(), new SharedThrottle(store.process())];
      const size = { max: tokensMax, perSecond: tokensPerSecond };
      const storm = 10_000;
      yield* others.draw("p", storm, size);
      assert.isAbove((yield* drawn(throttle))?.waitMs ?? 0, maxWaitMs);
      yield* others.draw("p", -storm, size);
      yield* TestClock.adjust("2 seconds");
      assert.strictEqual((yield* throttle.draw("p", maxWaitMs, () => 2_000))?.waitMs, 0);
    }),
  );
});

describe("a store that does not say if a token is available", () => {
  it.effect("leaves each process one retry at once, and a twentieth of the refill rate", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      store.isAway = true;
      const { own, ...rest } = new SharedThrottle(store.process());
      assert.isDefined(rest);
      assert.strictEqual(own.waitMs("p", 0), 0);
      own.take("p", 0);
      assert.strictEqual(own.waitMs("p", 0), (1_000 / tokensPerSecond) * tokensMax);
    }),
  );

  it.effect("blocks no run: 60 runs that break while it is away start one by one, or are asked about", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const processors = yield* Effect.forEach([1, 2], () => processOver(store));
      store.isAway = true;
      const { opened } = yield* storm(processors, 60, failing);
      assert.isAbove(opened.length, 2);
      for (const ms of [1_000, 10_000, 30_000])
        assert.isAtMost(opened.filter((at) => at <= ms).length, 2 * (1 + ms / 2_000), `in the first ${ms} ms`);
    }).pipe(Effect.scoped),
  );

  it.effect("is waited for half a second if it only hangs", () =>
    Effect.gen(function* () {
      const throttle = new SharedThrottle({ draw: () => Effect.never, spend: () => Effect.never });
      const asks = yield* Effect.forkChild(drawn(throttle));
      yield* TestClock.adjust(499);
      assert.isUndefined(asks.pollUnsafe());
      yield* TestClock.adjust(1);
      assert.isUndefined(yield* Fiber.join(asks));
    }),
  );

  it.effect("gets its token back if it answers too late", () =>
    Effect.gen(function* () {
      const store = yield* storeOf;
      const pacing = store.process();
      const draw: SharedPacing["draw"] = (...of) => Effect.delay(pacing.draw(...of), 600);
      const throttle = new SharedThrottle({ ...pacing, draw });
      const asks = yield* Effect.forkChild(drawn(throttle));
      const leaves = yield* Effect.forkChild(drawn(throttle));
      yield* TestClock.adjust(100);
      yield* Fiber.interrupt(leaves);
      yield* TestClock.adjust(400);
      assert.isUndefined(yield* Fiber.join(asks));
      const left = () => pacing.draw("p", 0, { max: tokensMax, perSecond: 0 });
      yield* TestClock.adjust(150);
      assert.strictEqual(yield* left(), tokensMax - 2);
      yield* TestClock.adjust(600);
      assert.strictEqual(yield* left(), tokensMax);
    }),
  );

  it.effect(
    "is called for the other runs, and gets its token back, at whatever point the calling run is interrupted",
    () =>
      Effect.gen(function* () {
        const pacing = (yield* storeOf).process();
        const others = Effect.repeat(Effect.yieldNow, { times: 20 });
        for (let step = 0; step < 20; step += 1) {
          const throttle = new SharedThrottle(pacing);
          const asks = yield* Effect.forkChild(
            Effect.provideService(drawn(throttle), Scheduler.Scheduler, pausing(step)),
          );
          yield* Effect.yieldNow;
          yield* Fiber.interrupt(asks);
          const next = yield* Effect.forkChild(drawn(throttle));
          yield* others;
          yield* TestClock.adjust("1 second");
          assert.isDefined(yield* Fiber.join(next), `at step ${step}`);
          const left = yield* pacing.draw("p", 0, { max: tokensMax, perSecond: 0 });
          assert.strictEqual(left, tokensMax - 1, `at step ${step}`);
          yield* pacing.draw("p", -1, { max: tokensMax, perSecond: 0 });
        }
      }),
  );

  it.effect("may be another author's, and die or return something that is no number", () =>
    Effect.gen(function* () {
      const dies = new SharedThrottle({ draw: () => Effect.die("lost"), spend: () => Effect.never });
      assert.isUndefined(yield* drawn(dies));
      const odd = new SharedThrottle({ draw: () => Effect.succeed(Number.NaN), spend: () => Effect.never });
      assert.isUndefined(yield* drawn(odd));
      const deep = new SharedThrottle({ draw: () => Effect.succeed(-Number.MAX_VALUE), spend: () => Effect.never });
      assert.isTrue(Number.isSafeInteger((yield* drawn(deep))?.waitMs));
    }),
  );
});
