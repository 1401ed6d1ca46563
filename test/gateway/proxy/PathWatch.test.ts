/** Log lines about paths that go down, come back or cool down. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Logger, Metric } from "effect";
import { TestClock } from "effect/testing";
import * as PathWatch from "../../../src/gateway/proxy/PathWatch.ts";
import type { PathStatus } from "../../../src/paths/Paths.ts";
import { describeDown } from "../../../src/story/PathWords.ts";
import * as Cases from "../page/PathCases.ts";

/** A watch over paths that the test defines, and the lines that it has logged. */
const watching = <A, E>(
  play: (world: {
    readonly watch: PathWatch.PathWatch;
    readonly stand: (list: ReadonlyArray<PathStatus>) => void;
    readonly lines: () => ReadonlyArray<readonly [string, Record<string, unknown>]>;
    readonly looks: () => number;
  }) => Effect.Effect<A, E>,
) => {
  let list: ReadonlyArray<PathStatus> = [Cases.up];
  let looks = 0;
  const lines: Array<readonly [string, Record<string, unknown>]> = [];
  const log = Logger.layer([
    Logger.make(({ message }) => {
      const [text, fields] = Array.isArray(message) ? message : [message, {}];
      lines.push([String(text), fields]);
    }),
  ]);
  const seen = () => {
    looks += 1;
    return list;
  };
  return Effect.gen(function* () {
    const watch = yield* PathWatch.make;
    yield* TestClock.adjust(0);
    const stand = (next: ReadonlyArray<PathStatus>) => {
      list = next;
    };
    return yield* play({ watch, stand, lines: () => lines.splice(0), looks: () => looks });
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(Cases.standing(seen), log)));
};

const soon = TestClock.adjust(0);
const later = TestClock.adjust(PathWatch.watchMs);

describe("the watch over the paths", () => {
  it.effect(
    "logs an outage once when it begins and once when it is over, with its duration and the number of waiting runs",
    () =>
      watching(({ lines, stand, watch }) =>
        Effect.gen(function* () {
          stand([Cases.down]);
          watch.onWait(Cases.down.path, "run_a");
          watch.onWait(Cases.down.path, "run_b");
          yield* soon;
          const [[said, fields] = ["", {}], ...more] = lines();
          assert.include(said, `cannot be reached, and runs wait for it: ${describeDown("ECONNREFUSED")}`);
          assert.deepStrictEqual(fields, { path: Cases.down.path, code: "ECONNREFUSED" });
          assert.lengthOf(more, 0);
          watch.onWait(Cases.down.path, "run_c");
          watch.onWait(Cases.down.path, "run_a");
          yield* later;
          yield* later;
          assert.lengthOf(lines(), 0, "a probe is no news");
          stand([{ ...Cases.down, state: "returning", since: Cases.down.since + 20_000 }]);
          yield* later;
          assert.deepStrictEqual(lines(), [
            ["a provider can be reached again", { path: Cases.down.path, down_ms: 20_000, runs: 3 }],
          ]);
          stand([Cases.up]);
          yield* later;
          assert.lengthOf(lines(), 0);
        }),
      ),
  );

  it.effect("logs each announced delay once, with its scope and its end, and counts it by kind", () =>
    watching(({ lines, stand, watch }) =>
      Effect.gen(function* () {
        stand([Cases.cooling]);
        watch.look();
        yield* soon;
        const told = lines();
        assert.deepStrictEqual(
          told.map(([said]) => said),
          Array.from({ length: 2 }, () => "a provider announced a cooldown, and runs wait for its end"),
        );
        assert.deepStrictEqual(told[0]?.[1], {
          ...{ path: Cases.cooling.path, model: "gpt-5.6-mini", credential: "0123abcd", kind: "rate_limited" },
          until: new Date(Cases.cooling.cooldowns[0]?.until ?? 0).toISOString(),
        });
        const longer = Cases.cooling.cooldowns.map((it) => ({ ...it, until: it.until + 9_000 }));
        stand([{ ...Cases.cooling, cooldowns: longer }]);
        yield* later;
        assert.lengthOf(lines(), 0, "a wait that becomes longer is the same");
        stand([Cases.up]);
        yield* later;
        stand([Cases.cooling]);
        watch.look();
        yield* soon;
        assert.lengthOf(lines(), 2);
        const counted = yield* Metric.value(Metric.withAttributes(PathWatch.cooldowns, { kind: "overloaded" }));
        assert.strictEqual(counted.count, 2);
      }),
    ).pipe(Effect.provideService(Metric.MetricRegistry, new Map())),
  );

  it.effect("looks at nothing while all is well, and once a second otherwise", () =>
    watching(({ looks, stand, watch }) =>
      Effect.gen(function* () {
        const before = looks();
        yield* TestClock.adjust("1 hour");
        assert.strictEqual(looks(), before);
        stand([Cases.down]);
        watch.look();
        yield* soon;
        const asked = looks();
        for (let second = 0; second < 10; second += 1) yield* later;
        assert.strictEqual(looks(), asked + 10);
        stand([Cases.up]);
        yield* later;
        const well = looks();
        yield* TestClock.adjust("1 hour");
        assert.strictEqual(looks(), well);
      }),
    ),
  );
});
