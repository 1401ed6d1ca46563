/**
 * Lets each fault happen to one of three nodes that has a run in each state, over a server of their own. `npm run nodes -- --kind agents
 * --rounds 10` does more of it, and `--fault` one of them.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { faults, strikesAll } from "../../../scripts/kill/NodeFaults.ts";
import { runs } from "../../../scripts/kill/nodes/NodePlan.ts";
import { play } from "../../../scripts/kill/nodes/NodePlaying.ts";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";

const cluster = Effect.acquireRelease(
  Effect.sync(() => {
    const programs = Cluster.programs();
    if (programs === undefined) throw new Error("the suite has found PostgreSQL before");
    return Cluster.make(programs);
  }),
  (it) => Effect.sync(() => it.remove()),
);

describe("Three nodes over one PostgreSQL", () => {
  it.live(
    "show no text twice, run no tool twice, lose no run, and decide what a dead one leaves within its lease and 5 s",
    () =>
      Effect.gen(function* () {
        const server = yield* cluster;
        const [alone, together] = [
          faults.filter((it) => strikesAll.has(it)),
          faults.filter((it) => !strikesAll.has(it)),
        ];
        const played = [
          ...(yield* Effect.forEach(together, (it) => play(it, server), { concurrency: 2 })),
          ...(yield* Effect.forEach(alone, (it) => play(it, server))),
        ];
        yield* Effect.forEach(played, ({ missed }) => Effect.forEach(missed, (one) => Effect.log(one)));
        assert.deepStrictEqual(
          played.flatMap(({ problems }) => problems),
          [],
        );
        assert.lengthOf(
          played.flatMap(({ remains }) => remains),
          faults.length * runs.length,
        );
      }).pipe(Effect.scoped),
  );
});
