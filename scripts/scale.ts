/**
 * Computes the needs of a load from the figures in scripts/scale/figures.json: `npm run scale -- --set eventsPerSecond=20`.
 */
import { parseArgs } from "node:util";
import { withOthers } from "./scale/Figures.ts";
import { given, tables } from "./scale/ScaleTables.ts";

const usage = `Prints the scale tables of docs/bench.md, or the same tables for other figures and another load.

  npm run scale -- [--set NAME=NUMBER]... [--streams N --runs N]

  --set NAME=NUMBER   replaces a figure; docs/bench.md lists their names
  --streams N         number of open streams, instead of the four steps
  --runs N            number of runs per second, with --streams
  --help              prints this text

Exit code 0, or 2 for invalid arguments.
`;

const load = (streams: string | undefined, runs: string | undefined) => {
  if (streams === undefined && runs === undefined) return undefined;
  const [many, often] = [Number(streams), Number(runs)];
  if (!(many > 0 && often > 0 && Number.isFinite(many * often)))
    throw new Error("--streams and --runs require each other, each a number above 0");
  return { streams: many, runs: often };
};

const main = (): number => {
  const { values } = parseArgs({
    options: {
      set: { type: "string", multiple: true, default: [] },
      streams: { type: "string" },
      runs: { type: "string" },
      help: { type: "boolean", default: false, short: "h" },
    },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const read = given();
  const other = load(values.streams, values.runs);
  const changed = {
    ...read,
    usual: withOthers(read.usual, values.set),
    worst: withOthers(read.worst, values.set),
    loads: other === undefined ? read.loads : [other],
  };
  for (const [name, print] of Object.entries(tables)) {
    const isFigures = name === "measured" || name === "set" || name === "assumed";
    if (!isFigures) console.log(`\n## ${name}\n\n${print(changed)}`);
  }
  return 0;
};

try {
  process.exitCode = main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
