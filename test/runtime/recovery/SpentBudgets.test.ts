/** Outages that begin after a budget is exhausted: a request that waited for its path is sent once with any budget, and nothing loops. */
import { inspect } from "node:util";
import { assert, describe, it } from "@effect/vitest";
import { Cause, Effect, Fiber, Layer, Logger, References } from "effect";
import { TestClock } from "effect/testing";
import type { Failure } from "../../../src/domain/Failure.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { decisionsMax } from "../../../src/runtime/recovery/Recovery.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";
import * as Bench from "./OutageBench.ts";

const busy: Failure = { kind: "server_error", status: 503, not_processed: true, retry_after_ms: 50 };

/** Scripts of requests that each fail, the last one when the outage begins. */
const failing = (outage: Bench.Outage, failures: ReadonlyArray<Failure>, ms: number): ReadonlyArray<Array<S.Step>> =>
  failures.map((failure, at) => [
    ...(at === failures.length - 1 ? [{ run: outage.away(ms) }] : []),
    S.start,
    S.fail(failure),
  ]);

const budget = { max_not_processed: 3, max_auto_retries: 3 };

const reset: Failure = { kind: "transport", code: "ECONNRESET" };

const worlds: Readonly<Record<string, ReadonlyArray<Failure>>> = {
  "three refusals": [busy, busy, busy],
  "two refusals": [busy, busy],
  "three refusals and a reset": [busy, busy, busy, reset],
  "three resets": [reset, reset, reset],
  "three refusals and three resets": [busy, busy, busy, reset, reset, reset],
};

describe("an outage after exhausted budgets", () => {
  for (const [name, failures] of Object.entries(worlds))
    for (const seconds of [5, 20, 70, 100])
      for (const probes of [true, false])
        it.effect(`of ${seconds} s after ${name}, ${probes ? "with" : "without"} probes: the run is whole`, () =>
          Effect.gen(function* () {
            const outage = new Bench.Outage();
            if (probes) yield* outage.reached;
            const scripts = [...failing(outage, failures, seconds * 1_000), S.hello];
            const options = outage.options(scripts, { budget, ...(probes ? {} : { path: "raw" }) });
            const seen = yield* Bench.play(options, 600_000);
            assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(", "));
            assert.strictEqual(outage.sent.length, failures.length + 1);
            const retries = seen.lines.filter((it) => it.startsWith("retry"));
            assert.isAtMost(retries.length, failures.length + 20, "decisions while the path is down");
          }).pipe(Effect.provide(Bench.processor())),
        );

  it.effect("costs an admitted request that is refused again its ordinary budget, and ends", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      const scripts = [...failing(outage, [busy, busy, busy], 30_000), [S.start, S.fail(busy)], S.hello];
      const seen = yield* Bench.play(outage.options(scripts, { budget }), 600_000);
      assert.strictEqual(seen.lines.at(-1), "end stopped budget_exhausted");
      assert.strictEqual(outage.sent.length, 4);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("ends a cancelled run at once and sends nothing", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      const streams = yield* StreamProcessor;
      const scripts = [...failing(outage, [busy, busy, busy], 100_000), S.hello];
      const fiber = yield* Effect.forkChild(S.watch(streams.run(outage.options(scripts, { budget }))));
      yield* Bench.settle;
      for (let second = 0; second < 40; second += 1) yield* TestClock.adjust("1 second");
      yield* streams.cancel("r");
      yield* TestClock.adjust(10);
      assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "end do_not_retry user_cancelled");
      assert.strictEqual(outage.sent.length, 3);
    }).pipe(Effect.provide(Bench.processor())),
  );
});

describe("an outage before the first request", () => {
  it.effect("starts no time of the budget, so a stall after it is retried like a first one", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      yield* outage.away(20_000);
      const silent: ReadonlyArray<S.Step> = [S.start, { run: Effect.never }];
      const clocks = { idle: 100_000, first_progress: 100_000 };
      const options = outage.options([silent, S.hello], { clocks, budget: { max_elapsed_ms: 100_000 } });
      const { lines } = yield* Bench.play(options, 600_000);
      assert.strictEqual(lines.at(-1), "completed", lines.join(", "));
      assert.strictEqual(outage.sent.length, 2);
    }).pipe(Effect.provide(Bench.processor())),
  );
});

describe("a connection that fails although a probe works a moment later", () => {
  const unconnected: S.Step = S.fail(Bench.refused);
  const none = { max_not_processed: 0, max_auto_retries: 0 };

  /** Plays a run over a path whose probes work and whose first connections fail. */
  const playConnects = (failures: number, budget: Bench.Options["budget"]) =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      let connects = 0;
      const attempt = (context: AttemptContext) => {
        connects += 1;
        context.delivery("not_sent");
        return S.scripted(connects <= failures ? [unconnected] : S.hello).attempt({ ...context, attempt: 1 });
      };
      const options = S.options(
        { attempt },
        { runId: "r", path: { id: Bench.path, way: outage.network }, ...(budget === undefined ? {} : { budget }) },
      );
      const { lines } = yield* Bench.play(options, 60_000);
      return { end: lines.at(-1), connects };
    }).pipe(Effect.provide(Bench.processor()));

  it.effect("may be the end of an outage, so the request is sent once with any budget", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* playConnects(1, none), { end: "completed", connects: 2 });
    }),
  );

  it.effect("has another cause if it fails again, so it counts, and the run ends", () =>
    Effect.gen(function* () {
      const end = "end stopped budget_exhausted";
      assert.deepStrictEqual(yield* playConnects(9, none), { end, connects: 2 });
      assert.deepStrictEqual(yield* playConnects(9, { max_not_processed: 2, max_auto_retries: 1 }), {
        end,
        connects: 5,
      });
    }),
  );
});

describe("decisions without effect", () => {
  for (const delay_ms of [0, 1_000])
    it.effect(`end the run with a report, and do not stop the process: with a wait of ${delay_ms} ms`, () => {
      const logged: Array<unknown> = [];
      const logger = Logger.make(({ cause, message }) => void logged.push([message, Cause.pretty(cause)]));
      let decided = 0;
      // A policy whose answer changes each time can never be carried out.
      const fickle = S.policyOf({
        name: "fickle",
        decide: () => {
          decided += 1;
          const mode = decided % 2 === 0 ? "replay" : "continue";
          return {
            action: "auto_retry_once",
            rule: "nothing_shown",
            mode,
            delay_ms,
            policy_version: "1",
            because: [],
          };
        },
      });
      return Effect.gen(function* () {
        const provider = S.scripted([S.start, S.reset], S.hello);
        const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r", policy: fickle })));
        assert.include(String(seen.exit), "decisions about one attempt");
        assert.isAtMost(decided, 3 * decisionsMax);
        assert.strictEqual(provider.attempts.length, 1);
        assert.strictEqual((yield* S.recordOf("r")).end?.reason, "defect");
        assert.include(logged.map((it) => inspect(it, { depth: 9 })).join(), "decisions about one attempt");
      }).pipe(
        Effect.provide(S.processor().pipe(Layer.provideMerge(Logger.layer([logger])))),
        Effect.provideService(References.MinimumLogLevel, "All"),
      );
    });
});
