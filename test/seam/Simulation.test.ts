/**
 * Goes on with texts that break at any character, in every honest way and in the ways of models that do not do as they are asked.
 * The long suite plays 2,500 breaks (Campaign.test.ts), and `npm run seam` as many as one likes.
 */
import { assert, describe, it } from "@effect/vitest";
import { baseSeed, playBreaks } from "./model/Campaign.ts";
import { clumsy, clumsyPrefill } from "./model/Clumsy.ts";
import { honest, honestPrefill } from "./model/Honest.ts";
import { barsOf, tableOf } from "./model/Table.ts";

const breaks = 250;

describe("texts that break at any character", () => {
  it(`${breaks} breaks from seed ${baseSeed}: no character twice or missing, and nothing joined that is not proven`, {
    timeout: 120_000,
  }, () => {
    const report = playBreaks(breaks, baseSeed);
    const { missing, tooLate, twice } = barsOf(report);
    assert.deepStrictEqual(
      { twice, missing, tooLate, lost: report.lost.length },
      { twice: 0, missing: 0, tooLate: 0, lost: 0 },
      tableOf(report),
    );
    // each way was played: a way that no text allows would prove nothing
    assert.strictEqual(
      report.rows.size,
      [honest, clumsy, honestPrefill, clumsyPrefill].flatMap((ways) => Object.keys(ways)).length + 2,
    );
  });

  it("the clumsy ways are at least as many as the issue asks for", () => {
    assert.isAtLeast(Object.keys(clumsy).length, 25);
  });

  it("a campaign plays the same way again by its seed", () => {
    const [one, other] = [playBreaks(20, 7), playBreaks(20, 7)];
    assert.deepStrictEqual(tableOf(one), tableOf(other));
  });
});
