/** The stories of Crash.test.ts over the seeds behind those that it plays. */
import { assert, describe, it } from "@effect/vitest";
import { playStories } from "./Campaign.ts";

/** Stories of this test. */
const runs = Number(process.env.STREAM_RECOVERY_CRASHES ?? 500);

const seed = 20_261_222;

describe("a campaign of runs that live in several processes (L6, L7, L8, L9)", () => {
  it(`keeps every invariant over ${runs} seeds from ${seed}`, { timeout: 120_000 }, async () => {
    const { completed, deaths, resumes } = await playStories(runs, seed);
    assert.isAbove(deaths, runs / 2);
    assert.isAbove(resumes, runs / 2);
    assert.isAbove(completed, runs / 8);
  });
});
