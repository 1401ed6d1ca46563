/**
 * Holds the results of the conformance kit as data: a cell for each fault and protocol, and the totals.
 */
import { Schema } from "effect";
import { protocols } from "../../provider/Protocols.ts";
import { ConformanceFaultId } from "./ConformanceFault.ts";

/**
 * How a turn ended. `R` recovered (or, where nothing broke, went well) · `D` the user sees text twice · `T` silent truncation or
 * a lost call, reported as success · `E` an error that the user sees · `M` the broken call was handed to the model as a failed
 * one · `X` a tool ran twice · `XT` a tool ran with arguments that the model never finished · `H` the turn did not end before
 * the kit gave up.
 */
export const ConformanceLetter = Schema.Literals(["R", "D", "T", "E", "M", "X", "XT", "H"]);
export type ConformanceLetter = typeof ConformanceLetter.Type;

/** One turn against one fault in one protocol. */
export const ConformanceCell = Schema.Struct({
  fault: ConformanceFaultId,
  protocol: Schema.Literals(protocols.ids),
  letter: ConformanceLetter,
  /** Requests that reached the provider, and are paid. */
  requests: Schema.Natural,
  ended: Schema.Literals(["ok", "error", "hung"]),
  /** Text deltas that stand on the screen twice, or in two responses to the same request. */
  duplicated_text: Schema.Natural,
  /** Runs of a call that ran before. */
  duplicated_tool_runs: Schema.Natural,
  /** Runs with another input than the model wrote. */
  truncated_tool_runs: Schema.Natural,
  /** The turn reports success, and the response, or a call of it, is not whole. */
  silent_truncation: Schema.Boolean,
  /** The response was healthy, and the turn failed or asked again. */
  false_abort: Schema.Boolean,
  /** The turn failed although text or a whole call had come and was paid. */
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

/** A column of the comparison: one runtime over every fault and every protocol that it speaks. */
export const ConformanceScoreboard = Schema.Struct({
  runtime: Schema.String,
  versions: Schema.Record(Schema.String, Schema.String),
  /** How long the fault `silence` was silent, in milliseconds. */
  silence_ms: Schema.Natural,
  cells: Schema.Array(ConformanceCell),
  totals: ConformanceTotals,
});
export type ConformanceScoreboard = typeof ConformanceScoreboard.Type;

/**
 * Puts cells together.
 *
 * Totals count cells, but for tool runs and requests, which are counted themselves.
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

/** Whether no text and no tool run was doubled, cut or invented, no truncation passed for success, and no healthy turn failed. */
export const isSafe = ({ totals }: ConformanceScoreboard): boolean =>
  totals.duplicated_text === 0 &&
  totals.duplicated_tool_runs === 0 &&
  totals.truncated_tool_runs === 0 &&
  totals.silent_truncations === 0 &&
  totals.false_aborts === 0;
