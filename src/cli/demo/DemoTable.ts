/**
 * Prints the demo's rows as a table that fits into a hundred columns.
 */

import { protocols } from "../../provider/Protocols.ts";
import type { Ink, Tone } from "../terminal/Ink.ts";
import type { JudgedRun } from "./scenarios/Judge.ts";
import { faultCharactersMax } from "./scenarios/Scenario.ts";

const widths = { fault: faultCharactersMax, saw: 17, tries: 3, decision: 37, twice: 3, time: 4 } as const;

const formatLine = (fault: string, saw: string, tries: string, decision: string, twice: string, time: string): string =>
  [
    fault.padEnd(widths.fault),
    saw.padEnd(widths.saw),
    tries.padStart(widths.tries),
    decision.padEnd(widths.decision),
    twice.padStart(widths.twice),
    time.padStart(widths.time),
  ].join(" ");

/** The header row. Cells are padded before they are coloured, because colour codes have no width. */
const head = `  ${formatLine("FAULT", "THE CALLER SAW", "TRY", "DECISION AND RULE", "DUP", "BACK")}`.trimEnd();

/** Formats the rows as a table, grouped by protocol. */
export const formatTable = (rows: ReadonlyArray<JudgedRun>, ink: Ink): string =>
  [
    ink("quiet", head),
    ...protocols.ids.flatMap((protocol) => {
      const group = rows.filter((row) => row.protocol === protocol);
      return group.length === 0
        ? []
        : ["", ink("strong", protocols.get(protocol).name), ...group.flatMap((row) => formatLines(row, ink))];
    }),
  ].join("\n");

const formatLines = (row: JudgedRun, ink: Ink): ReadonlyArray<string> => {
  const ok = row.problems.length === 0;
  const [first = "nothing broke", ...more] = row.decisions;
  const text = formatLine(
    row.fault,
    row.saw,
    String(row.attempts),
    first,
    String(row.duplicates),
    row.recovery_ms === null ? "-" : `${(row.recovery_ms / 1_000).toFixed(1)}s`,
  );
  const indent = " ".repeat(widths.fault + widths.saw + widths.tries + 5);
  return [
    `${ink(ok ? "good" : "bad", ok ? "✓" : "✗")} ${applyColour(text, first, ink)}`,
    ...more.map((decision) => `${indent}${applyColour(decision, decision, ink)}`),
    ...row.problems.map((problem) => ink("bad", `    ${problem}`)),
  ];
};

const tones: Readonly<Record<string, Tone>> = {
  auto_retry_once: "good",
  ask_user: "careful",
  do_not_retry: "quiet",
};

const applyColour = (text: string, decision: string, ink: Ink): string => {
  const tone = tones[decision.split(" ", 1)[0] ?? ""];
  return tone === undefined ? text : text.replace(decision, ink(tone, decision));
};

/** The totals of a demo. */
export interface Totals {
  readonly runs: number;
  readonly as_expected: number;
  readonly protocols: number;
  readonly recovered: number;
  readonly asked: number;
  readonly duplicates: number;
  readonly lost: number;
  readonly cut_inputs: number;
  readonly requests: number;
}

/** Adds up the judged runs of a demo. */
export const totalsOf = (rows: ReadonlyArray<JudgedRun>): Totals => {
  const sum = (of: (row: JudgedRun) => number) => rows.reduce((total, row) => total + of(row), 0);
  return {
    runs: rows.length,
    as_expected: sum((row) => (row.problems.length === 0 ? 1 : 0)),
    protocols: new Set(rows.map((row) => row.protocol)).size,
    recovered: sum((row) => (isRecovered(row) ? 1 : 0)),
    asked: sum((row) => (row.decisions.at(-1)?.startsWith("ask_user") === true ? 1 : 0)),
    duplicates: sum((row) => row.duplicates),
    lost: sum((row) => row.lost),
    cut_inputs: sum((row) => row.cut_inputs),
    requests: sum((row) => row.requests),
  };
};

const isRecovered = (row: JudgedRun): boolean => row.decisions.at(-1)?.startsWith("auto_retry_once") === true;

/** Formats the totals of a demo, with its duration and its seed. */
export const summary = (totals: Totals, seconds: number, seed: number, ink: Ink): string => {
  const ok = totals.as_expected === totals.runs;
  const verdict = `${totals.as_expected} of ${totals.runs} runs as expected`;
  return [
    `${ink(ok ? "good" : "bad", verdict)}, in ${totals.protocols} protocol${totals.protocols === 1 ? "" : "s"} and ` +
      `${seconds.toFixed(1)} s: ${totals.recovered} recovered without a question, ${totals.asked} asked a person.`,
    `Shown or run twice: ${totals.duplicates}. Lost: ${totals.lost}. Run with cut arguments: ${totals.cut_inputs}. ` +
      `Requests at the server: ${totals.requests}.`,
    ink("quiet", `TRY: attempts. DUP: deltas and calls that came twice. BACK: time to new content. Seed ${seed}.`),
  ].join("\n");
};
