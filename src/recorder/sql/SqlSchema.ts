/**
 * Makes the tables of the store and brings older ones up to date, by itself and in one transaction.
 */
import * as Effect from "effect/Effect";
import type * as SqlClient from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { keyBytes, newKey } from "../Digest.ts";
import { RecorderError } from "../RecorderError.ts";
import * as SqlState from "./postgres/SqlState.ts";
import * as SqlTables from "./SqlTables.ts";
import { primaryCode } from "./sqlite/SqlNodeSqlite.ts";

/**
 * Version of the tables: the number of migrations. A store of a newer one is used where it says that programs of this version
 * still read and write it rightly (`min_reader`, `min_writer`), and is refused where it does not.
 */
export const schemaVersion = 7;

/** What a store is to this program. */
export interface Ready {
  /** The store's own key for digests. */
  readonly key: Uint8Array;
  /** Why nothing may be written: a newer program has changed what a write has to say. */
  readonly unwritable: RecorderError | undefined;
}

/**
 * Makes the store ready: empty ones get their tables, older ones what they lack. Any number of processes may do so at once.
 *
 * @param place the database, as a person knows it
 * @param shared the database is a program's own: its tables are left alone. Otherwise a file of another program is refused
 */
export const ready = Effect.fnUntraced(function* (tables: SqlTables.SqlTables, place: string, shared: boolean) {
  const found = yield* Effect.catchIf(versions(tables), isMissingTable, () => Effect.void);
  const isOlder = found === undefined || found.schema < schemaVersion;
  const stands = isOlder ? yield* tables.dialect.migrate(migrate(tables, place, shared)) : found;
  const { name } = tables.dialect;
  if (stands.reader > schemaVersion) return yield* newerSchema(stands.schema, place, instead[name]);
  const unwritable =
    stands.writer > schemaVersion ? newerSchema(stands.schema, place, onlyReads[name] ?? instead[name]) : undefined;
  return { key: yield* digestKey(tables), unwritable } satisfies Ready;
});

/** Whether a statement failed because the store has no tables (yet, or any more). */
export const isMissingTable = (error: unknown): boolean =>
  SqlState.isMissingTable(error) ||
  (isSqlError(error) && primaryCode(error.reason.cause) !== 26 && /\bno such table\b/.test(error.message));

/** The version of a store, and the oldest ones that still read it and write it rightly. */
interface Versions {
  readonly schema: number;
  readonly reader: number;
  readonly writer: number;
}

const versions = ({ meta, sql }: SqlTables.SqlTables): Effect.Effect<Versions | undefined, SqlError> =>
  Effect.map(
    sql<Named & { readonly value: string }>`SELECT name, value FROM ${meta}
      WHERE name IN ('schema_version', 'min_reader', 'min_writer')`,
    (rows) => {
      const of = (wanted: string) => rows.find(({ name }) => name === wanted)?.value;
      const schema = of("schema_version");
      if (schema === undefined) return undefined;
      // A store that says nothing is for programs of its own version.
      const [reader, writer] = [of("min_reader") ?? schema, of("min_writer") ?? schema];
      return { schema: Number(schema), reader: Number(reader), writer: Number(writer) };
    },
  );

const migrate = Effect.fnUntraced(function* (tables: SqlTables.SqlTables, place: string, shared: boolean) {
  const { meta, prefix, sql } = tables;
  const names = yield* tablesIn(sql);
  if (!names.includes(`${prefix}meta`)) {
    if (yield* isUnprefixed(sql, names)) yield* rename(tables);
    else if (!shared && names.length > 0) return yield* notOurs(names, place);
  }
  yield* sql`CREATE TABLE IF NOT EXISTS ${meta} (name TEXT PRIMARY KEY, value TEXT NOT NULL)`;
  // Another process may have been faster: what counts is what stands there inside of the transaction.
  const found = yield* versions(tables);
  if (found !== undefined && found.schema >= schemaVersion) return found;
  for (const migration of migrations.slice(found?.schema ?? 0)) yield* migration(tables, found === undefined);
  // The programs of one machine are updated together. Those of a server are not, and run beside each other for a while.
  const oldest = found === undefined ? partsVersion : Math.max(oldestNeighbour, found.reader, found.writer);
  const neighbours = { min_reader: oldest, min_writer: oldest };
  const made = { schema_version: schemaVersion, ...(tables.dialect.name === "postgres" ? neighbours : {}) };
  for (const [name, value] of Object.entries(made)) {
    yield* sql`INSERT INTO ${meta} (name, value) VALUES (${name}, ${String(value)})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
  }
  return { schema: schemaVersion, reader: oldest, writer: oldest } satisfies Versions;
});

/** The tables of a file. A server is shared by many programs: there is nothing to tell from their tables. */
const tablesIn = (sql: SqlClient.SqlClient): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  sql.onDialectOrElse({
    sqlite: () =>
      Effect.map(sql<Named>`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`, (rows) =>
        rows.map(({ name }) => name),
      ),
    orElse: () => Effect.succeed([]),
  });

interface Named {
  readonly name: string;
}

/** The columns that tell the first version's tables, which had no prefix, from those of a program with such names. */
const unprefixedColumns: Readonly<Record<(typeof SqlTables.firstTableNames)[number], ReadonlyArray<string>>> = {
  meta: ["name", "value"],
  leases: ["id", "label", "started_at", "expires_at", "fenced"],
  runs: ["seq", "run_id", "version", "owner", "state", "parked", "broken", "record"],
  incidents: ["run_id", "id", "n", "incident"],
  questions: ["run_id", "n", "question"],
};

/** Whether these are the tables of the first version. A program's own table that is only named like one is not touched. */
const isUnprefixed = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, names: ReadonlyArray<string>) {
  for (const table of SqlTables.firstTableNames) {
    if (!names.includes(table)) return false;
    const columns = (yield* sql<Named>`SELECT name FROM pragma_table_info(${table})`).map(({ name }) => name);
    if (!unprefixedColumns[table].every((column) => columns.includes(column))) return false;
  }
  const rows = yield* sql<Named>`SELECT name FROM meta
    WHERE (name = 'schema_version' AND value = '1') OR name = 'digest_key'`;
  return rows.length === 2;
});

/** Gives the tables of the first version the prefix, with everything that is in them. */
const rename = Effect.fnUntraced(function* (tables: SqlTables.SqlTables) {
  const { prefix, sql } = tables;
  for (const name of SqlTables.firstTableNames) {
    yield* sql`ALTER TABLE ${sql.literal(name)} RENAME TO ${sql.literal(prefix + name)}`;
  }
  // The names of indexes are those of the whole database, and they are not renamed with their table.
  for (const name of firstIndexes) yield* sql`DROP INDEX IF EXISTS ${sql.literal(name)}`;
  yield* indexes(tables);
});

const notOurs = (names: ReadonlyArray<string>, place: string) =>
  new RecorderError({
    reason: "corrupt",
    run_id: "",
    message: `${place} is a database of another program (it has the table ${names[0]}); name another file, or a prefix to keep runs beside its tables`,
  });

/** What can be done besides, by the kind of store. The address of a server names a database, and may name a schema of it. */
const instead: Readonly<Record<SqlTables.SqlTables["dialect"]["name"], string>> = {
  sqlite: "Update this program, or name another file",
  postgres: "Update this program, or name another database or schema in the address",
};

/** The programs of a server are updated one after the other: one that is left behind goes on as well as it can. */
const onlyReads: Partial<typeof instead> = {
  postgres: "Update this program; until then it only reads here, and its streams go on unrecorded",
};

/** @param then what a person does about it */
const newerSchema = (found: number, place: string, then: string) =>
  new RecorderError({
    reason: "newer_schema",
    run_id: "",
    message: `${place} has schema version ${found}, and this program knows version ${schemaVersion}: a newer one has written it. ${then}`,
  });

const digestKey = Effect.fnUntraced(function* ({ meta, prefix, sql }: SqlTables.SqlTables) {
  const [row] = yield* sql<{ readonly value: string }>`SELECT value FROM ${meta} WHERE name = 'digest_key'`;
  const key = Uint8Array.from(Buffer.from(row?.value ?? "", "hex"));
  if (key.length === keyBytes) return key;
  return yield* new RecorderError({
    reason: "corrupt",
    run_id: "",
    message: `the store has lost its key for digests; restore the table ${prefix}meta from a backup`,
  });
});

const first = Effect.fnUntraced(function* (tables: SqlTables.SqlTables) {
  const { dialect, incidents, leases, meta, questions, runs, sql } = tables;
  const { ordinal, word } = dialect;
  const key = Buffer.from(newKey()).toString("hex");
  yield* sql`CREATE TABLE ${leases} (
    id ${word} PRIMARY KEY, label TEXT NOT NULL, started_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL, fenced INTEGER NOT NULL${dialect.told.column})`;
  yield* sql`CREATE TABLE ${runs} (
    seq ${ordinal}, run_id ${word} NOT NULL UNIQUE, version INTEGER NOT NULL, owner ${word},
    state TEXT NOT NULL, parked TEXT, provider TEXT NOT NULL, model TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION, broken INTEGER NOT NULL, record TEXT NOT NULL)`;
  yield* indexes(tables);
  yield* sql`CREATE TABLE ${incidents} (
    run_id ${word} NOT NULL REFERENCES ${runs} (run_id) ON DELETE CASCADE, id ${word} NOT NULL, n INTEGER NOT NULL,
    incident TEXT NOT NULL, PRIMARY KEY (run_id, id))`;
  yield* sql`CREATE TABLE ${questions} (
    run_id ${word} NOT NULL REFERENCES ${runs} (run_id) ON DELETE CASCADE, n INTEGER NOT NULL,
    question TEXT NOT NULL, PRIMARY KEY (run_id, n))`;
  yield* sql`INSERT INTO ${meta} (name, value) VALUES ('digest_key', ${key})`;
});

/** Indexes of the first version. */
const firstIndexes = ["runs_open", "runs_driven", "runs_kept", "runs_ended", "runs_broken", "runs_owned"] as const;

/** Every list goes by seq. Few runs are open and few are broken, and a search for either must not read all that have ended. */
const indexes = Effect.fnUntraced(function* ({ prefix, runs, sql }: SqlTables.SqlTables) {
  const named = (name: (typeof firstIndexes)[number]) => sql.literal(prefix + name);
  yield* sql`CREATE INDEX ${named("runs_open")} ON ${runs} (seq) WHERE ended_at IS NULL`;
  yield* sql`CREATE INDEX ${named("runs_driven")} ON ${runs} (seq)
    WHERE ended_at IS NULL AND (parked IS NULL OR parked = 'interrupted')`;
  yield* sql`CREATE INDEX ${named("runs_kept")} ON ${runs} (seq, ended_at) WHERE ended_at IS NOT NULL`;
  yield* sql`CREATE INDEX ${named("runs_ended")} ON ${runs} (ended_at) WHERE ended_at IS NOT NULL`;
  yield* sql`CREATE INDEX ${named("runs_broken")} ON ${runs} (seq) WHERE broken > 0`;
  yield* sql`CREATE INDEX ${named("runs_owned")} ON ${runs} (owner) WHERE owner IS NOT NULL`;
});

/** A lease counts its renewals. A sweep reads the runs of leases that are over, and never those of living ones. */
const second = Effect.fnUntraced(function* ({ leases, prefix, runs, sql }: SqlTables.SqlTables) {
  yield* sql`ALTER TABLE ${leases} ADD COLUMN beats INTEGER NOT NULL DEFAULT 0`;
  yield* sql`ALTER TABLE ${leases} ADD COLUMN lease_ms DOUBLE PRECISION NOT NULL DEFAULT 0`;
  yield* sql`DROP INDEX ${sql.literal(`${prefix}runs_driven`)}`;
  yield* sql`CREATE INDEX ${sql.literal(`${prefix}runs_unowned`)} ON ${runs} (seq)
    WHERE owner IS NULL AND ended_at IS NULL AND (parked IS NULL OR parked = 'interrupted')`;
});

/** What processes know together, each row of it for a while; and the secret under which they make the keys of those rows. */
const third = Effect.fnUntraced(function* ({ dialect, facts, groups, meta, prefix, sql }: SqlTables.SqlTables) {
  const { word } = dialect;
  const secret = Buffer.from(newKey()).toString("hex");
  yield* sql`CREATE TABLE ${facts} (
    kind ${word} NOT NULL, key ${word} NOT NULL, value TEXT NOT NULL, node TEXT NOT NULL, stamp TEXT NOT NULL,
    put_at DOUBLE PRECISION NOT NULL, until DOUBLE PRECISION NOT NULL, PRIMARY KEY (kind, key))`;
  yield* sql`CREATE INDEX ${sql.literal(`${prefix}facts_over`)} ON ${facts} (until)`;
  yield* sql`CREATE TABLE ${groups} (
    id ${word} PRIMARY KEY, retries INTEGER NOT NULL, tokens DOUBLE PRECISION NOT NULL, until DOUBLE PRECISION NOT NULL)`;
  yield* sql`CREATE INDEX ${sql.literal(`${prefix}groups_over`)} ON ${groups} (until)`;
  yield* sql`INSERT INTO ${meta} (name, value) VALUES ('shared_key', ${secret})`;
});

/** What clients may come back to at another machine. Tables that nothing is written to cost nothing, and a file has no other machine. */
const deliveries = ({ dialect, prefix, sql }: SqlTables.SqlTables): Effect.Effect<void, SqlError> => {
  if (dialect.name !== "postgres") return Effect.void;
  const [all, parts] = [sql.literal(`${prefix}deliveries`), sql.literal(`${prefix}deliveryparts`)];
  const { word } = dialect;
  return Effect.gen(function* () {
    yield* sql`CREATE UNLOGGED TABLE ${all} (
      run_id ${word} PRIMARY KEY, node ${word} NOT NULL, request ${word} NOT NULL, named ${word} NOT NULL,
      salt BYTEA NOT NULL, lock BYTEA NOT NULL, linger_ms DOUBLE PRECISION NOT NULL, state ${word} NOT NULL,
      bytes INTEGER NOT NULL DEFAULT 0, beats INTEGER NOT NULL DEFAULT 0, expires_at TIMESTAMPTZ NOT NULL,
      wish ${word}, wish_how ${word}, refused ${word}, reader ${word}, reader_beats INTEGER NOT NULL DEFAULT 0)`;
    yield* sql`CREATE INDEX ${sql.literal(`${prefix}deliveries_asked`)} ON ${all} (request)`;
    yield* sql`CREATE INDEX ${sql.literal(`${prefix}deliveries_kept`)} ON ${all} (expires_at)`;
    yield* sql`CREATE INDEX ${sql.literal(`${prefix}deliveries_live`)} ON ${all} (node) WHERE state = 'live'`;
    yield* sql`CREATE UNLOGGED TABLE ${parts} (
      run_id ${word} NOT NULL REFERENCES ${all} (run_id) ON DELETE CASCADE, n INTEGER NOT NULL, at INTEGER NOT NULL,
      sealed BYTEA NOT NULL, PRIMARY KEY (run_id, n))`;
  });
};

/**
 * On PostgreSQL the long parts of runs get a table of their own. A file is small, and stays as it is.
 *
 * A store that has runs goes on with their records in their rows: the programs that use it know of no parts.
 */
const parted: Migration = ({ dialect, leases, parts, prefix, runs, shelves, sql }, isFirst) => {
  if (dialect.name !== "postgres") return Effect.void;
  return Effect.gen(function* () {
    yield* sql`CREATE TABLE ${shelves} (
      id INTEGER PRIMARY KEY, opened_at DOUBLE PRECISION NOT NULL, first_seq BIGINT NOT NULL)`;
    yield* sql`CREATE TABLE ${parts} (
      shelf INTEGER NOT NULL, seq BIGINT NOT NULL, kind TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL,
      n BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (shelf, seq, kind, id))`;
    yield* sql`ALTER TABLE ${runs} ADD COLUMN shelf INTEGER NOT NULL DEFAULT 0, ADD COLUMN changed TEXT,
      ALTER COLUMN record DROP NOT NULL`;
    // The versions of a row that follow each other need room beside it: then no index is written for them.
    yield* sql`ALTER TABLE ${runs} SET (fillfactor = 30)`;
    yield* sql`ALTER TABLE ${leases} ADD COLUMN knows INTEGER NOT NULL DEFAULT 0`;
    yield* sql`DROP INDEX ${sql.literal(`${prefix}runs_ended`)}`;
    // Incidents and questions are deleted by name, and a key that looks after them is asked for every row that goes.
    for (const name of ["incidents", "questions"]) {
      yield* sql`ALTER TABLE ${sql.literal(prefix + name)}
        DROP CONSTRAINT IF EXISTS ${sql.literal(`${prefix}${name}_run_id_fkey`)}`;
    }
    if (isFirst) yield* sql`INSERT INTO ${shelves} (id, opened_at, first_seq) VALUES (1, 0, 1)`;
  });
};

/**
 * Few open runs wait for an answer, and a sweep looks for them: it must not read all that are live. A file has the live runs of one
 * machine, and stays as it is.
 */
const waiting: Migration = ({ dialect, prefix, runs, sql }) =>
  dialect.name === "postgres"
    ? Effect.asVoid(sql`CREATE INDEX ${sql.literal(`${prefix}runs_waiting`)} ON ${runs} (seq)
        WHERE ended_at IS NULL AND state <> 'live'`)
    : Effect.void;

/**
 * On PostgreSQL ended runs are deleted by age, as in a file. Versions 5 and 6 kept parts in partitions: what they hold stays there, and
 * the newest partition takes all new parts. An operator of a large store makes the index before: docs/postgres-operation.md.
 */
const unpartitioned: Migration = ({ dialect, prefix, runs, shelves, sql }) => {
  if (dialect.name !== "postgres") return Effect.void;
  return Effect.gen(function* () {
    yield* sql`DROP INDEX IF EXISTS ${sql.literal(`${prefix}runs_aged`)}`;
    yield* sql`CREATE INDEX IF NOT EXISTS ${sql.literal(`${prefix}runs_ended`)} ON ${runs} (ended_at, seq)
      WHERE ended_at IS NOT NULL`;
    // A program of version 6 beside this one opens and drops partitions by these rows: it finds nothing to do.
    yield* sql`DELETE FROM ${shelves} WHERE id < (SELECT MAX(id) FROM ${shelves})`;
    yield* sql`UPDATE ${shelves} SET opened_at = 'Infinity', first_seq = 9223372036854775807`;
  });
};

/** Since this version programs read parts: an older one must not read a store that has some. */
const partsVersion = 5;

/** The oldest version whose programs still read and write rightly a store without parts. */
const oldestNeighbour = 2;

/** @param isFirst the store has no tables yet: no older program uses it */
type Migration = (tables: SqlTables.SqlTables, isFirst: boolean) => Effect.Effect<void, SqlError>;

/** One a version, in order; a published one never changes what it makes. */
const migrations: ReadonlyArray<Migration> = [first, second, third, deliveries, parted, waiting, unpartitioned];
