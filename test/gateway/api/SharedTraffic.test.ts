import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import { mergePaths } from "../../../src/gateway/api/PathBoard.ts";
import * as SharedTraffic from "../../../src/gateway/api/SharedTraffic.ts";
import { Traffic } from "../../../src/gateway/api/Traffic.ts";
import { TrafficMeter } from "../../../src/gateway/proxy/TrafficMeter.ts";
import { WorkerSockets } from "../../../src/gateway/workers/WorkerSockets.ts";
import type { PathStatus } from "../../../src/paths/Paths.ts";
import { members } from "../workers/Members.ts";

const workers = Effect.fnUntraced(function* (count: number) {
  return yield* Effect.forEach(yield* members(count), (sockets) =>
    Effect.map(
      Effect.provideService(Layer.build(SharedTraffic.layer(TrafficMeter.layer)), WorkerSockets, sockets),
      (services) => ({ meter: Context.get(services, TrafficMeter), traffic: Context.get(services, Traffic) }),
    ),
  );
});

describe("the traffic of several workers", () => {
  it.live("is reported by each of them as that of one gateway", () =>
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
    }).pipe(Effect.scoped),
  );
});

describe("the paths of several workers", () => {
  const up: PathStatus = { path: "p", state: "up", since: 5, reached: true, probes: 0, waiting: 0, cooldowns: [] };

  it("have the state seen by the worker that sees them worst, with the waits of all", () => {
    const down: PathStatus = {
      ...up,
      state: "down",
      since: 9,
      reached: false,
      probes: 3,
      waiting: 2,
      code: "ECONNREFUSED",
    };
    const rows = mergePaths([[{ ...up, waiting: 1 }], [down, { ...up, path: "q" }]]);
    assert.deepStrictEqual(rows, [
      { ...down, reached: true, waiting: 3 },
      { ...up, path: "q" },
    ]);
  });

  it("have one cooldown per scope, the longest one", () => {
    const cooling = (until: number, model = "m"): PathStatus => ({
      ...up,
      cooldowns: [{ kind: "rate_limited", model, until }],
    });
    const [row] = mergePaths([[cooling(7)], [cooling(9)], [cooling(8, "n")]]);
    assert.deepStrictEqual(
      row?.cooldowns.map(({ model, until }) => [model, until]),
      [
        ["m", 9],
        ["n", 8],
      ],
    );
  });
});
