/**
 * Says how the store works on the database behind a client: how a transaction begins, whose time counts, what names are.
 */
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import { RecorderError } from "../RecorderError.ts";
import * as SqlPostgres from "./postgres/SqlPostgres.ts";
import * as SqlNodeSqlite from "./sqlite/SqlNodeSqlite.ts";

/** What differs from database to database. */
export interface SqlDialect {
  readonly name: "sqlite" | "postgres";
  /** Runs a body as one transaction that may write. */
  readonly write: SqlPostgres.Transact;
  /** Commits statements without any effect; undefined where each waits for a server. */
  readonly step: SqlNodeSqlite.Step | undefined;
  /** Runs a body that sees the database at one moment. */
  readonly read: SqlPostgres.Transact;
  /** Runs what makes tables, one process at a time. */
  readonly migrate: SqlPostgres.Transact;
  /**
   * The time by which processes judge each other's leases, in milliseconds since the epoch.
   *
   * @param own the wall clock of this process: on SQLite all of them stand on one machine
   */
  readonly time: (own: number) => Fragment;
  /**
   * What else a lease is told when it is renewed: the wall clock of its process, where that is not the time of all. Times on a
   * record are by that clock.
   */
  readonly told: {
    readonly column: Fragment;
    readonly set: (own: number) => Fragment;
    /** When the process of the lease `l` renewed it last, by its own wall clock. */
    readonly renewedAt: Fragment;
  };
  /** The type of a column of names: compared by their bytes, whatever language the database is made for. */
  readonly word: Fragment;
  /** After so many beats that were missed a write renews the lease itself. */
  readonly beatsMissed: number;
  /** What the statement that every write begins with selects besides, and what becomes of that. */
  readonly id: {
    readonly column: string;
    readonly note: (row: { readonly xid?: string } | undefined) => Effect.Effect<void>;
  };
  /** The columns of a run's row, without its record, and with it. */
  readonly head: string;
  readonly row: Fragment;
  /** A text as a column keeps it. */
  readonly kept: (text: string) => string;
  /** Whether a column keeps a text as it is, so that a row is found by it. */
  readonly keeps: (text: string) => boolean;
  /** What an id has to be, where a column does not keep it. */
  readonly keepable: string;
  /** The type of a column that counts rows up. */
  readonly ordinal: Fragment;
}

/** How the store works on the database of a client. */
export const of = (sql: SqlClient.SqlClient, prefix: string): SqlDialect =>
  sql.onDialectOrElse({ pg: () => postgres(sql, prefix), orElse: () => sqlite(sql) });

/** Why the store cannot work on the database of a client; undefined where it can. */
export const problem = (sql: SqlClient.SqlClient): RecorderError | undefined => {
  const other = () =>
    new RecorderError({
      reason: "bad_option",
      run_id: "",
      message: "the client speaks to neither SQLite nor PostgreSQL, and the recorder knows no other database",
    });
  return sql.onDialectOrElse({ sqlite: () => undefined, pg: () => undefined, orElse: other });
};

const sqlite = (sql: SqlClient.SqlClient): SqlDialect => ({
  name: "sqlite",
  write: SqlNodeSqlite.transactionOf(sql),
  step: SqlNodeSqlite.stepOf(sql),
  read: (body) => Effect.provideService(sql.withTransaction(body), SqlClient.BeginTransaction, "BEGIN"),
  migrate: sql.withTransaction,
  time: (own) => sql`${own}`,
  told: { column: sql.literal(""), set: () => sql.literal(""), renewedAt: sql.literal("l.expires_at - l.lease_ms") },
  word: sql.literal("TEXT"),
  beatsMissed: 1,
  id: { column: "", note: () => Effect.void },
  head: "run_id, seq, version, owner",
  row: sql.literal("seq, run_id, version, owner, record"),
  kept: (text) => text,
  // A text of SQLite is UTF-8, which has no place for half of a pair: two ids would be one.
  keeps: (text) => text.isWellFormed(),
  keepable: "a text without half of a pair, which SQLite does not keep",
  ordinal: sql.literal("INTEGER PRIMARY KEY AUTOINCREMENT"),
});

const postgres = (sql: SqlClient.SqlClient, prefix: string): SqlDialect => ({
  name: "postgres",
  write: SqlPostgres.write(sql),
  step: undefined,
  read: SqlPostgres.read(sql),
  migrate: SqlPostgres.migrate(sql, prefix),
  time: () => sql.literal("(extract(epoch FROM clock_timestamp()) * 1000)::double precision"),
  told: {
    column: sql.literal(", told_at DOUBLE PRECISION"),
    set: (own) => sql`, told_at = ${own}`,
    renewedAt: sql.literal("COALESCE(l.told_at, l.started_at)"),
  },
  word: sql.literal('TEXT COLLATE "C"'),
  // A write that waits for a lock would hold up the heartbeat with the row of the lease, so it renews only what is late.
  beatsMissed: 2,
  id: { column: SqlPostgres.idColumn, note: (row) => SqlPostgres.note(sql, row?.xid) },
  head: "run_id, seq, shelf, version, owner",
  row: sql.literal("seq, shelf, run_id, version, owner, record, changed"),
  kept: (text) => text.replaceAll("\0", "\uFFFD"),
  keeps: (text) => !text.includes("\0") && text.isWellFormed(),
  keepable: "a text without NUL and without half of a pair, which PostgreSQL does not keep",
  ordinal: sql.literal("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
});
