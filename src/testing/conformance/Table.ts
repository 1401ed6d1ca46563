/** Renders scoreboards side by side, as a table that is readable in a terminal and in Markdown. */
import type { ProtocolId } from "../../provider/Protocols.ts";
import { answerProtocol } from "../answers/Answers.ts";
import { conformanceFaults } from "./ConformanceFault.ts";
import type { ConformanceCell, ConformanceScoreboard, ConformanceTotals } from "./ConformanceScoreboard.ts";

/** Explains the letters of a table in one paragraph. */
export const conformanceLegend =
  "R recovered · D the user sees text twice · T silent truncation or lost call, reported as success · E error · M broken call " +
  "reported to the model · X tool ran twice · XT tool ran with truncated arguments · H no end before the kit's timeout. " +
  "The number counts the requests that the provider received; ! marks a healthy stream that was aborted or requested again.";

/**
 * Renders scoreboards: one column per runtime and protocol, one row per fault, then the totals and the legend.
 *
 * @param boards one or more scoreboards, left to right
 */
export const conformanceTable = (boards: ReadonlyArray<ConformanceScoreboard>): string => {
  const columns = boards.flatMap((board) =>
    [...new Set(board.cells.map(({ protocol }) => protocol))].map((protocol) => ({ board, protocol })),
  );
  const played = conformanceFaults.filter(({ id }) =>
    boards.some((board) => board.cells.some(({ fault }) => fault === id)),
  );
  const faults = [
    [
      "fault in the first response",
      ...columns.map(({ board, protocol }) => `${board.runtime}, ${answerProtocol(protocol).shortName}`),
    ],
    ...played.map(({ id, title }) => [title, ...columns.map(({ board, protocol }) => letter(board, id, protocol))]),
  ];
  const sums = [
    ["total", ...boards.map(({ runtime }) => runtime)],
    ...totals.map(([title, field]) => [title, ...boards.map((board) => String(board.totals[field]))]),
  ];
  return [markdown(faults), markdown(sums), conformanceLegend, ...versions(boards)].join("\n\n");
};

const totals: ReadonlyArray<readonly [title: string, field: keyof ConformanceTotals]> = [
  ["turns", "cells"],
  ["recovered", "recovered"],
  ["errors reported", "errors"],
  ["hung", "hung"],
  ["turns with repeated text", "duplicated_text"],
  ["repeated tool runs", "duplicated_tool_runs"],
  ["tool runs with cut arguments", "truncated_tool_runs"],
  ["silent truncations", "silent_truncations"],
  ["false aborts", "false_aborts"],
  ["failed turns that lost work", "lost_work"],
  ["billed requests", "requests"],
];

const letter = (board: ConformanceScoreboard, fault: ConformanceCell["fault"], protocol: ProtocolId): string => {
  const cell = board.cells.find((it) => it.fault === fault && it.protocol === protocol);
  return cell === undefined ? "" : `${cell.letter}${cell.requests}${cell.false_abort ? "!" : ""}`;
};

const versions = (boards: ReadonlyArray<ConformanceScoreboard>): ReadonlyArray<string> => {
  const named = new Map(boards.flatMap((board) => Object.entries(board.versions)));
  return named.size === 0 ? [] : [[...named].map(([name, version]) => `${name} ${version}`).join(" · ")];
};

const markdown = (rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length), 3));
  const line = (row: ReadonlyArray<string>) =>
    `| ${widths.map((width, column) => (row[column] ?? "").padEnd(width)).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  const [head, ...body] = rows.map(line);
  return [head ?? "", rule, ...body].join("\n");
};
