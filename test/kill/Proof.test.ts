/**
 * A play in which nothing happened proves nothing.
 */
import { assert, describe, it } from "@effect/vitest";
import { missing } from "../../scripts/kill/Proof.ts";

describe("The proof of a play", () => {
  it("is missing if nothing was played, or nothing happened to what was", () => {
    assert.deepStrictEqual(missing({ runs: 0, hit: 0 }), ["no run was played"]);
    assert.deepStrictEqual(missing({ runs: 10, hit: 0 }), ["10 runs were played, and no fault hit any of them"]);
    assert.deepStrictEqual(missing({ runs: 10, hit: 1 }), []);
  });
});
