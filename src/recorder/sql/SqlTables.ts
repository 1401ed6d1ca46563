/**
 * Names the tables of the store: each has the store's prefix, so that they stand beside the tables of a program.
 */
import type { SqlClient } from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import { RecorderError } from "../RecorderError.ts";

/** What the names of the tables begin with when no option says otherwise. */
export const prefixDefault = "stream_recovery_";

/** Longest prefix, in characters: PostgreSQL cuts a name after 63, and those of indexes are the longest. */
const prefixCharactersMax = 40;

/** A client with the names of the store's tables. */
export interface SqlTables {
  readonly sql: SqlClient;
  readonly prefix: string;
  readonly meta: Fragment;
  readonly leases: Fragment;
  readonly runs: Fragment;
  readonly incidents: Fragment;
  readonly questions: Fragment;
}

/** The tables, by what comes behind the prefix; before there was one it was the whole name. */
export const tableNames = ["meta", "leases", "runs", "incidents", "questions"] as const;

/**
 * Names the tables for a client.
 *
 * @param prefix a word that `prefixProblem` has nothing against: it is part of every statement
 */
export const make = (client: SqlClient, prefix: string): SqlTables => {
  // A client may give rows other names, and the names of columns here are those of the tables.
  const sql = client.withoutTransforms();
  const named = (name: (typeof tableNames)[number]) => sql.literal(prefix + name);
  return {
    sql,
    prefix,
    meta: named("meta"),
    leases: named("leases"),
    runs: named("runs"),
    incidents: named("incidents"),
    questions: named("questions"),
  };
};

/** Why a prefix cannot be used; undefined when it can. */
export const prefixProblem = (prefix: string): RecorderError | undefined => {
  const fits = /^[a-z_][a-z0-9_]*$/.test(prefix) && prefix.length <= prefixCharactersMax;
  // SQLite and PostgreSQL keep these for themselves.
  if (fits && !/^(sqlite|pg)_/.test(prefix)) return undefined;
  return new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `prefix: expected 1 to ${prefixCharactersMax} of a-z, 0-9 and _, not beginning with a digit, "sqlite_" or "pg_"; got ${JSON.stringify(prefix.slice(0, 64))}`,
  });
};
