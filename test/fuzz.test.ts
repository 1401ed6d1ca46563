/** Repeats the inputs that the fuzzer found or kept. `npm run fuzz` looks for more. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { corpusFolder, inputBytesMax, inputsMax } from "../scripts/fuzz/Fuzzing.ts";
import { targets } from "../scripts/fuzz/Targets.ts";

/** Inputs that once failed stay beside the corpus of their target. */
const findsMax = 32;

describe("Readers of foreign bytes", () => {
  it("have a corpus each, and no other folder exists", () => {
    assert.deepStrictEqual(readdirSync(corpusFolder).toSorted(), Object.keys(targets).toSorted());
  });

  for (const [name, target] of Object.entries(targets))
    it(`${name}: keeps its property for every input of the corpus`, () => {
      const files = readdirSync(join(corpusFolder, name));
      assert.isAtLeast(files.length, 3);
      assert.isAtMost(files.length, inputsMax + findsMax);
      for (const file of files) {
        const input = readFileSync(join(corpusFolder, name, file));
        assert.isAtMost(input.length, inputBytesMax);
        try {
          target(input);
        } catch (error) {
          throw new Error(`test/fixtures/fuzz/${name}/${file}`, { cause: error });
        }
      }
    });
});
