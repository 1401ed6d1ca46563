/** An outage at every moment of a run: it waits, spends nothing, and starts as soon as the path is back. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Stream } from "effect";
import { TestClock } from "effect/testing";
import { wantedMs } from "../../../src/paths/PathTable.ts";
import type { Question } from "../../../src/recorder/Question.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import * as Bench from "./OutageBench.ts";

const reset = (outage: Bench.Outage, ms: number): ReadonlyArray<S.Step> => [{ run: outage.away(ms) }, S.reset];

/** A moment of a run: the scripts of the requests that reach the provider, and the question that the run asks there. */
interface Moment {
  readonly scripts: (outage: Bench.Outage, ms: number) => ReadonlyArray<ReadonlyArray<S.Step>>;
  readonly options?: Bench.Options;
  readonly asks?: string;
  /** True if the outage begins before the run. */
  readonly before?: boolean;
  readonly tool?: boolean;
}

const moments: Readonly<Record<string, Moment>> = {
  "before the request": { scripts: () => [S.hello], before: true },
  "before the head": { scripts: (outage, ms) => [reset(outage, ms), S.hello] },
  "in reasoning": { scripts: (outage, ms) => [[S.start, S.reasoning("hm"), ...reset(outage, ms)], S.hello] },
  "in held text": {
    scripts: (outage, ms) => [[S.start, S.text("a"), ...reset(outage, ms)], S.hello],
    options: { reveal: "on_complete" },
  },
  "in shown text": {
    scripts: (outage, ms) => [[S.start, S.text("a"), S.wait(1), ...reset(outage, ms)], S.hello],
    asks: "text_shown",
  },
  "while a tool runs": {
    scripts: (outage, ms) => [[S.start, S.callReady("bash"), S.wait(10), ...reset(outage, ms)], S.hello],
    tool: true,
  },
  "during a backoff": {
    scripts: (outage, ms) => [
      [
        S.start,
        { run: Effect.forkDetach(Effect.delay(outage.away(ms), 100)) },
        S.fail({ kind: "server_error", status: 500 }),
      ],
      S.hello,
    ],
  },
};

describe("an outage", () => {
  for (const [name, moment] of Object.entries(moments)) {
    for (const seconds of [5, 20, 60, 600]) {
      it.effect(`of ${seconds} s ${name}: the run waits for it and is whole`, () => {
        const asked: Array<Question> = [];
        return Effect.gen(function* () {
          const outage = new Bench.Outage();
          yield* outage.reached;
          const ms = seconds * 1_000;
          let ran = 0;
          const guard = yield* ToolGuard;
          const bash = guard.mutating("bash", () =>
            Effect.delay(
              Effect.sync(() => ++ran),
              3_000,
            ),
          );
          if (moment.before === true) yield* outage.away(ms);
          const tools = moment.tool === true ? { tools: [bash], canContinue: true } : {};
          const options = outage.options(moment.scripts(outage, ms), { ...moment.options, ...tools });
          const seen = yield* Bench.play(options, ms + 1_200_000, (event) =>
            event._tag === "Part"
              ? Effect.forEach(event.calls ?? [], (call) => Effect.forkDetach(Effect.exit(bash.run(call, call.input))))
              : Effect.void,
          );
          assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(" | "));
          assert.include(seen.lines, "wait path");
          // The library waits two minutes by itself. Then it asks once, and the answer comes when the path is back.
          const rules = asked.map(({ rule }) => rule);
          const expected = [...(moment.asks === undefined ? [] : [moment.asks])];
          assert.deepStrictEqual(rules, seconds > 120 ? [...expected, "outage_too_long"] : expected);
          assert.strictEqual(ran, moment.tool === true ? 1 : 0);
          assert.isAtMost(outage.sent.length, 2);
          assert.isAtMost(outage.unconnected, 2);
          const last = seen.record.attempts.at(-1)?.run;
          assert.isAtMost(last?.not_processed_retries ?? 0, 0);
          assert.isAtMost(last?.elapsed_ms ?? 0, 5_000);
          // The longest interval of probes, half of it again, and half a second.
          if (seconds < 120) assert.isAtMost((outage.sent.at(-1) ?? 0) - outage.mendedAt, seconds < 60 ? 2_000 : 8_000);
          assert.isUndefined(seen.record.waiting);
          if (seconds < 120) assert.isAtLeast(seen.record.waited_ms ?? 0, ms - 5_000);
        }).pipe(
          Effect.provide(
            Bench.processor(
              // The person who is asked about the outage answers shortly before its end.
              Bench.answering(
                asked,
                () => "retry",
                ({ rule }) => (rule === "outage_too_long" ? 550_000 : 0),
              ),
            ),
          ),
        );
      });
    }
  }
});

describe("a wait for a path", () => {
  it.effect("during a question: the answer waits for the path, and the permitted wait starts again", () => {
    const asked: Array<Question> = [];
    return Effect.gen(function* () {
      const outage = new Bench.Outage();
      const paths = yield* outage.reached;
      const script = [S.start, S.text("a"), S.wait(1), S.reset];
      const fiber = yield* Effect.forkChild(Bench.play(outage.options([script, S.hello]), 600_000));
      yield* TestClock.adjust("1 second");
      outage.network.fail();
      yield* paths.recordConnectFailure({ path: Bench.path, credential: "", model: undefined }, "ENETUNREACH");
      yield* TestClock.adjust("100 seconds");
      assert.strictEqual(outage.sent.length, 1);
      outage.network.mend();
      yield* TestClock.adjust("10 seconds");
      const seen = yield* Fiber.join(fiber);
      assert.deepStrictEqual(
        seen.lines.filter((it) => !it.startsWith("discard")),
        [
          "attempt 1 first",
          "start",
          "a",
          "ask text_shown",
          "answer retry",
          "wait path",
          "attempt 2 replay",
          "start",
          "hello",
          "done",
          "completed",
        ],
      );
      assert.strictEqual(outage.sent.length, 2);
    }).pipe(
      Effect.provide(
        Bench.processor(
          Bench.answering(
            asked,
            () => "retry",
            () => 30_000,
          ),
        ),
      ),
    );
  });

  it.effect("holds a first request too: after its AttemptStarted, before any part, with nothing sent", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      const paths = yield* outage.reached;
      outage.network.fail();
      yield* paths.recordConnectFailure({ path: Bench.path, credential: "", model: undefined }, "ENETUNREACH");
      const fiber = yield* Effect.forkChild(
        Bench.play(outage.options([S.hello], { clocks: { first_progress: 5_000 } }), 100_000),
      );
      yield* TestClock.adjust("59 seconds");
      const during = yield* S.recordOf("r");
      assert.strictEqual(during.waiting?.for, "path");
      assert.strictEqual(outage.unconnected, 0);
      assert.strictEqual(paths.list()[0]?.waiting, 1);
      outage.network.mend();
      yield* TestClock.adjust("10 seconds");
      const seen = yield* Fiber.join(fiber);
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "wait path", "start", "hello", "done", "completed"]);
      assert.isAtLeast(seen.record.waited_ms ?? 0, 58_000);
      assert.isUndefined(seen.record.waiting);
      assert.includeMembers(
        seen.record.evidence.first.filter(({ event }) => event === "waiting").map(({ detail }) => detail),
        ["path", "over"],
      );
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("that exceeds the budget ends a first attempt as path_down, and the policy asks once", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      const paths = yield* outage.reached;
      outage.network.fail();
      yield* paths.recordConnectFailure({ path: Bench.path, credential: "", model: undefined }, "ENETUNREACH");
      const seen = yield* Bench.play(outage.options([S.hello], { budget: { max_outage_ms: 7_000 } }), 600_000);
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "wait path",
        "ask outage_too_long",
        "answer stop",
        "end stopped outage_too_long",
      ]);
      const [incident] = seen.record.incidents;
      assert.strictEqual(incident?.failure.code, "path_down");
      assert.strictEqual(incident?.facts.delivery, "not_sent");
      assert.strictEqual(incident?.run.waited_ms, 7_000);
      assert.strictEqual(outage.unconnected, 0);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("that ends during the outage asks, and sends nothing more, however long it was", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      outage.network.fail();
      const seen = yield* Bench.play(outage.options([S.hello], { budget: { max_outage_ms: wantedMs } }), 600_000);
      assert.strictEqual(outage.unconnected, 1);
      assert.deepStrictEqual(
        seen.record.incidents.map(({ decision, run }) => [decision.rule, run.path, run.not_processed_retries]),
        [
          ["not_sent", "down", 0],
          ["outage_too_long", "down", 0],
        ],
      );
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("does not exist for a path that was never reached, which fails within seconds like a wrong address", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      outage.network.fail();
      const seen = yield* Bench.play(outage.options([S.hello]), 600_000);
      assert.notInclude(seen.lines, "wait path");
      assert.strictEqual(seen.lines.at(-1), "end stopped budget_exhausted");
      // Three retries of a request that was not sent, then the three ordinary ones.
      assert.strictEqual(outage.unconnected, 7);
      assert.isBelow(seen.record.end?.at ?? Number.POSITIVE_INFINITY, 30_000);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("ends by the budget if the probe answers and requests fail, with few requests", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      let connects = 0;
      const attempt = (context: AttemptContext) => {
        connects += 1;
        context.delivery("not_sent");
        return Stream.fail(new S.ProviderBroke(Bench.refused));
      };
      const options = { ...outage.options([S.hello]), attempt };
      const seen = yield* Bench.play(options, 3_600_000);
      assert.match(seen.lines.at(-1) ?? "", /^end stopped (?:budget_exhausted|outage_too_long)$/);
      assert.isAtMost(connects, 20);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("of a path that comes and goes every two seconds does not restart each time", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      const flap = Effect.gen(function* () {
        for (;;) {
          outage.network.fail();
          yield* Effect.sleep(2_000);
          outage.network.mend();
          yield* Effect.sleep(2_000);
        }
      });
      yield* Effect.forkChild(flap);
      // The next outage cuts each request.
      const cut = [S.start, S.reasoning("hm"), S.wait(2_500), S.reset];
      const seen = yield* Bench.play(outage.options([cut]), 3_600_000);
      assert.match(seen.lines.at(-1) ?? "", /^end stopped/);
      assert.isAtMost(outage.sent.length, 10);
      const waited = seen.record.incidents.map(({ run }) => run.waited_ms);
      assert.deepStrictEqual(
        waited,
        waited.toSorted((a, b) => a - b),
      );
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect(
    "is left by the half of the runs that are cancelled: they end at once and send nothing, and the others start",
    () =>
      Effect.gen(function* () {
        const outage = new Bench.Outage();
        const paths = yield* outage.reached;
        outage.network.fail();
        yield* paths.recordConnectFailure({ path: Bench.path, credential: "", model: undefined }, "ENETUNREACH");
        const streams = yield* StreamProcessor;
        const fibers = yield* Effect.forEach(Array.from({ length: 40 }), (_, n) =>
          Effect.forkChild(S.watch(streams.run(outage.options([S.hello], { runId: `r${n}` })))),
        );
        yield* TestClock.adjust("5 seconds");
        for (let n = 0; n < 40; n += 2) yield* streams.cancel(`r${n}`);
        yield* Bench.settle;
        yield* TestClock.adjust(10);
        assert.isTrue(fibers.every((fiber, n) => n % 2 === 1 || fiber.pollUnsafe() !== undefined));
        assert.strictEqual(paths.list()[0]?.waiting, 20);
        outage.network.mend();
        yield* TestClock.adjust("10 seconds");
        const seen = yield* Effect.forEach(fibers, Fiber.join);
        assert.strictEqual(outage.sent.length, 20);
        assert.strictEqual(outage.unconnected, 0);
        for (const [n, { lines }] of seen.entries())
          assert.strictEqual(lines.at(-1), n % 2 === 0 ? "end do_not_retry user_cancelled" : "completed");
        assert.strictEqual((yield* S.recordOf("r0")).state, "ended");
      }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("is shared by 1,000 runs that break at once: none of them asks, and their requests are bounded", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      const streams = yield* StreamProcessor;
      const cut = [S.start, S.reasoning("hm"), S.wait(5_000), S.reset];
      const fibers = yield* Effect.forEach(Array.from({ length: 1_000 }), (_, n) =>
        Effect.forkChild(S.watch(streams.run(outage.options([cut, S.hello], { runId: `r${n}` })))),
      );
      yield* Bench.settle;
      yield* TestClock.adjust("4 seconds");
      outage.network.fail();
      yield* TestClock.adjust("20 seconds");
      outage.network.mend();
      for (let second = 0; second < 30; second += 1) yield* TestClock.adjust("1 second");
      const seen = yield* Effect.forEach(fibers, Fiber.join);
      const ends = new Set(seen.map(({ lines }) => lines.at(-1)));
      assert.deepStrictEqual([...ends], ["completed"]);
      assert.strictEqual(outage.sent.length, 2_000);
      assert.isAtMost(outage.unconnected, 20);
    }).pipe(Effect.provide(Bench.processor())),
  );
});
