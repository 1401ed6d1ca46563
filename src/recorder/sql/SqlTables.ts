/**
 * Names the tables of the store. Each name has the store's prefix, to distinguish it from a program's own tables.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import { RecorderError } from "../RecorderError.ts";
import * as SqlDialect from "./SqlDialect.ts";

/** Default prefix of the table names. */
export const prefixDefault = "stream_recovery_";

/** Maximum length of a prefix, in characters. PostgreSQL truncates names after 63 characters, and the index names are the longest. */
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
  /** The long parts of runs on PostgreSQL, and the number of the shelf for new parts; see `SqlParts`. */
  readonly parts: Fragment;
  readonly shelves: Fragment;
  /** Returns the cached text of a statement for the client's database; see `ask`. */
  readonly textOf: (template: string) => string;
  /**
   * Runs a statement of fixed text inside a transaction. Use it for the statements that every write needs: their text is built only once,
   * and the statement goes directly to the transaction's connection.
   *
   * @param template SQL with `{runs}` for a table's name and `?` for a value
   * @param values values of the statement; on PostgreSQL, a list is one value
   */
  readonly ask: <Row extends object>(
    template: string,
    values: ReadonlyArray<string | number | null | ReadonlyArray<string>>,
  ) => Effect.Effect<ReadonlyArray<Row>, SqlError>;
}

/** Tables of the first version, as named there: without a prefix. */
export const firstTableNames = ["meta", "leases", "runs", "incidents", "questions"] as const;

/** All tables, without the prefix. */
export const tableNames = [...firstTableNames, "facts", "groups"] as const;

/**
 * Names the tables for a client.
 *
 * @param prefix prefix that `prefixProblem` accepts, because it becomes part of every statement
 */
export const make = (client: SqlClient, prefix: string): SqlTables => {
  // A client may rename columns of rows, but the code here uses the names in the tables.
  const sql = client.withoutTransforms();
  const nameOf = (name: (typeof tableNames)[number]) => sql.literal(prefix + name);
  return {
    sql,
    prefix,
    dialect: SqlDialect.of(sql, prefix),
    meta: nameOf("meta"),
    leases: nameOf("leases"),
    runs: nameOf("runs"),
    incidents: nameOf("incidents"),
    questions: nameOf("questions"),
    facts: nameOf("facts"),
    groups: nameOf("groups"),
    parts: sql.literal(`${prefix}parts`),
    shelves: sql.literal(`${prefix}shelves`),
    ...makeAsk(sql, prefix),
  };
};

const makeAsk = (sql: SqlClient, prefix: string): Pick<SqlTables, "ask" | "textOf"> => {
  const texts = new Map<string, string>();
  const numberParameters = (text: string) => {
    let n = 0;
    return text.replaceAll("?", () => {
      n += 1;
      return `$${n}`;
    });
  };
  const compile = (template: string) => {
    const text = template.replaceAll(/\{([a-z]+)\}/g, (_, name: string) => prefix + name);
    return sql.onDialectOrElse({ sqlite: () => text, orElse: () => numberParameters(text) });
  };
  const textOf = (template: string): string => {
    let text = texts.get(template);
    if (text === undefined) {
      text = compile(template);
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
      // The row type is unchecked, as in a client's own statements, because callers know their columns.
      return connection === undefined
        ? sql.unsafe<Row>(known, values)
        : (connection.execute(known, values, undefined) as Effect.Effect<ReadonlyArray<Row>, SqlError>);
    });
  };
  return { ask, textOf };
};

/** Returns an error if a prefix cannot be used. */
export const prefixProblem = (prefix: string): RecorderError | undefined => {
  const fits = /^[a-z_][a-z0-9_]*$/.test(prefix) && prefix.length <= prefixCharactersMax;
  // SQLite and PostgreSQL reserve these prefixes.
  if (fits && !/^(sqlite|pg)_/.test(prefix)) return undefined;
  return new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `prefix: expected 1 to ${prefixCharactersMax} of a-z, 0-9 and _, not starting with a digit, "sqlite_" or "pg_", got ${JSON.stringify(prefix.slice(0, 64))}`,
  });
};
