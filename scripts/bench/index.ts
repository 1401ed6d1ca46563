/**
 * `npm run bench`: measures the package's costs and those of other libraries for the same events.
 *
 * Each row is measured in separate Node processes, contender and raw loop in turns, as CPU time. With `--measure` this program runs as
 * such a process.
 */
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { groups } from "./Groups.ts";
import { measure } from "./Measurements.ts";
import * as Report from "./Report.ts";
import type { Row } from "./Row.ts";
import { figuresFile, put } from "./ScaleFigures.ts";
import { commitFigureOf, sqlite } from "./SqliteLines.ts";

const help = `Usage: npm run bench -- [options]

Measures the cost of a run against a raw \`for await\`, Effect's Stream and the AI SDK, and compares it with the bars of the design.
Takes about ten minutes; run nothing else meanwhile.

  --only NAME        only these groups (${groups.map((group) => group.name).join(", ")}); repeat it or use commas
  --quick            fewer processes and rounds: about two minutes, wider spreads
  --processes N      number of processes per row; default 5, quick 2
  --json             prints one JSON document instead of the table
  --write            also writes the table to docs/bench.md (sqlite alone has its own table) and the figure of a commit to
                     scripts/scale/figures.json; \`npm run tables\` then recomputes its scale tables from it
  --help             prints this text

Exit code: 0 every bar is met, 1 some bar is missed, 2 invalid options.`;

const options = {
  only: { type: "string", multiple: true },
  quick: { type: "boolean" },
  processes: { type: "string" },
  json: { type: "boolean" },
  write: { type: "boolean" },
  help: { type: "boolean" },
} as const;

const main = async (args: ReadonlyArray<string>): Promise<number> => {
  if (args[0] === "--measure") return child(args[1] ?? "", args[2] ?? "");
  const asked = read(args);
  if (typeof asked === "string") {
    console.error(`bench: ${asked}`);
    return 2;
  }
  if (asked.help) {
    console.log(help);
    return 0;
  }
  const before = load();
  const measured: Array<{ readonly name: string; readonly rows: ReadonlyArray<Row> }> = [];
  for (const group of groups.filter(({ name }) => asked.only.length === 0 || asked.only.includes(name))) {
    const rows: Array<Row> = [];
    for (const line of group.lines) {
      console.error(`${group.name}: ${line.what} …`);
      const found = await line.run(asked);
      for (const row of found) console.error(`  ${row.value}${row.verdict === undefined ? "" : `  ${row.verdict}`}`);
      rows.push(...found);
    }
    measured.push({ name: group.name, rows });
  }
  const command = ["npm run bench --", ...args].join(" ");
  const report = Report.make(command, asked.processes, `load average ${before} before, ${load()} after`, measured);
  console.log(asked.json ? JSON.stringify(report, null, 2) : Report.markdown(report));
  if (asked.write) written(report);
  return Report.missed(report).length === 0 ? 0 : 1;
};

const load = (): string =>
  loadavg()
    .map((one) => one.toFixed(2))
    .join(" ");

/** Writes the table to docs/bench.md, or to its own section if only sqlite was measured, and the figure for the scale tables. */
const written = (report: Report.Report): void => {
  const names = report.groups.map(({ name }) => name);
  const isSqlite = names.length === 1 && names[0] === sqlite.name;
  const [table, heading] = isSqlite ? ["bench-sqlite", "the-store"] : ["bench", "speed"];
  Report.write(new URL("../../docs/bench.md", import.meta.url), table, Report.markdown(report));
  const figure = commitFigureOf(report.groups.flatMap(({ rows }) => rows));
  const { command, load } = report;
  if (figure !== undefined) put(figuresFile, figure, { heading, command, load: `${cpus().length} cores, ${load}` });
};

const read = (args: ReadonlyArray<string>) => {
  try {
    const { values } = parseArgs({ args: [...args], options });
    const quick = values.quick === true;
    const processes = Number(values.processes ?? (quick ? 2 : 5));
    const only = (values.only ?? []).flatMap((names) => names.split(","));
    const unknown = only.find((name) => groups.every((group) => group.name !== name));
    if (unknown !== undefined) return `--only: unknown group "${unknown}"`;
    if (!Number.isInteger(processes) || processes < 1)
      return `--processes: expected an integer ≥ 1, got "${values.processes}"`;
    return {
      quick,
      processes,
      only,
      json: values.json === true,
      write: values.write === true,
      help: values.help === true,
    };
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
};

/** Measures once and prints the result as the last line. */
const child = async (name: string, size: string): Promise<number> => {
  const result = await measure(name, JSON.parse(size));
  await new Promise((resolve) => process.stdout.write(`${JSON.stringify(result)}\n`, resolve));
  // Idle runs and sockets may still be open on purpose.
  return 0;
};

process.exit(await main(process.argv.slice(2)));
