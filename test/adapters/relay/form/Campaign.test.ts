/** JsonScan.test.ts and the outlines of BodyOutline.test.ts over many more texts. */
import { assert, describe, it } from "@effect/vitest";
import { campaign } from "../../../Campaigns.ts";
import { compareOutlines } from "../../../gateway/body/OutlineCases.ts";
import { compare } from "./JsonScanCases.ts";

const from = 100_000;
const texts = campaign(40_000);

describe("a campaign of texts that are JSON, or nearly", () => {
  it(`${texts} of the seeds from ${from} on are taken and refused as JSON.parse does`, { timeout: 900_000 }, () => {
    const told = compare(from, from + texts);
    console.log(`seeds ${from} to ${from + texts - 1}: ${told.json} are JSON, ${told.others} are not`);
    assert.isAbove(told.json, texts / 4);
    assert.isAbove(told.others, texts / 4);
  });

  it("and their outlines are those of the whole values", { timeout: 900_000 }, () => {
    assert.isAbove(compareOutlines(from, from + texts / 3), texts / 12);
  });
});
