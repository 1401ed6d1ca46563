/**
 * Reads the options of `npm run bench-store`.
 */
import { parseArgs } from "node:util";

export const help = `Usage: npm run bench-store -- [options]

Measures what PostgreSQL costs beside SQLite: happy runs, sweeps for dead processes, what several gateways over one database know
together, the delivery log, how soon a dead gateway's runs are decided by others, and how ended runs are forgotten. It starts a PostgreSQL of its own in a
temporary folder: no port, nothing of the machine's own server. About fourteen minutes; the machine should do nothing else.

  --quick            fewer runs, rounds and processes: about three minutes, wider spreads
  --only NAME        only these parts (writes, sweep, gateways, cooldown, deaths, retention); repeat it or use commas
  --processes N      processes a part that runs in processes of its own; default 3, quick 1
  --rounds N         rounds in which contenders take turns; default 7, quick 3
  --gateways N       gateways over one database; default 3
  --json             one JSON document instead of the table
  --write            also writes the table into docs/bench.md and, where writes and gateways were measured, the figures into
                     scripts/scale/figures.json; \`npm run tables\` then prints docs/scale.md by them
  --help             this text

Exit code: 0 every bar is met, 1 some bar is missed or there is no PostgreSQL, 2 a wrong option.`;

/** What is measured. */
export type Part = "writes" | "sweep" | "gateways" | "cooldown" | "deaths" | "retention";

/** All of them, in their order. */
export const parts: ReadonlyArray<Part> = ["writes", "sweep", "gateways", "cooldown", "deaths", "retention"];

/** What is to be measured, and how much of it. */
export interface Options {
  readonly quick: boolean;
  readonly parts: ReadonlyArray<Part>;
  readonly processes: number;
  readonly rounds: number;
  readonly gateways: number;
  readonly json: boolean;
  readonly write: boolean;
  readonly help: boolean;
}

const spec = {
  quick: { type: "boolean" },
  only: { type: "string", multiple: true },
  processes: { type: "string" },
  rounds: { type: "string" },
  gateways: { type: "string" },
  json: { type: "boolean" },
  write: { type: "boolean" },
  help: { type: "boolean" },
} as const;

/** @throws Error with what is wrong */
export const read = (args: ReadonlyArray<string>): Options => {
  const { values } = parseArgs({ args: [...args], options: spec });
  const quick = values.quick === true;
  const only = (values.only ?? []).flatMap((names) => names.split(",")).map(partOf);
  return {
    quick,
    parts: only.length === 0 ? parts : parts.filter((part) => only.includes(part)),
    processes: count("--processes", values.processes, quick ? 1 : 3),
    rounds: count("--rounds", values.rounds, quick ? 3 : 7),
    gateways: count("--gateways", values.gateways, 3),
    json: values.json === true,
    write: values.write === true,
    help: values.help === true,
  };
};

const partOf = (name: string): Part => {
  const found = parts.find((part) => part === name);
  if (found === undefined) throw new Error(`--only: expected ${parts.join(", ")}, got "${name}"`);
  return found;
};

const count = (flag: string, given: string | undefined, usual: number): number => {
  const value = Number(given ?? usual);
  if (!Number.isInteger(value) || value < 1) throw new Error(`${flag}: expected a number from 1, got "${given}"`);
  return value;
};
