/** Continues Totality.test.ts with many more errors. */
import { assert, describe, it } from "@effect/vitest";
import { campaign } from "../Campaigns.ts";
import { classifyJunk, seed } from "./Junk.ts";

describe(`a campaign of junk (seed ${seed + 1})`, () => {
  it("gives each error a failure that fits the schema, and the same one twice", { timeout: 120_000 }, () => {
    assert.isAbove(classifyJunk(campaign(5_000), seed + 1).size, 5);
  });
});
