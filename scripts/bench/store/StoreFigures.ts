/**
 * Turns what was measured of the store into the figures that docs/scale.md is computed from.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { median } from "../Median.ts";
import type { Writes } from "./Writes.ts";

/** Figures that this bench measures, by their names in scripts/scale/figures.json. */
export type StoreFigures = Readonly<
  Record<"recordUs" | "walBytes" | "tableBytes" | "serverUs", { readonly value: number; readonly worst: number }>
>;

/** Writes of a happy run. */
const writesOfRun = 3;

const whole = (value: number): number => Math.max(1, Math.round(value));

/** The figures: the middle of the processes, and the worst of the same thing. */
export const figuresOf = (results: ReadonlyArray<Writes>): StoreFigures => {
  const all = (of: (one: Writes) => number) => results.map(of);
  const figure = (usual: ReadonlyArray<number>, worst: ReadonlyArray<number>) => ({
    value: whole(median(usual)),
    worst: whole(Math.max(median(usual), ...worst)),
  });
  const server = all(({ server_us }) => server_us / writesOfRun);
  return {
    // What a run costs more over PostgreSQL than in memory may come out below its writes alone: those are measured by themselves.
    recordUs: figure(
      all(({ postgres_us }) => postgres_us),
      all(({ alone_us }) => alone_us),
    ),
    walBytes: figure(
      all(({ wal_bytes }) => wal_bytes),
      all(({ alone_wal_bytes }) => alone_wal_bytes),
    ),
    tableBytes: figure(
      all(({ rows_bytes }) => rows_bytes),
      all(({ rows_bytes }) => rows_bytes),
    ),
    serverUs: figure(
      server,
      all(({ alone_server_us }) => alone_server_us / writesOfRun),
    ),
  };
};

interface Measured {
  readonly measured: Record<string, { value: number; worst: number; source: string; load: string }>;
}

/**
 * Puts them into a file of figures; all else there stays.
 *
 * @param command what was typed
 * @param load the machine's load meanwhile, in words
 * @throws Error where the file lacks one of them
 */
export const put = (file: URL, figures: StoreFigures, command: string, load: string): void => {
  // Figures.ts holds the file to its schema.
  const all = JSON.parse(readFileSync(file, "utf8")) as Measured;
  for (const [name, { value, worst }] of Object.entries(figures)) {
    const entry = all.measured[name];
    if (entry === undefined) throw new Error(`${file.pathname} has no figure ${name}`);
    Object.assign(entry, { value, worst, source: `[the bench](bench.md#postgresql), \`${command}\``, load });
  }
  writeFileSync(file, `${JSON.stringify(all, null, 2)}\n`);
};
