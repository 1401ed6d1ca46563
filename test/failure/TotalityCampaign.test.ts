/** Continues Totality.test.ts with many more errors. */
import { assert, describe, it } from "@effect/vitest";
import { campaign } from "../Campaigns.ts";
import { classifyJunk, seed } from "./Junk.ts";

describe(`a campaign of junk (seed ${seed + 1})`, () => {
  it("classifies each error as a valid failure, and always as the same one", { timeout: 120_000 }, () => {
    assert.isAbove(classifyJunk(campaign(5_000), seed + 1).size, 5);
  });
});
