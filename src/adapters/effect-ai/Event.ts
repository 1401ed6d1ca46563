/**
 * Describes what a caller of `EffectAi.run` sees.
 */
import type { Response } from "effect/ai";
import type { RunEvent } from "../../runtime/contract/RunEvent.ts";

/** A call of the step has its result, or a preliminary one. */
export interface ToolSettled {
  readonly _tag: "ToolSettled";
  readonly attempt: number;
  readonly part: Extract<Response.AnyPart, { readonly type: "tool-result" }>;
}

/** The run's events by the grammar of RunEvent.ts, with the results of its calls before `RunCompleted`. */
export type AgentEvent = RunEvent<Response.AnyPart> | ToolSettled;
