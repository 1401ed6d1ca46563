/**
 * Law L2 over the products of an attempt's facts, with a share of the settings of a run's flags for each suite.
 */
import { describe, it } from "@effect/vitest";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { noGrowth, type Suite, share } from "./Growth.ts";
import { deep, deepEnded, distinct, flags, recoverable, span, wide } from "./Product.ts";

/** Every value of every chain, with one call. */
export const wideSpan = span(wide);
/** Ledgers of up to two rows. */
export const deepSpan = span(deep);
const deepEndedSpan = span(deepEnded);

/** Checks the law with the settings of one suite. */
export const permissionShrinks = (suite: Suite): void => {
  describe(`L2 permission shrinks, under the settings of the ${suite} suite`, () => {
    const settings = share(flags, suite);

    it("over every value of every chain with one call, every failure and every setting", () => {
      noGrowth(RecoveryPolicy.default, wideSpan, distinct, settings);
    });

    it("over ledgers of up to two rows and their folds, and every setting", () => {
      noGrowth(RecoveryPolicy.default, deepSpan, recoverable, settings);
      noGrowth(RecoveryPolicy.default, deepEndedSpan, [{ kind: "invalid_tool_input" }], settings);
    });
  });
};
