/** Plays whole runs with injected faults, one per seed, and judges the numbered invariants of judge/Invariants.ts. */
import { assert, describe, expect, it } from "@effect/vitest";
import { baseSeed, playSeed, playSeeds } from "./Campaign.ts";
import { playStories } from "./crash/Campaign.ts";
import { generate } from "./Generator.ts";
import { simulate } from "./Simulation.ts";

/** Runs of this test. Campaign.test.ts plays the seeds after them, and `node scripts/simulate.ts` plays more. */
const runs = 100;

/** Runs in which nothing fails after a random moment; `npm run simulate -- --liveness` plays more. */
const calmRuns = 30;

/** Stories of several processes; crash/Crash.test.ts plays and judges more. */
const stories = 20;

/** Set `STREAM_RECOVERY_SEED` to the seed of a failure to play that one first. */
const seed = Number(process.env.STREAM_RECOVERY_SEED ?? baseSeed);

/**
 * Compares the runs with the recorded ones, event for event, in what they write, show, log, measure and when. If a change is intended,
 * `vitest -u` records it: the lines that changed name the seeds of the runs to look at.
 */
const expectRecorded = async (digests: ReadonlyArray<string>, name: string): Promise<void> => {
  if (seed === baseSeed)
    await expect(`${digests.join("\n")}\n`).toMatchFileSnapshot(`../fixtures/simulation/${name}.txt`);
};

describe("simulated runs keep the laws: record, then act (L8), one end (L7), no false success (L5)", () => {
  it(`keep every invariant over ${runs} seeds from ${seed}`, { timeout: 120_000 }, async () => {
    const summary = await playSeeds(runs, seed);
    // A simulation without retries and moves proves nothing.
    assert.isAbove(summary.attempts, runs * 1.3);
    assert.isAbove(summary.moved, runs / 50);
    assert.isAbove(summary.ends.get("completed") ?? 0, runs / 10);
    assert.isAbove(summary.ends.get("stopped") ?? 0, runs / 10);
    await expectRecorded(summary.digests, "runs");
  });

  it("show nothing twice if they are cancelled while a hand-over is recorded (L6)", async () => {
    const each = 20_266_316;
    assert.deepStrictEqual((await playSeed(each)).violations, [], `seed ${each}`);
  });

  it(`end, or ask, within a bound after the last failure (liveness): ${calmRuns} seeds from ${seed}`, {
    timeout: 120_000,
  }, async () => {
    const summary = await playSeeds(calmRuns, seed, "liveness");
    assert.isAbove(summary.ends.get("completed") ?? 0, calmRuns / 4);
    await expectRecorded(summary.digests, "calm");
  });

  it(`live through the deaths of their processes as recorded, over ${stories} seeds from ${seed}`, async () => {
    await expectRecorded((await playStories(stories, seed)).digests, "stories");
  });

  it("play the same way for the same seed", async () => {
    for (const again of [seed, seed + 1, seed + 7]) {
      const told = async () => JSON.stringify((await simulate(generate(again))).journal);
      assert.strictEqual(await told(), await told(), `seed ${again}`);
    }
  });
});
