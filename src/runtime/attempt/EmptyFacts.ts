/** Creates the facts of an attempt that has not begun. */
import { type SideEffects, snapshot, type ToolBoundary } from "../../domain/SideEffects.ts";
import * as Facts from "../../facts/Facts.ts";
import type { AttemptContext } from "../contract/RunOptions.ts";

/**
 * Returns the facts of an attempt before its start.
 *
 * @param run the run of the attempt
 * @param tools exactly the tools that the request exposes
 */
export const emptyFacts = (
  { discardable, sideEffects }: { readonly discardable: boolean; readonly sideEffects: SideEffects },
  tools: ReadonlyArray<ToolBoundary>,
  request: AttemptContext["request"],
): Facts.FactsFold =>
  Facts.make({
    // A resumed response exposes no further tools, because the attempt that it resumes has already counted them.
    sideEffects: request !== "resume" ? sideEffects : { ...snapshot([], false), guarded: sideEffects.guarded },
    discardable,
    boundaries: tools,
    guarded: sideEffects.guarded,
  });
