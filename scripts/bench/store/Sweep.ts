/**
 * Measures what a sweep for dead processes costs in PostgreSQL beside few live runs and beside many, and what the server does for it.
 */
import { Effect, Layer, ManagedRuntime } from "effect";
import { RunRecorder } from "../../../src/index.ts";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import * as E from "../../../test/recorder/Entries.ts";
import { median } from "../Median.ts";
import { database, type Server, type Statement, using } from "./Server.ts";

/** What one process measures. */
export interface SweepSize {
  readonly few: number;
  readonly many: number;
  /** Sweeps that count. */
  readonly sweeps: number;
}

/** What a sweep costs, beside few live runs and beside many. */
export interface Sweep {
  readonly few_ms: number;
  readonly many_ms: number;
  readonly few_server_us: number;
  readonly many_server_us: number;
  /** The plans of the sweep's statements beside many. */
  readonly plan: ReadonlyArray<string>;
}

/** Processes that drive the live runs. */
const owners = 3;

/** The tables with a row of a run, and their columns that are to be copied. */
const columnsOf = (server: Server): ReadonlyMap<string, ReadonlyArray<string>> => {
  const rows = server.psql(
    database,
    `SELECT table_name, column_name FROM information_schema.columns c JOIN information_schema.tables t USING (table_name, table_schema)
      WHERE t.table_type = 'BASE TABLE' AND table_schema = 'public' AND table_name LIKE 'stream_recovery_%' AND is_identity = 'NO'
        AND COALESCE(column_default, '') NOT LIKE 'nextval%' ORDER BY 1, ordinal_position`,
  );
  const tables = Map.groupBy(
    rows.split("\n").map((row) => row.split("|")),
    ([table = ""]) => table,
  );
  return new Map([...tables].map(([table, found]) => [table, found.map(([, column = ""]) => column)]));
};

/** Copies a live run so many times, for processes that live. It knows of the tables only that a run's id stands in them. */
const copy = (server: Server, run: string, from: number, to: number): void => {
  for (const [table, columns] of columnsOf(server)) {
    if (!columns.includes("run_id")) continue;
    const values = columns.map((column) => {
      if (column === "run_id") return `'live-' || copy`;
      return column === "owner"
        ? `CASE WHEN owner IS NULL THEN NULL ELSE 'lease-' || (copy % ${owners}) END`
        : `"${column}"`;
    });
    const names = columns.map((column) => `"${column}"`);
    server.psql(
      database,
      `INSERT INTO ${table} (${names.join(", ")}) SELECT ${values.join(", ")} FROM ${table}, generate_series(${from}, ${to}) copy
        WHERE run_id = '${run}'`,
    );
  }
  server.psql(database, "ANALYZE");
};

/** So long do the leases of the others last, in milliseconds: longer than this takes. */
const livesMs = 3_600_000;

/** Leases of processes that live for as long as this takes. */
const lease = (server: Server): void => {
  const columns = columnsOf(server).get("stream_recovery_leases") ?? [];
  const values = columns.map((column) => {
    if (column === "id") return `'lease-' || copy`;
    if (column === "lease_ms") return String(livesMs);
    return column === "expires_at" ? `expires_at + ${livesMs / 2}` : `"${column}"`;
  });
  server.psql(
    database,
    `INSERT INTO stream_recovery_leases (${columns.join(", ")}) SELECT ${values.join(", ")}
      FROM (SELECT * FROM stream_recovery_leases LIMIT 1) one, generate_series(0, ${owners - 1}) copy`,
  );
};

/** Finds what a gateway's sweep finds: runs of dead processes, and parked ones whose answer nobody acts on. */
const looks = Effect.map(CrashRecovery.recover(), ({ runs }) => runs.length);

/** What the server does for each statement of a sweep that reads runs, under the settings of the recorder's connections. */
const plansOf = (server: Server, statements: ReadonlyArray<Statement>): ReadonlyArray<string> =>
  statements
    .filter(({ sql }) => /^(?:SELECT|WITH)\b.*_runs\b/.test(sql))
    .flatMap(({ sql }) => {
      const plan = server.psql(
        database,
        `SET enable_seqscan = off; EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, COSTS OFF) ${explainable(sql)}`,
      );
      return [`-- ${sql}`, ...plan.split("\n"), ""];
    });

/**
 * A statement as the server counts it has names in the place of its constants: the unit of the clock, a state, and numbers. The state is
 * one that the planner does not know either: it may plan once for all of them.
 */
export const explainable = (sql: string): string =>
  sql
    .replaceAll(/extract\(\$\d+ FROM/gi, "extract(epoch FROM")
    .replaceAll(/\bstate = \$\d+/g, "state = (SELECT 'asking')")
    .replaceAll(/\$\d+/g, "1000");

/** What sweeps cost each, where each of them finds nothing. */
const sweep = async (
  server: Server,
  sweeps: number,
  once: () => Promise<number>,
): Promise<{ readonly ms: number; readonly us: number }> => {
  const ms: Array<number> = [];
  const cpu = server.cpuUs();
  for (let n = 0; n < sweeps; n += 1) {
    const from = performance.now();
    const found = await once();
    ms.push(performance.now() - from);
    if (found !== 0) throw new Error(`a sweep found ${found} runs of processes that live`);
  }
  return { ms: median(ms), us: (server.cpuUs() - cpu) / sweeps };
};

const measured = async (server: Server, size: SweepSize): Promise<Sweep> => {
  const layer = PostgresRunRecorder.layer({ address: server.address(database), retention: false });
  const runtime = ManagedRuntime.make(Layer.orDie(layer));
  const recorder = await runtime.runPromise(RunRecorder);
  await runtime.runPromise(recorder.write("first", [E.begun("first", Date.now()), E.attempt(1)]));
  lease(server);
  const sweeps = () => sweep(server, size.sweeps, () => runtime.runPromise(looks));
  copy(server, "first", 1, size.few);
  // Plans and pages of the connections are there from then on.
  await sweeps();
  const few = await sweeps();
  copy(server, "first", size.few + 1, size.many);
  await sweeps();
  const many = await sweeps();
  await server.count();
  await runtime.runPromise(looks);
  const plan = plansOf(server, await server.counted(database));
  await runtime.dispose();
  return { few_ms: few.ms, many_ms: many.ms, few_server_us: few.us, many_server_us: many.us, plan };
};

/** Measures on a server that is gone afterwards. */
export const measure = (size: SweepSize): Promise<Sweep> => using((server) => measured(server, size));
