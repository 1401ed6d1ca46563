/**
 * Reads the options of `npm run bench-store`.
 */
import { parseArgs } from "node:util";

export const help = `Usage: npm run bench-store -- [options]

Measures the cost of PostgreSQL compared with SQLite: happy runs, sweeps for dead processes, the facts that several gateways over one
database share, the time until others decide a dead gateway's runs, and the deletion of ended runs. It starts its own PostgreSQL in a
temporary folder, without a port, and leaves the machine's own server alone. Takes about fourteen minutes; run nothing else meanwhile.

  --quick            fewer runs, rounds and processes: about three minutes, wider spreads
  --only NAME        only these parts (writes, sweep, gateways, cooldown, deaths, retention); repeat it or use commas
  --processes N      number of processes for parts that run in separate processes; default 3, quick 1
  --rounds N         number of rounds in which contenders take turns; default 7, quick 3
  --gateways N       number of gateways over one database; default 3
  --json             prints one JSON document instead of the table
  --write            also writes the table to docs/bench.md and, if writes and gateways were measured, the figures to
                     scripts/scale/figures.json; \`npm run tables\` then recomputes its scale tables from them
  --help             prints this text

Exit code: 0 every bar is met, 1 some bar is missed or there is no PostgreSQL, 2 invalid options.`;

/** A part of the bench. */
export type Part = "writes" | "sweep" | "gateways" | "cooldown" | "deaths" | "retention";

/** All parts, in order. */
export const parts: ReadonlyArray<Part> = ["writes", "sweep", "gateways", "cooldown", "deaths", "retention"];

/** The parts to measure, and the size of the measurement. */
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

/** @throws Error if an option is invalid */
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
  if (!Number.isInteger(value) || value < 1) throw new Error(`${flag}: expected an integer ≥ 1, got "${given}"`);
  return value;
};
