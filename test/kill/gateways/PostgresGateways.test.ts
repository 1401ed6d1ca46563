/**
 * Lets something happen to gateways that have a client's stream in each state, over a server of their own. `npm run nodes -- --kind
 * gateways` plays all faults; here is a part of them, so that it takes less than a minute on a busy machine.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { GatewayFault } from "../../../scripts/kill/gateways/GatewayPlan.ts";
import { play } from "../../../scripts/kill/gateways/GatewayPlaying.ts";
import { streamStates } from "../../../scripts/kill/streams/StreamStates.ts";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";

const cluster = Effect.acquireRelease(
  Effect.sync(() => {
    const programs = Cluster.programs();
    if (programs === undefined) throw new Error("the suite has found PostgreSQL before");
    return Cluster.make(programs);
  }),
  (it) => Effect.sync(() => it.remove()),
);

const faults: ReadonlyArray<GatewayFault> = ["stopped", "cut off", "reset", "clock ahead, kill -9", "restarted"];

describe("Gateways over one PostgreSQL", () => {
  it.live(
    "show no text twice, hand no call over twice, lose no stream, and decide what is left within a lease and 5 s",
    () =>
      Effect.gen(function* () {
        const { problems, remains } = yield* play(faults, yield* cluster);
        assert.deepStrictEqual(problems, []);
        assert.lengthOf(remains, faults.length * streamStates.length);
      }).pipe(Effect.scoped),
    300_000,
  );
});
