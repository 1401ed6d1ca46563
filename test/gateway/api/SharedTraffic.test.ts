import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Fiber, Layer, Stream } from "effect";
import { TestClock } from "effect/testing";
import { merged } from "../../../src/gateway/api/PathBoard.ts";
import * as SharedTraffic from "../../../src/gateway/api/SharedTraffic.ts";
import { type RunChange, Traffic } from "../../../src/gateway/api/Traffic.ts";
import { TrafficMeter } from "../../../src/gateway/proxy/TrafficMeter.ts";
import { WorkerBus } from "../../../src/gateway/workers/WorkerBus.ts";
import type { PathStatus } from "../../../src/paths/Paths.ts";
import { members } from "../workers/Members.ts";

const workers = Effect.fnUntraced(function* (count: number) {
  const { ends } = yield* members(count);
  return yield* Effect.forEach(ends, ({ bus }) =>
    Effect.map(
      Effect.provideService(Layer.build(SharedTraffic.layer(TrafficMeter.layer)), WorkerBus, bus),
      (services) => ({ meter: Context.get(services, TrafficMeter), traffic: Context.get(services, Traffic) }),
    ),
  );
});

describe("the traffic of several workers", () => {
  it.effect("is told by each of them as that of one", () =>
    Effect.gen(function* () {
      const [first, second] = yield* workers(2);
      if (first === undefined || second === undefined) return assert.fail();
      first.meter.opened("run_a");
      second.meter.opened("run_b");
      second.meter.count("relayed");
      first.meter.count("relayed");
      second.meter.admitted("team");
      for (const { traffic } of [first, second]) {
        const status = yield* traffic.status;
        assert.deepStrictEqual(status.live.toSorted(), ["run_a", "run_b"]);
        assert.deepStrictEqual([status.requests.relayed, status.tokens], [2, { team: 1 }]);
      }
      assert.deepStrictEqual((yield* first.traffic.own ?? first.traffic.status).live, ["run_a"]);
    }),
  );

  it.effect("tells a reader of changes in any worker, and nobody where nobody reads", () =>
    Effect.gen(function* () {
      const [first, second] = yield* workers(2);
      if (first === undefined || second === undefined) return assert.fail();
      const heard: Array<RunChange> = [];
      const bell = yield* Deferred.make<void>();
      const reader = yield* Effect.forkChild(
        Stream.runForEach(first.traffic.changes, (change) => {
          heard.push(change);
          return heard.length === 2 ? Deferred.succeed(bell, undefined) : Effect.void;
        }),
        { startImmediately: true },
      );
      yield* TestClock.adjust(10);
      second.meter.opened("run_b");
      first.meter.opened("run_a");
      yield* Deferred.await(bell);
      assert.deepStrictEqual(heard.map(({ run_id }) => run_id).toSorted(), ["run_a", "run_b"]);
      yield* Fiber.interrupt(reader);
      yield* TestClock.adjust(60_000);
      second.meter.opened("run_c");
      yield* TestClock.adjust(10);
      assert.lengthOf(heard, 2);
    }),
  );
});

describe("the paths of several workers", () => {
  const up: PathStatus = { path: "p", state: "up", since: 5, reached: true, probes: 0, waiting: 0, cooldowns: [] };

  it("stand as the worker says that sees them worst, with the waits of all", () => {
    const down: PathStatus = {
      ...up,
      state: "down",
      since: 9,
      reached: false,
      probes: 3,
      waiting: 2,
      code: "ECONNREFUSED",
    };
    const rows = merged([[{ ...up, waiting: 1 }], [down, { ...up, path: "q" }]]);
    assert.deepStrictEqual(rows, [
      { ...down, reached: true, waiting: 3 },
      { ...up, path: "q" },
    ]);
  });

  it("have one cooldown a scope, the one that lasts longest", () => {
    const cooling = (until: number, model = "m"): PathStatus => ({
      ...up,
      cooldowns: [{ kind: "rate_limited", model, until }],
    });
    const [row] = merged([[cooling(7)], [cooling(9)], [cooling(8, "n")]]);
    assert.deepStrictEqual(
      row?.cooldowns.map(({ model, until }) => [model, until]),
      [
        ["m", 9],
        ["n", 8],
      ],
    );
  });
});
