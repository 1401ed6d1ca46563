/** Continues Simulation.test.ts with the seeds that follow. */
import { assert, describe, it } from "@effect/vitest";
import { campaign } from "../Campaigns.ts";
import { baseSeed, playSeeds } from "./Campaign.ts";

const runs = campaign(600);
const calmRuns = campaign(160);
const seed = baseSeed + 100;

describe("a campaign of simulated runs", () => {
  it(`keeps every invariant over ${runs} seeds from ${seed}, and reaches the important rules`, {
    timeout: 120_000,
  }, async () => {
    const summary = await playSeeds(runs, seed);
    assert.isAbove(summary.attempts, runs * 1.3);
    for (const rule of ["nothing_shown", "text_shown", "tool_calls_fenced", "tools_settled", "user_cancelled"]) {
      assert.isAbove(summary.rules.get(rule) ?? 0, 0, `rule ${rule} was never reached`);
    }
  });

  it(`ends or asks after the last failure, over ${calmRuns} seeds from ${seed}`, {
    timeout: 120_000,
  }, async () => {
    const summary = await playSeeds(calmRuns, seed, "liveness");
    assert.isAbove(summary.ends.get("completed") ?? 0, calmRuns / 4);
  });
});
