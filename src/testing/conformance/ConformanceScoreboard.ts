/**
 * Holds the results of the conformance kit as data: one cell for each fault and protocol, and the totals.
 */
import { Schema } from "effect";
import { protocols } from "../../provider/Protocols.ts";
import { ConformanceFaultId } from "./ConformanceFault.ts";

/**
 * The result of a turn. `R` recovered, or succeeded if nothing broke · `D` the user sees text twice · `T` silent truncation or a lost call,
 * reported as success · `E` an error that the user sees · `M` the broken call was passed to the model as a failed call · `X` a tool ran
 * twice · `XT` a tool ran with arguments that the model never finished · `H` the turn did not end within the kit's time limit.
 */
export const ConformanceLetter = Schema.Literals(["R", "D", "T", "E", "M", "X", "XT", "H"]);
export type ConformanceLetter = typeof ConformanceLetter.Type;

/** One turn against one fault in one protocol. */
export const ConformanceCell = Schema.Struct({
  fault: ConformanceFaultId,
  protocol: Schema.Literals(protocols.ids),
  letter: ConformanceLetter,
  /** Requests that reached the provider and are billed. */
  requests: Schema.Natural,
  ended: Schema.Literals(["ok", "error", "hung"]),
  /** Text deltas that are on the screen twice, or whose request has a later response that is also on the screen. */
  duplicated_text: Schema.Natural,
  /** Tool runs that repeat a call which has already run. */
  duplicated_tool_runs: Schema.Natural,
  /** Tool runs with a different input than the model wrote. */
  truncated_tool_runs: Schema.Natural,
  /** True if the turn reports success although the response, or one of its calls, is incomplete. */
  silent_truncation: Schema.Boolean,
  /** True if the response was healthy but the turn failed or sent a second request. */
  false_abort: Schema.Boolean,
  /** True if the turn failed after text or a complete call had arrived and was billed. */
  lost_work: Schema.Boolean,
  milliseconds: Schema.Natural,
  /** The error that the user saw, in one line. */
  error: Schema.optionalKey(Schema.String),
});
export type ConformanceCell = typeof ConformanceCell.Type;

/** Sums over the cells of a scoreboard. */
export const ConformanceTotals = Schema.Struct({
  cells: Schema.Natural,
  recovered: Schema.Natural,
  errors: Schema.Natural,
  hung: Schema.Natural,
  duplicated_text: Schema.Natural,
  duplicated_tool_runs: Schema.Natural,
  truncated_tool_runs: Schema.Natural,
  silent_truncations: Schema.Natural,
  false_aborts: Schema.Natural,
  lost_work: Schema.Natural,
  requests: Schema.Natural,
});
export type ConformanceTotals = typeof ConformanceTotals.Type;

/** One column of the comparison: a runtime against every fault, in every protocol that it speaks. */
export const ConformanceScoreboard = Schema.Struct({
  runtime: Schema.String,
  versions: Schema.Record(Schema.String, Schema.String),
  /** Length of the silence in the fault `silence`, in milliseconds. */
  silence_ms: Schema.Natural,
  cells: Schema.Array(ConformanceCell),
  totals: ConformanceTotals,
});
export type ConformanceScoreboard = typeof ConformanceScoreboard.Type;

/**
 * Builds a scoreboard from cells.
 *
 * Totals count cells, except for tool runs and requests, which are summed.
 */
export const scoreboard = (
  about: Pick<ConformanceScoreboard, "runtime" | "versions" | "silence_ms">,
  cells: ReadonlyArray<ConformanceCell>,
): ConformanceScoreboard => {
  const count = (which: (cell: ConformanceCell) => boolean) => cells.filter(which).length;
  const sum = (of: (cell: ConformanceCell) => number) => cells.reduce((total, cell) => total + of(cell), 0);
  return {
    ...about,
    cells,
    totals: {
      cells: cells.length,
      recovered: count(({ letter }) => letter === "R"),
      errors: count(({ ended }) => ended === "error"),
      hung: count(({ ended }) => ended === "hung"),
      duplicated_text: count(({ duplicated_text }) => duplicated_text > 0),
      duplicated_tool_runs: sum(({ duplicated_tool_runs }) => duplicated_tool_runs),
      truncated_tool_runs: sum(({ truncated_tool_runs }) => truncated_tool_runs),
      silent_truncations: count(({ silent_truncation }) => silent_truncation),
      false_aborts: count(({ false_abort }) => false_abort),
      lost_work: count(({ lost_work }) => lost_work),
      requests: sum(({ requests }) => requests),
    },
  };
};

/**
 * Returns true if no text or tool run was duplicated, no tool ran with truncated arguments, no truncation was reported as success, and no
 * healthy turn failed.
 */
export const isSafe = ({ totals }: ConformanceScoreboard): boolean =>
  totals.duplicated_text === 0 &&
  totals.duplicated_tool_runs === 0 &&
  totals.truncated_tool_runs === 0 &&
  totals.silent_truncations === 0 &&
  totals.false_aborts === 0;
