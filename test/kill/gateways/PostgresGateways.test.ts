/**
 * Lets each fault happen to a gateway that has a client's stream in each state, over a server of their own. `npm run nodes -- --kind
 * gateways --rounds 10` does more of it, and `--fault` one of them.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { play } from "../../../scripts/kill/gateways/GatewayPlaying.ts";
import { faults } from "../../../scripts/kill/NodeFaults.ts";
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

describe("Gateways over one PostgreSQL", () => {
  it.live(
    "show no text twice, hand no call over twice, lose no stream, and decide what is left within a lease and 5 s",
    () =>
      Effect.gen(function* () {
        const { missed, problems, remains } = yield* play(faults, yield* cluster);
        yield* Effect.forEach(missed, (one) => Effect.log(one));
        assert.deepStrictEqual(problems, []);
        assert.lengthOf(remains, faults.length * streamStates.length);
      }).pipe(Effect.scoped),
  );
});
