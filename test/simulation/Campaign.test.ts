/** The simulation of Simulation.test.ts over the seeds behind those that it plays. */
import { assert, describe, it } from "@effect/vitest";
import { baseSeed, playSeeds } from "./Campaign.ts";

const runs = 1_200;
const calmRuns = 320;
const seed = baseSeed + 300;

describe("a campaign of simulated runs", () => {
  it(`keeps every invariant over ${runs} seeds from ${seed}, and reaches the rules`, { timeout: 120_000 }, async () => {
    const summary = await playSeeds(runs, seed);
    assert.isAbove(summary.attempts, runs * 1.3);
    for (const rule of ["nothing_shown", "text_shown", "tool_calls_fenced", "tools_settled", "user_cancelled"]) {
      assert.isAbove(summary.rules.get(rule) ?? 0, 0, `rule ${rule} was never reached`);
    }
  });

  it(`ends, or asks, once nothing fails any more, over ${calmRuns} seeds from ${seed}`, {
    timeout: 120_000,
  }, async () => {
    const summary = await playSeeds(calmRuns, seed, "liveness");
    assert.isAbove(summary.ends.get("completed") ?? 0, calmRuns / 4);
  });
});
