/**
 * The rows of the bench about the SQL recorder.
 */
import { median, spread } from "./Median.ts";
import * as Processes from "./Processes.ts";
import { type Group, type Row, type Size, spreadText } from "./Row.ts";
import type { Figure } from "./ScaleFigures.ts";
import type { Sqlite, SqliteSize } from "./Sqlite.ts";

/** Number of runs that a dead process left. */
const orphanRuns = 10_000;
/** Number of runs on record. */
const storedRuns = 1_000_000;

const medianOf = (results: ReadonlyArray<Sqlite>, name: string): number => median(results.map((it) => it[name] ?? 0));

const measureSeveral = (size: Size, sized: SqliteSize, processes = size.processes) =>
  Processes.several(processes, "sqlite", sized);

const row = (what: string, value: string, numbers: Row["numbers"]): Row => ({
  what,
  value,
  bar: undefined,
  verdict: undefined,
  numbers,
});

const happyLine = {
  what: "a happy run with SQLite over memory",
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const runs = size.quick ? 200 : 1_000;
    const memory = medianOf(await measureSeveral(size, { what: "happy", store: "memory", runs }), "us");
    const rows: Array<Row> = [];
    for (const store of ["full", "normal"] as const) {
      const results = await measureSeveral(size, { what: "happy", store, runs });
      const us = spread(results.map((it) => it.us ?? 0));
      const commits = medianOf(results, "commits");
      rows.push(
        row(
          `a happy run of 100 deltas with SQLite, synchronous ${store}`,
          `${spreadText(us, 0, "µs")}, ${memory.toFixed(0)} in memory; ${commits.toFixed(1)} commits, ${((us.median - memory) / commits).toFixed(0)} µs each`,
          { us: us.median, memory_us: memory, commits },
        ),
      );
    }
    return rows;
  },
};

const besideLine = {
  what: "CPU of concurrent short runs",
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const rows: Array<Row> = [];
    for (const at of [1, 4, 50]) {
      const sized = { what: "beside", runs: size.quick ? 100 : 400, at } as const;
      const memory = medianOf(await measureSeveral(size, { ...sized, store: "memory" }), "cpu_us");
      const results = await measureSeveral(size, { ...sized, store: "full" });
      const us = spread(results.map((it) => it.cpu_us ?? 0));
      const commits = medianOf(results, "commits");
      rows.push(
        row(
          `CPU of a run of 20 events with SQLite, synchronous full, ${at} at the same time`,
          `${spreadText(us, 0, "µs")}, ${memory.toFixed(0)} in memory; ${commits.toFixed(2)} commits a run`,
          { us: us.median, memory_us: memory, commits },
        ),
      );
    }
    return rows;
  },
};

const commitOf = (store: "full" | "normal"): string => `an incident's commit, synchronous ${store}`;

const incidentLine = {
  what: "incident commit latency",
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const rows: Array<Row> = [];
    for (const store of ["full", "normal"] as const) {
      const results = await measureSeveral(size, { what: "incident", store, commits: size.quick ? 300 : 2_000 });
      const p50 = spread(results.map((it) => it.p50_us ?? 0));
      const p99_us = medianOf(results, "p99_us");
      const numbers = { p50_us: p50.median, p50_max_us: p50.max, p99_us };
      rows.push(row(commitOf(store), `${spreadText(p50, 0, "µs")}, p99 ${p99_us.toFixed(0)}`, numbers));
    }
    return rows;
  },
};

const orphansLine = {
  what: "recovery of orphans",
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const runs = size.quick ? orphanRuns / 10 : orphanRuns;
    const results = await measureSeveral(size, { what: "orphans", runs }, Math.min(3, size.processes));
    const s = spread(results.map((it) => (it.ms ?? 0) / 1_000));
    const each = medianOf(results, "us_each");
    return [
      row(
        `${runs.toLocaleString("en")} orphans found, claimed and decided, on disk`,
        `${spreadText(s, 1, "s")}, ${each.toFixed(0)} µs each`,
        { s: s.median, us_each: each },
      ),
    ];
  },
};

const storedLine = {
  what: "many stored runs",
  run: async (size: Size): Promise<ReadonlyArray<Row>> => {
    const runs = size.quick ? storedRuns / 50 : storedRuns;
    const results = await measureSeveral(size, { what: "stored", runs }, 1);
    const ms = (name: string) => `${medianOf(results, `${name}_ms`).toFixed(1)} ms`;
    const numbers = results[0] ?? {};
    const pruned = medianOf(results, "pruned").toLocaleString("en");
    return [
      row(
        `${runs.toLocaleString("en")} stored runs`,
        `list of 100 ${ms("list")}, a page in the middle ${ms("page")}, live ones ${ms("live")}, orphans ${ms("orphans")}, show ${ms("show")}`,
        numbers,
      ),
      row(`${pruned} of them deleted`, `${ms("prune")}, longest block of the thread ${ms("block")}`, numbers),
    ];
  },
};

/** The costs of the SQL recorder. The design has no bars for them. */
export const sqlite: Group = { name: "sqlite", lines: [happyLine, besideLine, incidentLine, orphansLine, storedLine] };

/** The cost of a commit for the scale tables of docs/bench.md: the median of the processes' medians, and the slowest process's median. */
export const commitFigureOf = (rows: ReadonlyArray<Row>): Readonly<Record<"fileCommitUs", Figure>> | undefined => {
  const { p50_max_us, p50_us } = rows.find(({ what }) => what === commitOf("full"))?.numbers ?? {};
  if (p50_us === undefined || p50_max_us === undefined) return undefined;
  return { fileCommitUs: { value: Math.round(p50_us), worst: Math.round(p50_max_us) } };
};
