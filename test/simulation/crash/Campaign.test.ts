/** Continues Crash.test.ts with the seeds that follow. */
import { assert, describe, it } from "@effect/vitest";
import { campaign } from "../../Campaigns.ts";
import { playStories } from "./Campaign.ts";

const runs = campaign(250);

const seed = 20_261_162;

describe("a campaign of runs that live in several processes (L6, L7, L8, L9)", () => {
  it(`keeps every invariant over ${runs} seeds from ${seed}`, { timeout: 120_000 }, async () => {
    const { completed, deaths, resumes } = await playStories(runs, seed);
    assert.isAbove(deaths, runs / 2);
    assert.isAbove(resumes, runs / 2);
    assert.isAbove(completed, runs / 8);
  });
});
