/**
 * Prints a policy's rows: as Markdown for README, as JSON for programs.
 */
import type { Rule } from "../domain/Decision.ts";
import type { RecoveryPolicy } from "./RecoveryPolicy.ts";
import { default as standard } from "./RecoveryPolicy.ts";

/** One row as data. */
export interface TableRow {
  /** The row's number; the questions before an automatic retry have none. */
  readonly number: number | null;
  readonly if: string;
  readonly then: string;
  readonly rules: ReadonlyArray<Rule>;
}

/** The rows of a policy in the order in which they are asked, and then the three questions before an automatic retry. */
export const table = (policy: RecoveryPolicy = standard): ReadonlyArray<TableRow> => [
  ...policy.rows.map((row) => tableRow(row.number, row.condition, row.answer, row.rules)),
  ...questions.map(([condition, rule]) => tableRow(null, condition, "ask_user", [rule])),
];

/** The table as Markdown, without a line break at its end. */
export const markdown = (policy: RecoveryPolicy = standard): string =>
  [
    "| # | if | then | rule |",
    "| --- | --- | --- | --- |",
    ...table(policy).map(
      (row) =>
        `| ${row.number ?? ""} | ${row.if} | ${row.then} | ${row.rules.map((rule) => `\`${rule}\``).join(" · ")} |`,
    ),
  ].join("\n");

/** Asked in this order before resume, continue and replay: RetryBudget.ts. */
const questions: ReadonlyArray<readonly [string, Rule]> = [
  ["before an automatic retry: Retry-After longer than the budget allows", "retry_after_too_long"],
  ["before an automatic retry: the throttle has no token within that time", "throttled"],
  ["before an automatic retry: budget spent", "budget_exhausted"],
];

const tableRow = (number: number | null, condition: string, answer: string, rules: ReadonlyArray<Rule>): TableRow => ({
  number,
  if: condition,
  // biome-ignore lint/suspicious/noThenProperty: a column of the published table; the row is printed, never awaited.
  then: answer,
  rules,
});
