/**
 * Lets something happen to gateways with workers whose clients have streams in each state. `npm run kill -- --workers --runs 20
 * --seed N` does more of it.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { draw, type WorkersFault } from "../../../scripts/kill/workers/WorkersPlan.ts";
import { play } from "../../../scripts/kill/workers/WorkersPlaying.ts";

const seed = Number(process.env.KILL_SEED ?? 20_261_127);

/** One after the other at a gateway: what is left of the first is there when the second happens. */
const gateways: ReadonlyArray<readonly [WorkersFault, WorkersFault]> = [
  ["workers killed in turn", "supervisor killed"],
  ["worker stopped", "supervisor killed, then a worker"],
];

describe("Workers of a gateway, or their supervisor, are killed and stopped", () => {
  it.live(
    `no text comes twice, no stream is lost, siblings notice nothing, an answer is acted on once: from seed ${seed}`,
    () =>
      Effect.gen(function* () {
        const played = yield* Effect.forEach(
          gateways,
          (faults, at) => play(draw({ seed: seed + at, rounds: faults.length, faults })),
          { concurrency: 2 },
        );
        assert.deepStrictEqual(
          played.flatMap(({ problems }) => problems),
          [],
          `KILL_SEED=${seed}`,
        );
        for (const { remains } of played) {
          // What meets no stream and no question proves nothing.
          assert.isAbove(remains.filter(({ tries }) => tries[0]?.outcome === "broken").length, 0);
          assert.isAbove(remains.filter(({ answers }) => answers.length > 0).length, 0);
        }
      }),
  );
});
