/** The six clocks but `connect`, each by its name, and what they must not do. */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Exit, Fiber, Layer, Schedule, Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { ClockName } from "../../../src/domain/Failure.ts";
import { Watchdog } from "../../../src/runtime/attempt/Watchdog.ts";
import * as Clocks from "../../../src/runtime/contract/Clocks.ts";
import type { AttemptContext, RunOptions } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { skewed } from "./SkewedClock.ts";

type More = S.More;

/** Plays steps under a policy-free eye: which clock fired first, and after how many virtual milliseconds. */
const firstStall = (steps: ReadonlyArray<S.Step>, more: More = {}) =>
  Effect.gen(function* () {
    const provider = S.scripted(steps);
    const budget = { max_auto_retries: 0 };
    yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r", budget, ...more })));
    const record = yield* S.recordOf("r");
    const failure = record.incidents[0]?.failure;
    const fired = [...record.evidence.first, ...record.evidence.last].find((it) => it.event === "watchdog");
    return failure?.kind === "stalled" ? { clock: failure.clock, at: fired?.at_ms } : undefined;
  }).pipe(Effect.provide(S.processor()));

const cases: ReadonlyArray<{
  readonly name: string;
  readonly steps: ReadonlyArray<S.Step>;
  readonly more?: More;
  readonly clock: ClockName | undefined;
  readonly at?: number;
}> = [
  {
    name: "first_progress: 180 s where the model does not reason",
    steps: [S.never],
    clock: "first_progress",
    at: 180_000,
  },
  {
    name: "first_progress: 600 s where the model reasons",
    steps: [S.never],
    more: { provider: { id: "p", reasoning: true } },
    clock: "first_progress",
    at: 600_000,
  },
  {
    name: "first_progress: 600 s where it is not known whether the model reasons",
    steps: [S.never],
    more: { provider: { id: "p" } },
    clock: "first_progress",
    at: 600_000,
  },
  {
    name: "first_progress: lifecycle events are no progress",
    steps: [S.start, S.wait(100_000), S.start, S.never],
    clock: "first_progress",
    at: 180_000,
  },
  {
    name: "first_progress: off for a response that comes whole",
    steps: [S.wait(3_600_000), S.text("all"), S.done],
    more: { streaming: false },
    clock: undefined,
  },
  {
    name: "idle: 300 s from progress to progress",
    steps: [S.wait(1_000), S.text("a"), S.never],
    clock: "idle",
    at: 301_000,
  },
  {
    name: "idle: reasoning is progress",
    steps: [S.reasoning("a"), S.wait(299_000), S.reasoning("b"), S.wait(299_000), S.text("c"), S.done],
    clock: undefined,
  },
  {
    name: "idle: keep-alives for ever are a stall, not a thought",
    steps: [S.text("a"), ...Array.from({ length: 40 }, () => [S.wait(10_000), S.ping]).flat(), S.never],
    clock: "idle",
    at: 300_000,
  },
  {
    name: "silence: 90 s without a byte once two keep-alives showed that they come",
    steps: [S.ping, S.wait(10_000), S.ping, S.never],
    clock: "silence",
    at: 100_000,
  },
  {
    name: "silence: one keep-alive does not arm it",
    steps: [S.ping, S.never],
    clock: "first_progress",
    at: 180_000,
  },
  {
    name: "attempt: the caller's own limit",
    steps: [S.text("a"), S.wait(4_000), S.text("b"), S.never],
    more: { clocks: { attempt: 5_000 } },
    clock: "attempt",
    at: 5_000,
  },
  {
    name: "run: the caller's own limit",
    steps: [S.text("a"), S.wait(4_000), S.text("b"), S.never],
    more: { clocks: { run: 6_000 } },
    clock: "run",
    at: 6_000,
  },
  {
    name: "any clock can be switched off",
    steps: [S.wait(7_200_000), S.text("a"), S.done],
    more: { clocks: { first_progress: false } },
    clock: undefined,
  },
];

describe("clocks", () => {
  for (const it_ of cases) {
    it.effect(it_.name, () =>
      Effect.gen(function* () {
        const fired = yield* firstStall(it_.steps, it_.more);
        assert.deepStrictEqual(fired, it_.clock === undefined ? undefined : { clock: it_.clock, at: it_.at });
      }),
    );
  }

  it.effect("first_progress counts from the request written: a wait for a connection is none of the model's", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.wait(170_000), S.never]);
      // A source that says it again and again does not put the clock off.
      const written = ({ delivery }: AttemptContext) => {
        const say = Effect.sync(() => delivery("ambiguous"));
        return Stream.fromEffect(Effect.sleep(170_000)).pipe(
          Stream.concat(Stream.fromEffect(Effect.repeat(say, Schedule.spaced(50_000)))),
          Stream.drain,
        );
      };
      const attempt = (context: AttemptContext) => {
        context.delivery("not_sent");
        return Stream.merge(provider.attempt(context), written(context));
      };
      const budget = { max_auto_retries: 0 };
      yield* S.played((yield* StreamProcessor).run(S.options({ attempt }, { runId: "r", budget })));
      const { evidence, incidents } = yield* S.recordOf("r");
      const fired = [...evidence.first, ...evidence.last].find((it) => it.event === "watchdog");
      assert.strictEqual(fired?.at_ms, 350_000);
      assert.deepStrictEqual(incidents[0]?.failure, { kind: "stalled", clock: "first_progress" });
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("the clocks attempt and run are the caller's own and never retried", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.never]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { clocks: { attempt: 1_000 } })));
      assert.strictEqual(seen.lines.at(-1), "end do_not_retry not_retryable");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("the run's clock counts over attempts", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.wait(4_000), S.reset], [S.never]);
      const options = S.options(provider, { runId: "r", clocks: { run: 6_000 } });
      yield* S.played((yield* StreamProcessor).run(options));
      const last = (yield* S.recordOf("r")).incidents.at(-1);
      assert.deepStrictEqual(last?.failure, { kind: "stalled", clock: "run" });
      assert.strictEqual(last?.attempt, 2);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("bytes that are no part yet feed silence", () =>
    Effect.gen(function* () {
      const attempt: RunOptions<S.ScriptedPart, S.ProviderBroke, never>["attempt"] = (context) =>
        S.scripted([
          S.ping,
          S.ping,
          S.wait(80_000),
          { run: Effect.sync(() => context.bytes(10)) },
          S.wait(80_000),
          S.text("a"),
          S.done,
        ]).attempt(context);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options({ attempt })));
      // A second attempt would have twice the time, and complete.
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "ping", "ping", "a", "done", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a caller that is slow for longer than idle is never a stalled provider", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("a"), S.text("b"), S.text("c"), S.done]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)), (event) =>
        event._tag === "Part" ? Effect.sleep("20 minutes") : Effect.void,
      );
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("while a tool runs inside the stream the clocks stand still", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const build = guard.mutating("build", () => Effect.sleep("1 hour"));
      const over = yield* Deferred.make<void>();
      const provider = S.scripted([
        S.start,
        S.callReady("build"),
        { run: Deferred.await(over) },
        S.text("built"),
        S.done,
      ]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [build] })), (event) =>
        event._tag === "Part" && event.calls?.[0] !== undefined
          ? Effect.forkDetach(Effect.andThen(build.run(event.calls[0], undefined), Deferred.succeed(over, undefined)))
          : Effect.void,
      );
      assert.strictEqual(seen.lines.at(-1), "completed");
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a socket that is left open after the terminal marker holds the end for ten seconds, not for idle", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.text("all"), S.done, S.wait(9_000), S.start, S.never]);
      const fiber = yield* Effect.forkChild(S.watch((yield* StreamProcessor).run(S.options(provider))));
      yield* TestClock.adjust("30 seconds");
      assert.deepStrictEqual((yield* Fiber.join(fiber)).lines.slice(-2), ["start", "completed"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a part that comes while a tool runs does not push the clocks into the future", () =>
    Effect.gen(function* () {
      const guard = yield* ToolGuard;
      const build = guard.mutating("build", () => Effect.sleep("100 seconds"));
      const provider = S.scripted([S.callReady("build"), S.wait(90_000), S.text("meanwhile"), S.never]);
      const options = S.options(provider, { runId: "r", tools: [build], budget: { max_auto_retries: 0 } });
      yield* S.played((yield* StreamProcessor).run(options), (event) =>
        event._tag === "Part" && event.calls?.[0] !== undefined
          ? Effect.forkDetach(build.run(event.calls[0], undefined))
          : Effect.void,
      );
      const record = yield* S.recordOf("r");
      const fired = record.evidence.first.find((it) => it.event === "watchdog");
      assert.deepStrictEqual([fired?.detail, fired?.at_ms], ["idle", 400_000]);
      assert.isTrue(record.incidents.every((it) => it.run.elapsed_ms >= 0));
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect(
    "a retry after a stall has twice that clock: the same prefill is never cut at the same deadline twice",
    () =>
      Effect.gen(function* () {
        const provider = S.scripted([S.start, S.never], [S.start, S.wait(350_000), S.text("slow"), S.done]);
        const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
        assert.deepStrictEqual(seen.lines.slice(-3), ["slow", "done", "completed"]);
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("a machine that slept is noticed and counted, and its living stream goes on", () =>
    Effect.gen(function* () {
      // The wall clock runs ahead of the monotonic one by ten minutes, as after a suspended laptop.
      const { layer, skew } = skewed();
      const provider = S.scripted([
        S.start,
        {
          run: Effect.sync(() => {
            skew.wall = 600_000;
          }),
        },
        S.wait(185_000),
        S.text("a"),
        S.done,
      ]);
      const seen = yield* Effect.gen(function* () {
        const other = S.scripted([S.never]);
        const processor = yield* StreamProcessor;
        // Another run's clock makes the watchdog look before this one's deadline.
        yield* Effect.forkChild(S.watch(processor.run(S.options(other, { clocks: { attempt: 100_000 } }))));
        const result = yield* S.played(processor.run(S.options(provider, { runId: "r" })));
        return { result, record: yield* S.recordOf("r") };
      }).pipe(Effect.provide(S.processor().pipe(Layer.provide(layer))));
      assert.strictEqual(seen.result.lines.at(-1), "completed");
      assert.strictEqual(seen.record.attempts[0]?.facts.counters.suspended_ms, 600_000);
    }),
  );
});

describe("watchdog", () => {
  it.effect("against a stream that ends in the same instant exactly one wins, in seeded permutations (L6)", () =>
    Effect.gen(function* () {
      const seed = 20_261_121;
      console.log(`seed ${seed}`);
      let state = seed;
      const next = (below: number) => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return state % below;
      };
      for (let round = 0; round < 60; round += 1) {
        const runId = `r${round}`;
        const limit = 1_000;
        const end = limit - 1 + next(3);
        const cancelAt = limit - 1 + next(3);
        const provider = S.scripted([S.start, S.wait(end), S.text("x"), S.done], [S.start, S.text("x"), S.done]);
        const processor = yield* StreamProcessor;
        const stream = processor.run(S.options(provider, { runId, clocks: { first_progress: limit } }));
        const cancels = next(2) === 1;
        const fiber = yield* Effect.forkChild(S.watch(stream));
        if (cancels) yield* Effect.forkChild(Effect.delay(processor.cancel(runId), cancelAt));
        yield* TestClock.adjust("1 minute");
        const { lines } = yield* Fiber.join(fiber);
        const ends = lines.filter((line) => line === "completed" || line.startsWith("end "));
        assert.strictEqual(ends.length, 1, `seed ${seed} round ${round}: ${lines.join(" | ")}`);
        assert.isAtMost(lines.filter((line) => line === "x").length, 1, `seed ${seed} round ${round}`);
        const record = yield* S.recordOf(runId);
        assert.isDefined(record.end, `seed ${seed} round ${round}`);
      }
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("one fiber looks for all runs, and forgets them when they end", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make();
      const watchdog = yield* Scope.provide(Watchdog.make, scope);
      const fired: Array<string> = [];
      const clocks = Clocks.make({ id: "p", reasoning: false }, true);
      for (const [index, first_progress] of [5_000, 1_000, 3_000].entries()) {
        watchdog.watch(
          { ...clocks, first_progress },
          { onStalled: (clock) => fired.push(`${index} ${clock}`), onSuspended: () => undefined },
          0,
        );
      }
      assert.strictEqual(watchdog.size, 3);
      yield* TestClock.adjust(2_999);
      assert.deepStrictEqual(fired, ["1 first_progress"]);
      yield* TestClock.adjust(2_001);
      assert.deepStrictEqual(fired, ["1 first_progress", "2 first_progress", "0 first_progress"]);
      assert.strictEqual(watchdog.size, 0);
      yield* Scope.close(scope, Exit.void);
    }),
  );
});
