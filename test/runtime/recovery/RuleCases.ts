/**
 * All cases of the decision table: the provider's and the caller's actions, and their result.
 */
import { limits } from "../contract/LimitCases.ts";
import { stops, tools } from "../tools/ToolCases.ts";
import type { RuleCase } from "./RuleBench.ts";
import { requests, texts } from "./TextCases.ts";

/** All cases with a single run; `throttled` needs a storm and is in the test itself. */
export const cases: ReadonlyArray<RuleCase> = [...stops, ...tools, ...texts, ...requests, ...limits];
