/**
 * Describes the differences between the databases: transactions, clocks, column types and names.
 */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import { RecorderError } from "../RecorderError.ts";
import * as SqlPostgres from "./postgres/SqlPostgres.ts";
import * as SqlNodeSqlite from "./sqlite/SqlNodeSqlite.ts";

/** The properties of a database that statements depend on. */
export interface SqlDialect {
  readonly name: "sqlite" | "postgres";
  /** Runs a body as one transaction that may write. */
  readonly write: SqlPostgres.Transact;
  /** Commits statements synchronously; undefined if every statement must wait for a server. */
  readonly step: SqlNodeSqlite.Step | undefined;
  /** Detects changes by other connections synchronously; undefined if only a statement to the server could detect them. */
  readonly changes: SqlNodeSqlite.Changes | undefined;
  /** Runs a body on a snapshot of the database. */
  readonly read: SqlPostgres.Transact;
  /** Runs a migration, one process at a time. */
  readonly migrate: SqlPostgres.Transact;
  /**
   * The clock by which processes judge each other's leases, in milliseconds since the epoch.
   *
   * @param own wall clock of this process. SQLite uses this clock, because all processes run on one machine
   */
  readonly time: (own: number) => Fragment;
  /**
   * The wall clock of the lease's process. If `time` is another clock, renewals also store this wall clock, because it measured the times
   * in the records of that process.
   */
  readonly wallClock: {
    readonly column: Fragment;
    readonly set: (own: number) => Fragment;
    /** Last renewal of the lease `l`, by the wall clock of its process. */
    readonly renewedAt: Fragment;
  };
  /** Type of a column of names, which are compared by their bytes regardless of the database's locale. */
  readonly word: Fragment;
  /** Number of missed heartbeats after which a write renews the lease itself. */
  readonly beatsMissed: number;
  /**
   * An extra column in the first statement of every write, and the function that receives its value: on PostgreSQL, the id of the
   * transaction.
   */
  readonly id: {
    readonly column: string;
    readonly note: (row: { readonly xid?: string } | undefined) => Effect.Effect<void>;
  };
  /** `head`: columns of a run's row without its record. `row`: all columns. */
  readonly head: string;
  readonly row: Fragment;
  /** Converts a string to a form that a column can store. */
  readonly toStorable: (text: string) => string;
  /** True if a column stores a string unchanged, so that the string can identify a row. */
  readonly canStore: (text: string) => boolean;
  /** Requirement on an id, as a phrase for messages. */
  readonly keepable: string;
  /** Type of an auto-incrementing column. */
  readonly ordinal: Fragment;
}

/** Returns the dialect of a client's database. */
export const of = (sql: SqlClient.SqlClient, prefix: string): SqlDialect =>
  sql.onDialectOrElse({ pg: () => postgres(sql, prefix), orElse: () => sqlite(sql) });

/** Returns an error if the store does not support the database of this client. */
export const findProblem = (sql: SqlClient.SqlClient): RecorderError | undefined => {
  const unsupportedError = () =>
    new RecorderError({
      reason: "bad_option",
      run_id: "",
      message: "the client is for neither SQLite nor PostgreSQL, and the recorder supports no other database",
    });
  return sql.onDialectOrElse({ sqlite: () => undefined, pg: () => undefined, orElse: unsupportedError });
};

const sqlite = (sql: SqlClient.SqlClient): SqlDialect => ({
  name: "sqlite",
  write: SqlNodeSqlite.transactionOf(sql),
  step: SqlNodeSqlite.stepOf(sql),
  changes: SqlNodeSqlite.changesOf(sql),
  read: (body) => Effect.provideService(sql.withTransaction(body), SqlClient.BeginTransaction, "BEGIN"),
  migrate: sql.withTransaction,
  time: (own) => sql`${own}`,
  wallClock: {
    column: sql.literal(""),
    set: () => sql.literal(""),
    renewedAt: sql.literal("l.expires_at - l.lease_ms"),
  },
  word: sql.literal("TEXT"),
  beatsMissed: 1,
  id: { column: "", note: () => Effect.void },
  head: "run_id, seq, version, owner",
  row: sql.literal("seq, run_id, version, owner, record"),
  toStorable: (text) => text,
  // SQLite stores UTF-8, which cannot represent an unpaired surrogate. Two ids that differ only in one would become the same id.
  canStore: (text) => text.isWellFormed(),
  keepable: "a string without lone surrogates, which SQLite cannot keep",
  ordinal: sql.literal("INTEGER PRIMARY KEY AUTOINCREMENT"),
});

const postgres = (sql: SqlClient.SqlClient, prefix: string): SqlDialect => ({
  name: "postgres",
  write: SqlPostgres.write(sql),
  step: undefined,
  changes: undefined,
  read: SqlPostgres.read(sql),
  migrate: SqlPostgres.migrate(sql, prefix),
  time: () => sql.literal("(extract(epoch FROM clock_timestamp()) * 1000)::double precision"),
  wallClock: {
    column: sql.literal(", told_at DOUBLE PRECISION"),
    set: (own) => sql`, told_at = ${own}`,
    renewedAt: sql.literal("COALESCE(l.told_at, l.started_at)"),
  },
  word: sql.literal('TEXT COLLATE "C"'),
  // A write that waits for a lock also holds the row of its lease and blocks the heartbeat. So a write renews the lease only if the lease
  // is late.
  beatsMissed: 2,
  id: { column: SqlPostgres.idColumn, note: (row) => SqlPostgres.rememberXid(sql, row?.xid) },
  head: "run_id, seq, shelf, version, owner",
  row: sql.literal("seq, shelf, run_id, version, owner, record, changed"),
  toStorable: (text) => text.replaceAll("\0", "\uFFFD"),
  canStore: (text) => !text.includes("\0") && text.isWellFormed(),
  keepable: "a string without NUL and without lone surrogates, which PostgreSQL cannot keep",
  ordinal: sql.literal("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
});
