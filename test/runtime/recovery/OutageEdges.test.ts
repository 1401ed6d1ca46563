/** A run whose path is back and whose provider is not, and runs at the limit of their wait. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import { massBreaks } from "../../../src/paths/PathState.ts";
import type { Question } from "../../../src/recorder/Question.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";
import * as Bench from "./OutageBench.ts";

const passes = (seconds: number) =>
  Effect.gen(function* () {
    yield* Bench.settle;
    for (let at = 0; at < seconds * 10; at += 1) yield* TestClock.adjust(100);
  });

/** A path that goes down while the first request is read, and is back five seconds later. */
const cutOnce = (outage: Bench.Outage): ReadonlyArray<S.Step> => [
  S.start,
  S.reasoning("hm"),
  { run: outage.away(5_000) },
  S.reset,
];

describe("a path that is back", () => {
  it.effect("with a provider behind it that is not: its retries keep their backoff, and are not spent at once", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      let readyAt = Number.POSITIVE_INFINITY;
      const played = outage.attempts(cutOnce(outage), S.hello);
      const busy = outage.attempts([S.fail({ kind: "server_error", status: 502 })]);
      const sent: Array<number> = [];
      const attempt = (context: AttemptContext) =>
        S.flat(
          Effect.gen(function* () {
            const now = yield* Clock.currentTimeMillis;
            if (outage.network.isWell) sent.push(now);
            if (outage.mendedAt < Number.POSITIVE_INFINITY && outage.network.isWell) {
              readyAt = outage.mendedAt + 1_200;
              if (now < readyAt) return busy(context);
            }
            return played(context);
          }),
        );
      const fiber = yield* Effect.forkChild(S.watch((yield* StreamProcessor).run({ ...outage.options([]), attempt })));
      yield* passes(60);
      const seen = yield* Fiber.join(fiber);
      assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(" | ") + sent.join());
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("does not end a wait that a provider has announced for one request alone", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      const limited = { kind: "rate_limited", status: 429, only_this: true, retry_after_ms: 30_000 } as const;
      const fiber = yield* Effect.forkChild(
        S.watch((yield* StreamProcessor).run(outage.options([cutOnce(outage), [S.fail(limited)], S.hello]))),
      );
      yield* passes(60);
      const seen = yield* Fiber.join(fiber);
      assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(" | "));
      const [, refused = 0, next = 0] = outage.sent;
      assert.isAtLeast(next - refused, 30_000);
    }).pipe(Effect.provide(Bench.processor())),
  );
});

describe("a cooldown of others", () => {
  it.effect("that ends sooner does not end a wait that was announced for one request alone", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      const paths = yield* outage.reached;
      const scope = { path: Bench.path, credential: "", model: undefined };
      const limited = { kind: "rate_limited", status: 429, only_this: true, retry_after_ms: 30_000 } as const;
      const heard = Effect.sync(() =>
        paths.recordRefusal(scope, { kind: "rate_limited", waitMs: 1_000, onlyThis: false }),
      );
      const fiber = yield* Effect.forkChild(
        S.watch((yield* StreamProcessor).run(outage.options([[{ run: heard }, S.fail(limited)], S.hello]))),
      );
      yield* passes(60);
      const seen = yield* Fiber.join(fiber);
      assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(" | "));
      assert.isAtLeast(outage.sent[1] ?? 0, 30_000);
    }).pipe(Effect.provide(Bench.processor())),
  );
});

describe("a run that may not wait", () => {
  it.effect("starts anyway if its person asks for it, and is not asked repeatedly", () => {
    const asked: Array<Question> = [];
    return Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      let connects = 0;
      const attempt = (context: AttemptContext): Stream.Stream<S.ScriptedPart, S.ProviderBroke> => {
        connects += 1;
        context.delivery("not_sent");
        return S.flat(Effect.delay(Effect.succeed(Stream.fail(new S.ProviderBroke(Bench.refused))), 1_000));
      };
      outage.network.fail();
      const fiber = yield* Effect.forkChild(
        S.watch((yield* StreamProcessor).run({ ...outage.options([]), attempt, budget: { max_outage_ms: 0 } })),
      );
      yield* passes(20);
      yield* Fiber.interrupt(fiber);
      assert.isAtLeast(connects, 2);
      assert.isAtMost(asked.length, 25);
    }).pipe(Effect.provide(Bench.processor(Bench.answering(asked, () => (asked.length > 200 ? "stop" : "retry")))));
  });
});

describe("connections that break under many runs at once", () => {
  for (const [breaks, probes] of [
    [massBreaks, 0],
    [massBreaks + 1, 1],
  ] as const) {
    it.effect(`${breaks} breaks within a second ${probes === 0 ? "leave the path up" : "have it probed"}`, () =>
      Effect.gen(function* () {
        const outage = new Bench.Outage();
        const paths = yield* outage.reached;
        const processor = yield* StreamProcessor;
        const run = (at: number) =>
          S.played(processor.run(outage.options([[S.start, S.text("a"), S.reset]], { runId: `r${at}` })));
        yield* Effect.forEach(
          Array.from({ length: breaks }, (_, at) => at),
          run,
          { concurrency: "unbounded" },
        );
        assert.strictEqual(outage.network.probes, probes, JSON.stringify(paths.list()));
      }).pipe(Effect.provide(Bench.processor())),
    );
  }
});
