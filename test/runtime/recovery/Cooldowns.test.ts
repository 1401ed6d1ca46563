/** An announced delay: once one run has got it, it holds all requests of its scope, even first ones, and costs no retry. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import type { Failure } from "../../../src/domain/Failure.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";
import * as Bench from "./OutageBench.ts";

const limited = (ms: number, more: Partial<Failure> = {}): Failure => ({
  kind: "rate_limited",
  status: 429,
  retry_after_ms: ms,
  ...(more.only_this === undefined ? {} : { only_this: more.only_this }),
});

/** Starts runs in one world and lets them act. */
const started = (
  outage: Bench.Outage,
  runs: ReadonlyArray<readonly [ReadonlyArray<ReadonlyArray<S.Step>>, Bench.Options]>,
) =>
  Effect.gen(function* () {
    const streams = yield* StreamProcessor;
    const fibers = [];
    for (const [scripts, more] of runs) {
      fibers.push(yield* Effect.forkChild(S.watch(streams.run(outage.options(scripts, more)))));
      yield* Bench.settle;
    }
    return fibers;
  });

const passes = (seconds: number) => Effect.repeat(TestClock.adjust("1 second"), { times: seconds - 1 });

describe("an announced wait", () => {
  it.effect("holds every request of its scope until its end, even first ones, and none of another credential", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      const own = { id: Bench.path, way: outage.network };
      const fibers = yield* started(outage, [
        [[[S.fail(limited(10_000))], S.hello], { runId: "heard" }],
        [[S.hello], { runId: "first" }],
        [[S.hello], { runId: "other", path: { ...own, credential: "of another" } }],
        [[S.hello], { runId: "model", provider: { id: "scripted", model: "m2" } }],
      ]);
      yield* passes(30);
      const seen = yield* Effect.forEach(fibers, Fiber.join);
      assert.deepStrictEqual(
        seen.map(({ lines }) => lines.at(-1)),
        ["completed", "completed", "completed", "completed"],
      );
      assert.include(seen[1]?.lines ?? [], "wait cooldown");
      assert.notInclude(seen[2]?.lines ?? [], "wait cooldown");
      // The refused one and the two of other scopes at once, and then none until the delay is over.
      assert.strictEqual(outage.sent.filter((at) => at === 0).length, 3);
      assert.isTrue(outage.sent.every((at) => at === 0 || at >= 10_000));
      const record = yield* S.recordOf("heard");
      const [incident] = record.incidents;
      assert.strictEqual(incident?.decision.wait_for, "cooldown");
      assert.strictEqual(record.attempts.at(-1)?.run?.elapsed_ms, 0);
      // Half of the jitter's two seconds is added, once.
      assert.strictEqual(incident?.decision.delay_ms, record.attempts.at(-1)?.started_ms);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("holds later requests from its head on, even if its body comes later", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      outage.network.fail();
      const refusing = (context: AttemptContext) =>
        S.flat(
          Effect.gen(function* () {
            context.delivery("not_sent");
            if (!outage.network.isWell) return Stream.fail(new S.ProviderBroke(Bench.refused));
            outage.sent.push(yield* Clock.currentTimeMillis);
            context.delivery("accepted", 429);
            yield* Effect.sleep("50 millis");
            return Stream.fail(new S.ProviderBroke(limited(10_000)));
          }),
        );
      const runs = Array.from({ length: 30 }, (_, at) => ({ ...outage.options([S.hello]), runId: `r${at}` }));
      const streams = yield* StreamProcessor;
      for (const run of runs) yield* Effect.forkChild(S.watch(streams.run({ ...run, attempt: refusing })));
      yield* passes(10);
      outage.network.mend();
      yield* passes(8);
      assert.isAtLeast(outage.sent.length, 1);
      // A single wave: heads of the wave admit no further request.
      assert.isAtMost(outage.sent.length, 8);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("for a single request holds no other", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      const fibers = yield* started(outage, [
        [[[S.fail(limited(10_000, { only_this: true }))], S.hello], { runId: "long" }],
        [[S.hello], { runId: "short" }],
      ]);
      yield* passes(30);
      yield* Effect.forEach(fibers, Fiber.join);
      assert.strictEqual(outage.sent.filter((at) => at === 0).length, 2);
      assert.isTrue(outage.sent.every((at) => at === 0 || at >= 10_000));
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect(
    "of a month from a hostile provider holds other requests for their own longest wait, and then one is sent",
    () =>
      Effect.gen(function* () {
        const outage = new Bench.Outage();
        yield* outage.reached;
        const fibers = yield* started(outage, [
          [[[S.fail(limited(2_592_000_000))]], { runId: "heard" }],
          [[S.hello], { runId: "first" }],
        ]);
        yield* passes(90);
        const seen = yield* Effect.forEach(fibers, Fiber.join);
        assert.strictEqual(seen[0]?.lines.at(-1), "end stopped retry_after_too_long");
        assert.strictEqual(seen[1]?.lines.at(-1), "completed");
        assert.deepStrictEqual(outage.sent, [0, 60_000]);
      }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect(
    "that a run may not wait for ends its request as announced_cooldown, not sent, and the policy decides",
    () =>
      Effect.gen(function* () {
        const outage = new Bench.Outage();
        yield* outage.reached;
        const fibers = yield* started(outage, [
          [[[S.fail(limited(30_000))], S.hello], { runId: "heard" }],
          [[S.hello], { runId: "hasty", budget: { max_outage_ms: 5_000 } }],
        ]);
        yield* passes(60);
        const seen = yield* Effect.forEach(fibers, Fiber.join);
        assert.strictEqual(seen[0]?.lines.at(-1), "completed");
        assert.strictEqual(seen[1]?.lines.at(-1), "end stopped outage_too_long");
        const [incident] = (yield* S.recordOf("hasty")).incidents;
        assert.include(incident?.failure, { kind: "rate_limited", code: "announced_cooldown", retry_after_ms: 30_000 });
        assert.strictEqual(incident?.facts.delivery, "not_sent");
        assert.isUndefined(seen[1]?.events.find(({ _tag }) => _tag === "Part"));
      }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("is accepted from a 503 in the provider's own schema, and not from a proxy's", () =>
    Effect.gen(function* () {
      for (const [own, times] of [
        [true, [0, 4_000]],
        [false, [0, 0]],
      ] as const) {
        const outage = new Bench.Outage();
        yield* outage.reached;
        const id = `${Bench.path}/${own}`;
        const busy: Failure = { kind: "server_error", status: 503, retry_after_ms: 4_000, not_processed: own };
        const path = { id, way: outage.network };
        const fibers = yield* started(outage, [
          [[[S.fail(busy)], S.hello], { runId: `heard ${own}`, path }],
          [[S.hello], { runId: `first ${own}`, path }],
        ]);
        const at = yield* Clock.currentTimeMillis;
        yield* passes(30);
        yield* Effect.forEach(fibers, Fiber.join);
        assert.strictEqual((outage.sent[1] ?? 0) - at, times[1], String(own));
      }
    }).pipe(Effect.provide(Bench.processor())),
  );
});
