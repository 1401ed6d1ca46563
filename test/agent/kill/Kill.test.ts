/**
 * Kills agents in the middle of their work. `node scripts/agent-kill.ts --runs 200 --seed N` does more of it.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { draw } from "./Plan.ts";
import { play } from "./Play.ts";

const seed = Number(process.env.AGENT_KILL_SEED ?? 20_261_122);
const batches = 2;
const chats = 8;
const kills = 4;

describe("kill -9 in the middle of an agent's work", () => {
  it.live(`each tool effect once or a question, no dangling call, nothing withdrawn in a history: seed ${seed}`, () =>
    Effect.gen(function* () {
      let hit = 0;
      for (let index = 0; index < batches; index += 1) {
        const outcome = yield* Effect.scoped(play(draw(seed + index, chats, kills)));
        hit += outcome.hit;
        assert.deepStrictEqual(outcome.problems, [], `AGENT_KILL_SEED=${seed + index}`);
      }
      // Chats that were killed in the middle: a kill that meets none proves nothing.
      assert.isAtLeast(hit, 30);
    }),
  );
});
