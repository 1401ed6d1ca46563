/** Totality.test.ts over many more errors. */
import { assert, describe, it } from "@effect/vitest";
import { classifyJunk, seed } from "./Junk.ts";

describe(`a campaign of junk (seed ${seed + 1})`, () => {
  it("gives each error a failure of the schema, twice the same", { timeout: 120_000 }, () => {
    assert.isAbove(classifyJunk(10_000, seed + 1).size, 5);
  });
});
