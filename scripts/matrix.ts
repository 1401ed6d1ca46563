/**
 * Plays the whole fault matrix against real sockets and prints the results: `node scripts/matrix.ts --help`.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { Effect } from "effect";
import type { Judged } from "../test/matrix/CellJudge.ts";
import * as ContinuedTable from "../test/matrix/ContinuedTable.ts";
import { cells, playAll, slice } from "../test/matrix/Matrix.ts";
import { markdown, rowsOf, totalsOf } from "../test/matrix/Table.ts";

const help = `node scripts/matrix.ts [options]

Breaks model streams in every way that the matrix contains, on real sockets of this machine, and compares what the caller receives
with the server's own log and with expectations written by hand. docs/fault-matrix.md explains the cells.

  --only TEXT      plays only cells whose name or fault contains TEXT; may be repeated
  --slice          plays the part that the tests play
  --list           prints the names of the cells and plays none
  --continue-text  plays the breaks in streamed text behind a gateway, with continue_text ask and auto, and prints the number of whole
                   answers
  --json           prints one JSON document instead of a table
  --write          after a complete run without a failure, writes the table to docs/fault-matrix.md
  --help           prints this text

Exit code: 0 every cell matched its expectation, 1 some cell did not, 2 invalid options.`;

/** Maximum failed cells that are printed. The JSON contains all of them. */
const printedMax = 40;

const docs = new URL("../docs/fault-matrix.md", import.meta.url);

const main = async (): Promise<number> => {
  const options = read();
  if (options === undefined) return 2;
  if (options.help) return print(help);
  if (options["continue-text"]) return await playContinued();
  const all = cells();
  const chosen = options.slice ? slice(all) : all;
  const selected = chosen.filter(
    (cell) =>
      options.only.length === 0 || options.only.some((text) => cell.name.includes(text) || cell.group.includes(text)),
  );
  if (selected.length === 0)
    return refuse(`--only: no cell name contains ${options.only.join(" or ")}; --list prints the names`);
  if (options.list) return print(selected.map((cell) => cell.name).join("\n"));
  const lag = monitorEventLoopDelay({ resolution: 10 });
  lag.enable();
  const started = performance.now();
  const judged = await Effect.runPromise(playAll(selected, progress(selected.length)));
  const seconds = (performance.now() - started) / 1_000;
  lag.disable();
  const wrong = judged.filter((one) => one.problems.length > 0);
  const lagMs = Math.round(lag.max / 1e6);
  if (options.json) print(json(judged, seconds, lagMs));
  else print(text(judged, seconds, lagMs));
  if (wrong.length > 0) return 1;
  if (options.write && selected.length === cells().length) write();
  return 0;
};

const read = () => {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string", multiple: true, default: [] },
        slice: { type: "boolean", default: false },
        list: { type: "boolean", default: false },
        "continue-text": { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        write: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    if (values.write && (values.slice || values.only.length > 0)) throw new Error("--write needs the whole matrix");
    return values;
  } catch (error) {
    refuse(error instanceof Error ? error.message : String(error));
    return undefined;
  }
};

const playContinued = async (): Promise<number> => {
  const { text, wrong } = await Effect.runPromise(ContinuedTable.play());
  print(text);
  return wrong === 0 ? 0 : 1;
};

const print = (text: string): number => {
  console.log(text);
  return 0;
};

const refuse = (problem: string): number => {
  console.error(`matrix: ${problem}`);
  return 2;
};

/** Shows a progress line on a terminal; prints nothing elsewhere. */
const progress = (cells: number) => {
  let played = 0;
  let wrong = 0;
  return (one: Judged) => {
    played += 1;
    if (one.problems.length > 0) wrong += 1;
    const last = played === cells;
    if (process.stderr.isTTY && (played % 20 === 0 || last))
      process.stderr.write(`\r${played} of ${cells} cells, ${wrong} wrong${last ? "\n" : ""}`);
  };
};

const text = (judged: ReadonlyArray<Judged>, seconds: number, lagMs: number): string => {
  const totals = totalsOf(judged);
  const played = new Set(judged.map((one) => one.cell.name));
  const rows = rowsOf(cells().filter((cell) => played.has(cell.name)));
  const width = Math.max(...rows.map(([fault]) => fault.length));
  const wrong = judged.filter((one) => one.problems.length > 0);
  return [
    ...rows.map(
      ([fault, count, ends]) => `${fault.padEnd(width)} ${String(count).padStart(5)}  ${ends.replaceAll("`", "")}`,
    ),
    "",
    ...wrong.slice(0, printedMax).map((one) => `WRONG ${one.cell.name}\n      ${one.problems.join("\n      ")}`),
    ...(wrong.length > printedMax ? [`… and ${wrong.length - printedMax} more; --json lists all`] : []),
    `${totals.cells} cells in ${seconds.toFixed(1)} s, ${totals.as_expected} as expected (the event loop lagged by at most ${lagMs} ms)`,
    `duplicates ${totals.duplicates} · false successes ${totals.false_successes} · false aborts ${totals.false_aborts} · lost records ${totals.lost_records}`,
  ].join("\n");
};

const json = (judged: ReadonlyArray<Judged>, seconds: number, lagMs: number): string => {
  const totals = totalsOf(judged);
  const faults = rowsOf(judged.map((one) => one.cell)).map(([fault, count, ends]) => ({ fault, cells: count, ends }));
  const wrong = judged
    .filter((one) => one.problems.length > 0)
    .map((one) => ({ name: one.cell.name, problems: one.problems, expected: one.cell.expect }));
  return JSON.stringify({ ok: wrong.length === 0, seconds, event_loop_late_ms: lagMs, totals, wrong, faults }, null, 2);
};

const write = (): void => {
  const before = readFileSync(docs, "utf8");
  const between = /(<!-- matrix -->\n)[\s\S]*?(\n<!-- \/matrix -->)/;
  if (!between.test(before))
    throw new Error("docs/fault-matrix.md needs a line <!-- matrix --> and <!-- /matrix --> after it");
  writeFileSync(
    docs,
    before.replace(between, (_, from: string, to: string) => `${from}${markdown(cells())}${to}`),
  );
};

process.exitCode = await main();
