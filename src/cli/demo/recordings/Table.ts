/**
 * Prints the results of a folder of recordings: totals per protocol, and every failure with the data to reproduce it.
 */

import { protocols } from "../../../provider/Protocols.ts";
import type { Ink } from "../../terminal/Ink.ts";
import type { RecordingRow } from "./Judge.ts";

/** The totals of a set of recordings. */
export interface RecordingTotals {
  readonly recordings: number;
  /** Number of unbroken recordings that completed. */
  readonly complete: number;
  readonly broken: number;
  /** Number of broken runs that recovered without a question. */
  readonly recovered: number;
  /** Number of broken runs that asked a person. */
  readonly asked: number;
  readonly false_successes: number;
  /** Number of events that were duplicated, changed or out of order. */
  readonly duplicates: number;
  readonly requests: number;
  /** Number of runs with a problem. */
  readonly failures: number;
}

/** Adds up the judged takes of all recordings. */
export const totalsOf = (rows: ReadonlyArray<RecordingRow>): RecordingTotals => {
  const formatCount = (fits: (row: RecordingRow) => boolean) => rows.filter(fits).length;
  const hasAsked = (row: RecordingRow) => row.decisions.some((decision) => decision.startsWith("ask_user"));
  return {
    recordings: formatCount((row) => row.kind === "whole"),
    complete: formatCount((row) => row.kind === "whole" && row.completed),
    broken: formatCount((row) => row.kind !== "whole"),
    recovered: formatCount((row) => row.kind !== "whole" && row.completed && !hasAsked(row)),
    asked: formatCount((row) => row.kind !== "whole" && hasAsked(row)),
    false_successes: formatCount((row) => row.false_success),
    duplicates: rows.reduce((sum, row) => sum + row.extra, 0),
    requests: rows.reduce((sum, row) => sum + row.requests, 0),
    failures: formatCount((row) => row.problems.length > 0),
  };
};

const columns = [
  ["RECORDINGS", "recordings"],
  ["COMPLETE", "complete"],
  ["BROKEN", "broken"],
  ["RECOVERED", "recovered"],
  ["ASKED", "asked"],
  ["FALSE ENDS", "false_successes"],
  ["TWICE", "duplicates"],
] as const satisfies ReadonlyArray<readonly [string, keyof RecordingTotals]>;

/** Formats the table, the failures and a summary. */
export const formatTable = (
  rows: ReadonlyArray<RecordingRow>,
  totals: RecordingTotals,
  seed: number,
  seconds: number,
  ink: Ink,
): string => {
  const cells = (name: string, of: (column: (typeof columns)[number]) => string) =>
    [name.padEnd(24), ...columns.map((column) => of(column).padStart(column[0].length + 1))].join(" ");
  const formatLine = (name: string, part: RecordingTotals) => cells(name, ([, field]) => String(part[field]));
  const byProtocol = protocols.ids.flatMap((protocol) => {
    const part = totalsOf(rows.filter((row) => row.protocol === protocol));
    return part.recordings === 0 ? [] : [formatLine(protocols.get(protocol).name, part)];
  });
  const failures = rows.filter((row) => row.problems.length > 0);
  const runs = totals.recordings + totals.broken;
  const verdict = `${runs - totals.failures} of ${runs} runs as expected`;
  return [
    ink(
      "quiet",
      cells("", ([title]) => title),
    ),
    ...byProtocol,
    ink("strong", formatLine("all", totals)),
    "",
    ...failures.map((row) => failureLine(row, seed, ink)),
    ...(failures.length === 0 ? [] : [""]),
    `${ink(totals.failures === 0 ? "good" : "bad", verdict)}, in ${seconds.toFixed(1)} s and ${totals.requests} requests.`,
    ink("quiet", "Recordings of an error are never complete. RECOVERED: without a question."),
    ink(
      "quiet",
      `FALSE ENDS: breaks reported as an end. TWICE: events repeated, changed or out of order. Seed ${seed}.`,
    ),
  ].join("\n");
};

const failureLine = (row: RecordingRow, seed: number, ink: Ink): string => {
  const where = row.kind === "whole" ? "whole" : `${row.kind} after byte ${row.at}, ${row.caller}`;
  return `${ink("bad", "✗")} ${row.file}\n    ${where} (seed ${seed}): ${row.problems.join("; ")}`;
};

/** Builds the machine-readable report. */
export const report = (
  rows: ReadonlyArray<RecordingRow>,
  totals: RecordingTotals,
  seed: number,
  cuts: number,
  duration_ms: number,
): object => ({ ok: totals.failures === 0, seed, cuts, duration_ms, totals, rows });
