/**
 * Prints the matrix: a row for every fault, with the number of its cells and their expected outcomes.
 */
import type { Cell, Expected } from "./Cell.ts";
import type { Judged } from "./CellJudge.ts";
import { cutRules } from "./cells/CutRules.ts";
import { allCuts } from "./cells/Cuts.ts";

export interface Totals {
  readonly cells: number;
  readonly as_expected: number;
  readonly duplicates: number;
  readonly false_successes: number;
  readonly false_aborts: number;
  readonly lost_records: number;
}

export const totalsOf = (judged: ReadonlyArray<Judged>): Totals => {
  const sum = (of: (one: Judged) => number) => judged.reduce((total, one) => total + of(one), 0);
  return {
    cells: judged.length,
    as_expected: sum((one) => (one.problems.length === 0 ? 1 : 0)),
    duplicates: sum((one) => one.duplicates),
    false_successes: sum((one) => one.false_successes),
    false_aborts: sum((one) => one.false_aborts),
    lost_records: sum((one) => one.lost_records),
  };
};

/** The rows of the table: fault, number of cells, expected outcomes. */
export const rowsOf = (
  cells: ReadonlyArray<Cell>,
): ReadonlyArray<readonly [fault: string, cells: number, ends: string]> => {
  const groups = Map.groupBy(cells, (cell) => cell.group);
  return [...groups].map(([group, members]) => [group, members.length, endsOf(members)] as const);
};

/** The table as Markdown, with the rules that define the expectations of the cuts. */
export const markdown = (cells: ReadonlyArray<Cell>): string => {
  const cuts = allCuts();
  return [
    `${cells.length.toLocaleString("en")} cells.`,
    "",
    "| fault | cells | expected outcomes |",
    "| --- | ---: | --- |",
    ...rowsOf(cells).map(([fault, count, ends]) => `| ${fault} | ${count} | ${ends} |`),
    "",
    "The expected outcome of a cut; the first row that applies decides:",
    "",
    "| # | if | outcome | cells |",
    "| ---: | --- | --- | ---: |",
    ...cutRules.map((rule, index) => {
      const fitting = cuts.filter((cut) => cutRules.find((it) => it.fits(cut)) === rule);
      const outcomes = new Set(fitting.map((cut) => endOf(rule.expect(cut))));
      return `| ${index + 1} | ${rule.if} | ${[...outcomes].join(" · ")} | ${fitting.length} |`;
    }),
  ].join("\n");
};

const endsOf = (members: ReadonlyArray<Cell>): string => {
  const counts = new Map<string, number>();
  for (const { expect } of members) counts.set(endOf(expect), (counts.get(endOf(expect)) ?? 0) + 1);
  return [...counts].map(([end, count]) => `${end} (${count})`).join(" · ");
};

const endOf = ({ end, requests, rules }: Expected): string => {
  const unique = [...new Set(rules)].map((rule) => `\`${rule}\``).join(", ");
  if (end !== "completed") return `${end}: ${unique}`;
  return requests === 1 ? (unique === "" ? "whole" : `whole: ${unique}`) : `recovered: ${unique}`;
};
