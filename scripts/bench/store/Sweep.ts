/**
 * Measures the cost of a sweep for dead processes in PostgreSQL with few and with many live runs, with the server's plans.
 */
import { Effect, Layer, ManagedRuntime } from "effect";
import { RunRecorder } from "../../../src/index.ts";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import * as E from "../../../test/recorder/Entries.ts";
import { median } from "../Median.ts";
import { database, type Server, type Statement, using } from "./Server.ts";

/** The size of the measurement. */
export interface SweepSize {
  readonly few: number;
  readonly many: number;
  /** Number of sweeps that are measured. */
  readonly sweeps: number;
}

/** The cost of a sweep with few and with many live runs. */
export interface Sweep {
  readonly few_ms: number;
  readonly many_ms: number;
  readonly few_server_us: number;
  readonly many_server_us: number;
  /** The plans of the sweep's statements with many live runs. */
  readonly plan: ReadonlyArray<string>;
}

/** Number of processes that own the live runs. */
const owners = 3;

/** The tables that contain rows of runs, and the columns to copy. */
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

/** Copies a live run many times, for live owners. It assumes only that a run's id is in the column `run_id`. */
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

/** Duration of the owners' leases, in milliseconds. It is longer than the measurement. */
const livesMs = 3_600_000;

/** Inserts leases of owners that stay alive for the whole measurement. */
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

/** Looks for the same runs as a gateway's sweep: runs of dead processes, and parked runs whose answer was not acted on. */
const looks = Effect.map(CrashRecovery.recover(), ({ runs }) => runs.length);

/** The server's plans for the statements of a sweep that read runs, with the settings of the recorder's connections. */
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
 * Makes a counted statement explainable. The server replaces constants with placeholders: the unit of `extract`, a state, and numbers. The
 * state is inserted as a subquery, because the planner does not know it either: one plan may serve all states.
 */
export const explainable = (sql: string): string =>
  sql
    .replaceAll(/extract\(\$\d+ FROM/gi, "extract(epoch FROM")
    .replaceAll(/\bstate = \$\d+/g, "state = (SELECT 'asking')")
    .replaceAll(/\$\d+/g, "1000");

/** Measures sweeps. Each must find nothing. */
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
    if (found !== 0) throw new Error(`a sweep found ${found} runs of live processes`);
  }
  return { ms: median(ms), us: (server.cpuUs() - cpu) / sweeps };
};

const measureSweeps = async (server: Server, size: SweepSize): Promise<Sweep> => {
  const layer = PostgresRunRecorder.layer({ address: server.address(database), retention: false });
  const runtime = ManagedRuntime.make(Layer.orDie(layer));
  const recorder = await runtime.runPromise(RunRecorder);
  await runtime.runPromise(recorder.write("first", [E.begun("first", Date.now()), E.attempt(1)]));
  lease(server);
  const sweeps = () => sweep(server, size.sweeps, () => runtime.runPromise(looks));
  copy(server, "first", 1, size.few);
  // The first pass warms up the connections' plans and pages.
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

/** Measures on a temporary server. */
export const measure = (size: SweepSize): Promise<Sweep> => using((server) => measureSweeps(server, size));
