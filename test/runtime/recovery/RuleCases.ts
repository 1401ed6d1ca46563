/**
 * Gathers the cases of the decision table: what the provider does, what the caller does, and what comes of it.
 */
import { limits } from "../contract/LimitCases.ts";
import { stops, tools } from "../tools/ToolCases.ts";
import type { RuleCase } from "./RuleBench.ts";
import { requests, texts } from "./TextCases.ts";

/** All cases that one run alone can play; `throttled` needs a storm and stands in the test itself. */
export const cases: ReadonlyArray<RuleCase> = [...stops, ...tools, ...texts, ...requests, ...limits];
