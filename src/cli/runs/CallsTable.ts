/**
 * Prints the calls that a run handed over, how far each got, and whose word settled it.
 */
import type { CallRecord, RunRecord } from "../../recorder/RunRecord.ts";
import type { Tone } from "../terminal/Ink.ts";
import type { Screen } from "../terminal/Screen.ts";
import { type Cell, table } from "../terminal/Table.ts";

/** Most calls that are listed; what is more is counted. */
const listedMax = 40;

/** The calls of a run, one a line. */
export const callsTable = (record: RunRecord, screen: Screen): string => {
  const rows = record.calls.slice(0, listedMax).map((call) => row(call, record));
  const columns = [
    { head: "  TRY", align: "right" },
    { head: "CALL" },
    { head: "TOOL", shrinksTo: 8 },
    { head: "EFFECT" },
    { head: "PHASE" },
    { head: "VERDICT", shrinksTo: 10 },
  ] as const;
  const rest = record.calls.length - rows.length;
  return [
    table(columns, rows, screen.ink, screen.fits ? screen.columns : undefined),
    ...(rest > 0 ? [screen.ink("quiet", `  and ${rest} more`)] : []),
  ].join("\n");
};

const row = (call: CallRecord, record: RunRecord): ReadonlyArray<Cell> => {
  const attempt = record.attempts.find((it) => it.attempt === call.attempt);
  const ledger = attempt?.facts.tools.find((it) => it.call === call.call);
  const phase = ledger?.phase ?? "-";
  const verdict = call.verdict === undefined ? "" : `${call.verdict}, says ${by[call.verdict_by ?? "person"]}`;
  return [
    { text: String(call.attempt) },
    { text: call.call },
    { text: call.tool },
    { text: ledger?.effect ?? "-" },
    { text: phase, ...(tones[phase] === undefined ? {} : { tone: tones[phase] }) },
    { text: verdict },
  ];
};

const by = { person: "a person", verify: "the tool itself" } as const;

const tones: Readonly<Record<string, Tone>> = { settled: "good", dispatched: "careful", outcome_unknown: "bad" };
