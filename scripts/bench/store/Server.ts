/**
 * Starts a PostgreSQL server for a measurement and reads its costs: CPU of its processes, bytes of its log, and statements.
 *
 * Queries of the measurement share one open connection. A new client for each query would start and end a server process during the
 * measurement.
 */
import { Effect, Exit, Scope } from "effect";
import * as PostgresAddress from "../../../src/recorder/postgres/PostgresAddress.ts";
import * as PostgresClient from "../../../src/recorder/postgres/PostgresClient.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import * as Cluster from "../../postgres/Cluster.ts";
import { cpuNsWithEnded } from "../gateway/ProcessMeter.ts";

/** The database of measurements that need only one. */
export const database = "bench";

/** A statement without its values, and its number of calls. */
export interface Statement {
  readonly sql: string;
  readonly calls: number;
}

/** A server under measurement. */
export interface Server {
  /** Runs SQL in a database with a separate psql process. */
  readonly psql: (database: string, sql: string) => string;
  readonly address: (database: string) => string;
  readonly create: (database: string) => void;
  readonly rows: <Row extends object>(sql: string) => Promise<ReadonlyArray<Row>>;
  /** CPU of all its processes so far, including ended ones, in microseconds. */
  readonly cpuUs: () => number;
  /** Bytes of its write-ahead log so far. */
  readonly walBytes: () => Promise<number>;
  /** Starts to count the statements of all databases. */
  readonly count: () => Promise<void>;
  /** Stops counting, and returns the statements of a database, the most frequent first. */
  readonly counted: (database: string) => Promise<ReadonlyArray<Statement>>;
}

/** Settings that keep measurements reproducible: no vacuum and no checkpoint during one. */
const settings = [
  "shared_preload_libraries=pg_stat_statements",
  "pg_stat_statements.max=5000",
  "autovacuum=off",
  "max_wal_size=8GB",
  "checkpoint_timeout=1h",
  "max_connections=250",
  "shared_buffers=128MB",
];

/** Time until a changed setting and the server's statistics are visible everywhere, in seconds. */
const settledSeconds = 0.3;

const own = /\bpg_stat_|\bpg_reload_conf\b/;

/**
 * Starts a server, runs a measurement on it, and removes it.
 *
 * @throws Error if this machine has no PostgreSQL
 */
export const using = async <A>(body: (server: Server) => Promise<A>): Promise<A> => {
  const folder = Cluster.programs();
  if (folder === undefined)
    throw new Error("this needs PostgreSQL: install it, or set $POSTGRES_BIN to the folder of its programs");
  const cluster = Cluster.make(folder, undefined, settings);
  const scope = Scope.makeUnsafe();
  try {
    cluster.psql("postgres", `CREATE DATABASE ${database}`);
    cluster.psql(database, "CREATE EXTENSION pg_stat_statements");
    const admin = await Effect.runPromise(Scope.provide(adminOf(cluster.address(database)), scope));
    const rows = <Row extends object>(sql: string) => Effect.runPromise(admin.unsafe<Row>(sql));
    // Set with SQL, because a setting from the command line could not be changed later.
    await rows("ALTER SYSTEM SET pg_stat_statements.track = 'none'");
    await rows("SELECT pg_reload_conf()");
    return await body(serverOf(cluster, rows));
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void));
    cluster.remove();
  }
};

const adminOf = (text: string) => {
  const address = PostgresAddress.parse(text);
  if (address instanceof RecorderError) return Effect.fail(address);
  return PostgresClient.make({ address, connections: 1, lockMs: 5_000, name: "bench", password: undefined });
};

const serverOf = (cluster: Cluster.Cluster, rows: Server["rows"]): Server => {
  const pid = cluster.pid();
  const first = async <Row extends object>(sql: string): Promise<Row> => {
    const [row] = await rows<Row>(sql);
    if (row === undefined) throw new Error(`the server has no row for: ${sql}`);
    return row;
  };
  return {
    rows,
    address: cluster.address,
    psql: cluster.psql,
    create: (name) => void cluster.psql("postgres", `CREATE DATABASE ${name}`),
    cpuUs: () => cpuNsWithEnded(pid) / 1_000,
    walBytes: async () => {
      const { bytes } = await first<{ readonly bytes: string }>(
        "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::text AS bytes",
      );
      return Number(bytes);
    },
    count: async () => {
      await rows("ALTER SYSTEM SET pg_stat_statements.track = 'top'");
      await rows(`SELECT pg_reload_conf()::text AS done, pg_sleep(${settledSeconds})::text AS slept`);
      await rows("SELECT pg_stat_statements_reset()::text AS done");
    },
    counted: async (name) => {
      await rows("ALTER SYSTEM SET pg_stat_statements.track = 'none'");
      await rows("SELECT pg_reload_conf()");
      const found = await rows<{ readonly calls: string; readonly query: string }>(
        `SELECT calls::text AS calls, query FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
          WHERE d.datname = '${name}' ORDER BY s.calls DESC`,
      );
      const others = found.filter(({ query }) => !own.test(query));
      return others.map(({ calls, query }) => ({ calls: Number(calls), sql: query.replaceAll(/\s+/g, " ") }));
    },
  };
};
