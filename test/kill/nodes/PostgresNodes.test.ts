/**
 * Lets something happen to one of three nodes that has a run in each state, over a server of their own. `npm run nodes -- --kind agents
 * --rounds 10` does more of it, and kills one whose clock is right too.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { Fault } from "../../../scripts/kill/nodes/NodePlan.ts";
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

/** Two at a time; a server that is started again is so for all. */
const together: ReadonlyArray<Fault> = ["stopped", "cut off", "reset", "clock ahead", "clock ahead, kill -9"];
const alone: ReadonlyArray<Fault> = ["restarted"];

describe("Three nodes over one PostgreSQL", () => {
  it.live(
    "show no text twice, run no tool twice, lose no run, and decide what a dead one leaves within its lease and 5 s",
    () =>
      Effect.gen(function* () {
        const server = yield* cluster;
        const first = yield* Effect.forEach(together, (it) => play(it, server), { concurrency: 2 });
        const rest = yield* Effect.forEach(alone, (it) => play(it, server));
        const played = [...first, ...rest];
        assert.deepStrictEqual(
          played.flatMap(({ problems }) => problems),
          [],
        );
        assert.lengthOf(
          played.flatMap(({ remains }) => remains),
          36,
        );
      }).pipe(Effect.scoped),
    300_000,
  );
});
