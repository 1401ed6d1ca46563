/**
 * Names the tables of the store: each has the store's prefix, so that they stand beside the tables of a program.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import { RecorderError } from "../RecorderError.ts";
import * as SqlDialect from "./SqlDialect.ts";

/** What the names of the tables begin with when no option says otherwise. */
export const prefixDefault = "stream_recovery_";

/** Longest prefix, in characters: PostgreSQL cuts a name after 63, and those of indexes are the longest. */
const prefixCharactersMax = 40;

/** A client with the names of the store's tables. */
export interface SqlTables {
  readonly sql: SqlClient;
  readonly prefix: string;
  readonly dialect: SqlDialect.SqlDialect;
  readonly meta: Fragment;
  readonly leases: Fragment;
  readonly runs: Fragment;
  readonly incidents: Fragment;
  readonly questions: Fragment;
  readonly facts: Fragment;
  readonly groups: Fragment;
  /** On PostgreSQL: the long parts of runs, and the number under which new ones are put; see `SqlParts`. */
  readonly parts: Fragment;
  readonly shelves: Fragment;
  /** The text of a statement for the client's database; see `ask`. It is made once. */
  readonly textOf: (template: string) => string;
  /**
   * Runs a statement of a fixed text inside of a transaction: for what every write does. Its text is made once, and the
   * statement goes straight to the transaction's connection.
   *
   * @param template SQL with `{runs}` for a table's name and `?` for a value
   * @param values a list is one value, on PostgreSQL
   */
  readonly ask: <Row extends object>(
    template: string,
    values: ReadonlyArray<string | number | null | ReadonlyArray<string>>,
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError>;
}

/** The tables of the first version, by what comes behind the prefix; before there was one it was the whole name. */
export const firstTableNames = ["meta", "leases", "runs", "incidents", "questions"] as const;

/** All tables, by what comes behind the prefix. */
export const tableNames = [...firstTableNames, "facts", "groups"] as const;

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
    dialect: SqlDialect.of(sql, prefix),
    meta: named("meta"),
    leases: named("leases"),
    runs: named("runs"),
    incidents: named("incidents"),
    questions: named("questions"),
    facts: named("facts"),
    groups: named("groups"),
    parts: sql.literal(`${prefix}parts`),
    shelves: sql.literal(`${prefix}shelves`),
    ...asking(sql, prefix),
  };
};

const asking = (sql: SqlClient, prefix: string): Pick<SqlTables, "ask" | "textOf"> => {
  const texts = new Map<string, string>();
  const numbered = (text: string) => {
    let n = 0;
    return text.replaceAll("?", () => {
      n += 1;
      return `$${n}`;
    });
  };
  const made = (template: string) => {
    const text = template.replaceAll(/\{([a-z]+)\}/g, (_, name: string) => prefix + name);
    return sql.onDialectOrElse({ sqlite: () => text, orElse: () => numbered(text) });
  };
  const textOf = (template: string): string => {
    let text = texts.get(template);
    if (text === undefined) {
      text = made(template);
      texts.set(template, text);
    }
    return text;
  };
  const ask = <Row extends object>(
    template: string,
    values: ReadonlyArray<string | number | null | ReadonlyArray<string>>,
  ) => {
    const known = textOf(template);
    return Effect.contextWith((context: Context.Context<never>): Effect.Effect<ReadonlyArray<Row>, SqlError> => {
      const [connection] = Context.getOrUndefined(context, sql.transactionService) ?? [];
      // As a statement of the client does: what its columns are is for the caller to know.
      return connection === undefined
        ? sql.unsafe<Row>(known, values)
        : (connection.execute(known, values, undefined) as Effect.Effect<ReadonlyArray<Row>, SqlError>);
    });
  };
  return { ask, textOf };
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
