/**
 * Simulates the model of ownership, and the controls that lack one guard each. A night of it: `npm run model -- --samples 1000000`.
 */
import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { controls, drawTraces, replayed, simulate, whole } from "../scripts/model/Model.ts";

const file = new URL("fixtures/model/ownership.json", import.meta.url);

describe("The model of ownership", () => {
  it("violates no invariant in 200 runs", () => {
    const { holds, seed, text } = simulate(whole, { samples: 200 });
    assert.isTrue(holds, `npm run model -- --seed ${seed}\n${text}`);
  });

  for (const [control, seed] of Object.entries(controls))
    it(`violates an invariant ${control.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`, () => {
      assert.isFalse(simulate(control, { samples: 1, seed }).holds);
    });

  it("is the one whose traces the tests replay against the stores", () => {
    assert.deepStrictEqual(JSON.parse(readFileSync(file, "utf8")), drawTraces(replayed.count, replayed.seed));
  });
});
