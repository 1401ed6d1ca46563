/**
 * Prints a policy's rows and its table of moves, as Markdown for docs/policy.md and docs/routes.md and as JSON for programs.
 */
import type { Rule } from "../domain/Decision.ts";
import type { RecoveryPolicy } from "./RecoveryPolicy.ts";
import { default as standard } from "./RecoveryPolicy.ts";
import { vetoes } from "./RetryBudget.ts";
import { rulings } from "./Rules.ts";

/** One row as data. */
export interface TableRow {
  /** Number of the row; null for a check before an automatic retry. */
  readonly number: number | null;
  readonly if: string;
  readonly then: string;
  readonly rules: ReadonlyArray<Rule>;
}

/** Lists the rows of a policy in evaluation order, then the checks before an automatic retry. */
export const printTable = (policy: RecoveryPolicy = standard): ReadonlyArray<TableRow> => [
  ...policy.rows.map((row) => tableRow(row.number, row.condition, row.action, row.rules)),
  ...vetoes.map(({ condition, rule }) =>
    tableRow(null, `before an automatic retry: ${condition}`, rulings[rule].action, [rule]),
  ),
];

/** Formats the table as Markdown, without a trailing line break. */
export const markdown = (policy: RecoveryPolicy = standard): string =>
  [
    "| # | if | then | rule |",
    "| --- | --- | --- | --- |",
    ...printTable(policy).map(
      (row) =>
        `| ${row.number ?? ""} | ${row.if} | ${row.then} | ${row.rules.map((rule) => `\`${rule}\``).join(" · ")} |`,
    ),
  ].join("\n");

/** One row of the table of moves as data. */
export interface MoveTableRow {
  readonly failure: string;
  readonly moves: string;
}

/** Lists the rows of a policy's table of moves in evaluation order; empty if it never moves. */
export const moveTable = (policy: RecoveryPolicy = standard): ReadonlyArray<MoveTableRow> =>
  policy.moves.map(({ failure, moves }) => ({ failure, moves }));

/** Formats the table of moves as Markdown, without a trailing line break; empty if the policy never moves. */
export const moveMarkdown = (policy: RecoveryPolicy = standard): string =>
  policy.moves.length === 0
    ? ""
    : [
        "| failure | moves to the next route that is up |",
        "| --- | --- |",
        ...moveTable(policy).map((row) => `| ${row.failure} | ${row.moves} |`),
      ].join("\n");

const tableRow = (number: number | null, condition: string, action: string, rules: ReadonlyArray<Rule>): TableRow => ({
  number,
  if: condition,
  // biome-ignore lint/suspicious/noThenProperty: a column of the published table; the row is printed, never awaited.
  then: action,
  rules,
});
