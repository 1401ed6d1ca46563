/**
 * Prints the exchanges that the client reported: the connection of each and its idle time, sizes and times.
 */
import type { ExchangeRecord } from "../../client/index.ts";
import type { Ink } from "../terminal/Ink.ts";
import type { JudgedRun } from "./scenarios/Judge.ts";

/** Maximum runs whose exchanges are printed. */
export const exchangesOfRunsMax = 3;

const widths = { number: 2, idle: 7, connection: 18, waited: 7, sent: 6, head: 7, first: 8, got: 7 } as const;

/** Maximum characters of the result column, so that a long error code fits on the line. */
const resultCharactersMax = 29;

const formatLine = (cells: Readonly<Record<keyof typeof widths, string>>, result: string): string =>
  [
    cells.number.padStart(widths.number),
    cells.idle.padStart(widths.idle),
    cells.connection.padEnd(widths.connection),
    cells.waited.padStart(widths.waited),
    cells.sent.padStart(widths.sent),
    cells.head.padStart(widths.head),
    cells.first.padStart(widths.first),
    cells.got.padStart(widths.got),
    result,
  ].join(" ");

const head = formatLine(
  {
    number: "#",
    idle: "IDLE",
    connection: "CONNECTION",
    waited: "WAIT",
    sent: "SENT",
    head: "HEAD",
    first: "1ST BYTE",
    got: "GOT",
  },
  "RESULT",
);

/** Formats the exchanges of some runs, one per line. */
export const exchanges = (rows: ReadonlyArray<JudgedRun>, ink: Ink): string =>
  [
    ink("strong", "Exchanges with the provider, as reported to the client's onExchange"),
    ...rows.flatMap((row) => [
      "",
      `${row.name}: connections idle for ${row.kept_ms} ms are closed`,
      ink("quiet", head),
      ...row.exchanges.map((record) => lineOf(record, ink)),
    ]),
    "",
    ink("quiet", "IDLE: since the previous call. WAIT: for a connection. HEAD, 1ST BYTE: from the request's start."),
  ].join("\n");

const lineOf = (record: ExchangeRecord, ink: Ink): string => {
  const { code, connection, delivery, failure, outcome, recycled, reused, status } = record;
  const state = reused ? "reused" : recycled > 0 ? `new, ${recycled} recycled` : "new";
  const result = [status, code ?? failure ?? outcome, delivery === "accepted" ? undefined : delivery]
    .filter((word) => word !== undefined)
    .join(" ");
  const text = formatLine(
    {
      number: String(record.number),
      idle: ms(record.idle_ms),
      connection: connection === undefined ? "none" : `${connection} ${state}`,
      waited: ms(record.wait_ms),
      sent: `${record.request_bytes} B`,
      head: ms(record.head_ms),
      first: ms(record.first_byte_ms),
      got: `${record.bytes} B`,
    },
    "",
  );
  const shown = result.length <= resultCharactersMax ? result : `${result.slice(0, resultCharactersMax - 1)}…`;
  return `${text}${ink(outcome === "complete" ? "good" : "careful", shown)}`;
};

const ms = (value: number | undefined): string =>
  value === undefined ? "-" : `${value < 100 ? value.toFixed(1) : Math.round(value)} ms`;
