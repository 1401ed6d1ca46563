/**
 * Kills real processes in the middle of real runs. `npm run kill -- --runs 1000 --seed N` does more of it.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { play } from "../../scripts/kill/Killing.ts";
import { draw } from "../../scripts/kill/Plan.ts";

const seed = Number(process.env.KILL_SEED ?? 20_261_122);
const batches = 4;
const batchRuns = 10;

describe("kill -9 in the middle of real runs, whose tool appends to a file", () => {
  it.live(`loses no incident, runs no tool twice, damages no file: ${batches * batchRuns} runs from seed ${seed}`, () =>
    Effect.gen(function* () {
      let hit = 0;
      for (let index = 0; index < batches; index++) {
        const outcome = yield* Effect.scoped(play(draw(seed + index, batchRuns)));
        hit += outcome.hit;
        assert.deepStrictEqual(outcome.problems, [], `KILL_SEED=${seed + index}`);
      }
      // A kill that meets no run proves nothing.
      assert.isAbove(hit, batches);
    }),
  );
});
