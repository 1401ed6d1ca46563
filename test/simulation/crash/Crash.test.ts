/** Kills, leaves and resumes made-up runs, one a seed, and judges what their user and their tools saw. */
import { assert, describe, it } from "@effect/vitest";
import { playStory, told } from "./Campaign.ts";

/** Stories of this test. */
const runs = Number(process.env.STREAM_RECOVERY_CRASHES ?? 600);

/** Set it to the seed of a failure to play that one first. */
const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_122);

/**
 * Stories that once went wrong: an incident that a full disk had lost, a resume that said "completed" of half an answer, one
 * that withdrew what its caller could not discard, and a retry behind the cursor of the response before.
 */
const regressions = [20_261_188, 135, 6_938, 7_306, 7, 56, 840] as const;

describe("a run that lives in several processes (L6, L7, L8, L9)", () => {
  it("holds where it once did not", async () => {
    for (const each of regressions) assert.deepStrictEqual((await playStory(each)).problems, [], `seed ${each}`);
  });

  it(`keeps every invariant over ${runs} seeds from ${seed}`, { timeout: 120_000 }, async () => {
    let [deaths, completed, resumes] = [0, 0, 0];
    const broken: Array<string> = [];
    for (let each = seed; each < seed + runs; each += 1) {
      const judged = await playStory(each);
      if (judged.problems.length > 0) broken.push(told(judged));
      deaths += judged.deaths;
      resumes += judged.resumes;
      if (judged.completed) completed += 1;
    }
    assert.strictEqual(broken.length, 0, `${broken.length} of ${runs} seeds; the first:\n${broken[0]}`);
    // A simulation in which nobody dies proves nothing.
    assert.isAbove(deaths, runs / 2);
    assert.isAbove(resumes, runs / 2);
    assert.isAbove(completed, runs / 8);
  });
});
