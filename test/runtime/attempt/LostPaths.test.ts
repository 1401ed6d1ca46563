/** Silence and sleep: a path from which nothing comes is asked, and what hangs on a path that is lost ends, whatever its clocks say. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Bench from "../recovery/OutageBench.ts";
import * as S from "../Scripted.ts";
import { skewed } from "./SkewedClock.ts";

const thinks = [S.start, S.reasoning("hm")];

/** Milliseconds after which attempt 1 was found lost; undefined where it was not. */
const lostAt = (record: Pick<RunRecord, "evidence">): number | undefined =>
  record.evidence.first.find(({ detail }) => detail === "path_lost")?.at_ms;

describe("a silent path", () => {
  for (const [where, script, operation] of [
    ["in the body", [...thinks, S.never], "body"],
    ["before the head", [S.never], "head"],
  ] as const) {
    it.effect(`that is lost ${where} is felt within 16 s of its last byte, and the run waits for it`, () =>
      Effect.gen(function* () {
        const outage = new Bench.Outage();
        yield* outage.reached;
        outage.network.takes = 5_000;
        const fiber = yield* Effect.forkChild(Bench.play(outage.options([script, S.hello]), 600_000));
        yield* TestClock.adjust(1);
        outage.network.fail();
        yield* TestClock.adjust("30 seconds");
        const during = yield* S.recordOf("r");
        assert.strictEqual(lostAt(during), 15_000);
        assert.include(during.incidents[0]?.failure, { kind: "transport", code: "path_lost", operation });
        assert.strictEqual(during.waiting?.for, "path");
        outage.network.mend();
        yield* TestClock.adjust("20 seconds");
        const seen = yield* Fiber.join(fiber);
        assert.strictEqual(seen.lines.at(-1), "completed");
        assert.strictEqual(outage.sent.length, 2);
      }).pipe(Effect.provide(Bench.processor())),
    );
  }

  it.effect("that works is asked again after 10, 20, 40 and then each 60 s more of silence, and proves nothing", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      const clock = yield* Clock.Clock;
      const asked: Array<number> = [];
      const way = {
        probe: Effect.suspend(() => {
          asked.push(clock.currentTimeMillisUnsafe() / 1_000);
          return outage.network.probe;
        }),
        dropIdle: () => undefined,
      };
      const script = [...thinks, S.wait(290_000), S.text("a"), S.done];
      const seen = yield* Bench.play(outage.options([script], { path: { id: Bench.path, way } }), 600_000);
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.deepStrictEqual(asked, [10, 20, 40, 80, 140, 200, 260]);
      assert.strictEqual(outage.sent.length, 1);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("is asked once for all its attempts, and ends all of them that have heard nothing since", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      outage.network.takes = 3_000;
      const streams = yield* StreamProcessor;
      const run = (runId: string, ...script: ReadonlyArray<S.Step>) =>
        Effect.forkChild(S.watch(streams.run(outage.options([script, S.hello], { runId }))));
      yield* Effect.forEach(Array.from({ length: 30 }), (_, n) => run(`silent${n}`, ...thinks, S.never));
      // What comes while the path is asked proves that its connection lives.
      yield* run("alive", ...thinks, S.wait(11_000), S.ping, S.wait(60_000), S.text("a"), S.done);
      yield* Bench.settle;
      outage.network.fail();
      yield* TestClock.adjust("12500 millis");
      assert.strictEqual(outage.network.probes, 1);
      yield* TestClock.adjust("1 second");
      for (let n = 0; n < 30; n += 1) assert.strictEqual(lostAt(yield* S.recordOf(`silent${n}`)), 13_000);
      assert.isUndefined(lostAt(yield* S.recordOf("alive")));
      assert.strictEqual(outage.network.probingMost, 1);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("that nobody can ask is left to its clocks", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      const script = [...thinks, S.wait(290_000), S.text("a"), S.done];
      const seen = yield* Bench.play(outage.options([script], { path: "elsewhere" }), 600_000);
      assert.deepStrictEqual(seen.lines.slice(-3), ["a", "done", "completed"]);
      assert.strictEqual(outage.network.probes, 0);
    }).pipe(Effect.provide(Bench.processor())),
  );

  it.effect("whose reader is slow is not asked: nobody reads, and nothing can be heard", () =>
    Effect.gen(function* () {
      const outage = new Bench.Outage();
      yield* outage.reached;
      outage.network.fail();
      const network = new Bench.Outage();
      const options = {
        ...network.options([[S.start, S.text("a"), S.text("b"), S.done]]),
        path: { id: Bench.path, way: outage.network },
      };
      const seen = yield* Bench.play(options, 600_000, (event) =>
        event._tag === "Part" && event.part.name === "a" ? Effect.sleep(120_000) : Effect.void,
      );
      assert.strictEqual(seen.lines.at(-1), "completed");
      assert.strictEqual(outage.network.probes, 0);
    }).pipe(Effect.provide(Bench.processor())),
  );
});

/** A gap in our own time, by the clocks that show it. */
const gaps = {
  "by the wall clock only": { wall: 1, monotonic: 0 },
  "by both clocks": { wall: 1, monotonic: 1 },
  "of a loop that was blocked, by monotonic time alone": { wall: 0, monotonic: 1 },
};

describe("a sleep", () => {
  for (const [how, shows] of Object.entries(gaps)) {
    for (const [name, ms] of [
      ["30 s", 30_000],
      ["10 min", 600_000],
      ["8 h", 28_800_000],
    ] as const) {
      const { layer, skew } = skewed();
      const sleeps: S.Step = {
        run: Effect.sync(() => {
          skew.wall += ms * shows.wall;
          skew.monotonic += ms * shows.monotonic;
        }),
      };
      const world = Bench.processor().pipe(Layer.provide(layer));

      it.effect(`of ${name} ${how}: a living stream goes on, its path is asked at once and idle connections go`, () =>
        Effect.gen(function* () {
          const outage = new Bench.Outage();
          yield* outage.reached;
          outage.network.takes = 50;
          const script = [...thinks, S.wait(1_500), sleeps, S.wait(5_000), S.text("a"), S.done];
          const seen = yield* Bench.play(outage.options([script]), 600_000);
          assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(" | "));
          assert.strictEqual(outage.sent.length, 1);
          assert.strictEqual(outage.network.dropped, 1);
          assert.strictEqual(outage.network.probes, 1);
        }).pipe(Effect.provide(world)),
      );

      it.effect(
        `of ${name} ${how}: behind it a reset is made good, and the next request is on the wire within 20 s`,
        () =>
          Effect.gen(function* () {
            const outage = new Bench.Outage();
            yield* outage.reached;
            const script = [...thinks, S.wait(1_500), sleeps, S.reset];
            const seen = yield* Bench.play(outage.options([script, S.hello]), 600_000);
            assert.strictEqual(seen.lines.at(-1), "completed");
            assert.isAtMost(outage.sent[1] ?? Number.POSITIVE_INFINITY, 1_500 + 20_000);
          }).pipe(Effect.provide(world)),
      );

      it.effect(
        `of ${name} ${how}: a path that proves lost behind it ends its attempts at once, in the grace too`,
        () =>
          Effect.gen(function* () {
            const outage = new Bench.Outage();
            yield* outage.reached;
            const gone = { run: Effect.sync(() => outage.network.fail()) };
            const back = {
              run: Effect.forkDetach(
                Effect.delay(
                  Effect.sync(() => outage.network.mend()),
                  6_000,
                ),
              ),
            };
            const script = [...thinks, S.wait(1_500), gone, back, sleeps, S.never];
            const seen = yield* Bench.play(outage.options([script, S.hello]), 600_000);
            assert.strictEqual(seen.lines.at(-1), "completed");
            assert.strictEqual(seen.record.incidents[0]?.failure.code, "path_lost");
            assert.isAtMost(outage.sent[1] ?? Number.POSITIVE_INFINITY, 1_500 + 20_000);
          }).pipe(Effect.provide(world)),
      );

      it.effect(`of ${name} ${how}: a run that waits for its path has not waited meanwhile`, () =>
        Effect.gen(function* () {
          const outage = new Bench.Outage();
          const paths = yield* outage.reached;
          outage.network.fail();
          yield* paths.recordConnectFailure({ path: Bench.path, credential: "", model: undefined }, "ENETUNREACH");
          const fiber = yield* Effect.forkChild(Bench.play(outage.options([S.hello]), 600_000));
          yield* TestClock.adjust("10 seconds");
          yield* Effect.sync(() => {
            skew.wall += ms * shows.wall;
            skew.monotonic += ms * shows.monotonic;
          });
          yield* TestClock.adjust("30 seconds");
          outage.network.mend();
          yield* TestClock.adjust("10 seconds");
          const seen = yield* Fiber.join(fiber);
          assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(" | "));
          assert.isAtMost(seen.record.waited_ms ?? 0, 50_000);
        }).pipe(Effect.provide(world)),
      );
    }
  }
});
