/** Simulation.test.ts over more breaks, with the bars on what is whole, refused and paid again. `npm run release-check` plays 10,000. */
import { assert, describe, it } from "@effect/vitest";
import { baseSeed, playBreaks } from "./model/Campaign.ts";
import { barsOf, tableOf } from "./model/Table.ts";

const breaks = 2_500;
const seed = baseSeed + 1_000;

describe("a campaign of seams", () => {
  it(`${breaks} breaks from seed ${seed}: the bars hold`, () => {
    const report = playBreaks(breaks, seed);
    const bars = barsOf(report);
    const told = tableOf(report);
    console.log(told);
    assert.deepStrictEqual([bars.twice, bars.missing, bars.tooLate], [0, 0, 0], told);
    assert.isAtLeast(bars.whole / (bars.honest - bars.onPurpose), 0.995, told);
    // what is refused says again what was shown, and nothing else is
    assert.strictEqual(bars.honest - bars.whole, bars.repeats, told);
    assert.isAtMost(bars.extraMedian, 100, told);
    assert.isAtMost(bars.extraMost, 200, told);
    assert.isAtMost(bars.extraMax, 800, told);
  });
});
