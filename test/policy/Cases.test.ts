import { assert, describe, it } from "@effect/vitest";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { inputOf, spoken } from "./Case.ts";
import { endCases } from "./CasesEnd.ts";
import { toolCases } from "./CasesTools.ts";

describe("The default policy", () => {
  for (const one of [...endCases, ...toolCases]) {
    it(`${one.name}: ${one.is}`, () => {
      assert.strictEqual(spoken(RecoveryPolicy.decide(inputOf(one))), one.is);
    });
  }
});
