/**
 * Makes the facts of an attempt that has not begun.
 */
import { type SideEffects, snapshot, type ToolBoundary } from "../../domain/SideEffects.ts";
import * as Facts from "../../facts/Facts.ts";
import type { AttemptContext } from "../contract/RunOptions.ts";

/**
 * The facts of an attempt before it begins.
 *
 * @param run whose attempt it is
 * @param tools exactly those that its request exposes
 */
export const emptyFacts = (
  { discardable, sideEffects }: { readonly discardable: boolean; readonly sideEffects: SideEffects },
  tools: ReadonlyArray<ToolBoundary>,
  request: AttemptContext["request"],
): Facts.FactsFold =>
  Facts.make({
    // A resumed response exposes nothing anew: its calls were counted by the attempt that it resumes.
    sideEffects: request !== "resume" ? sideEffects : { ...snapshot([], false), guarded: sideEffects.guarded },
    discardable,
    boundaries: tools,
    guarded: sideEffects.guarded,
  });
