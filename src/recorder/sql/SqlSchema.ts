/** Creates the tables of the store and migrates older tables automatically, in one transaction. */
import * as Effect from "effect/Effect";
import type * as SqlClient from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { generateKey, keyBytes } from "../Digest.ts";
import { RecorderError } from "../RecorderError.ts";
import * as SqlState from "./postgres/SqlState.ts";
import * as SqlTables from "./SqlTables.ts";
import { primaryCode } from "./sqlite/SqlNodeSqlite.ts";

/**
 * Version of the tables: the number of migrations. A store of a newer version declares the oldest versions that still read and write it
 * correctly (`min_reader`, `min_writer`). This program reads or writes such a store only if its own version is at least as new as these.
 */
export const schemaVersion = 7;

/** The result of `prepare` for a store that this program can use. */
export interface Ready {
  /** The store's key for digests. */
  readonly key: Uint8Array;
  /** The reason why nothing may be written: a newer program has changed the format. */
  readonly unwritable: RecorderError | undefined;
}

/**
 * Prepares the store by creating or migrating its tables. Any number of processes may do this at once.
 *
 * @param place name of the database for messages
 * @param shared true if the database belongs to a program, whose tables stay untouched. If false, a file of another program is refused
 */
export const prepare = Effect.fnUntraced(function* (tables: SqlTables.SqlTables, place: string, shared: boolean) {
  const found = yield* Effect.catchIf(readVersions(tables), isMissingTable, () => Effect.void);
  const isOlder = found === undefined || found.schema < schemaVersion;
  const stands = isOlder ? yield* tables.dialect.migrate(migrate(tables, place, shared)) : found;
  const { name } = tables.dialect;
  if (stands.reader > schemaVersion) return yield* newerSchemaError(stands.schema, place, instead[name]);
  const unwritable =
    stands.writer > schemaVersion
      ? newerSchemaError(stands.schema, place, onlyReads[name] ?? instead[name])
      : undefined;
  return { key: yield* readDigestKey(tables), unwritable } satisfies Ready;
});

/** True if a statement failed because the store does not have its tables, or no longer has them. */
export const isMissingTable = (error: unknown): boolean =>
  SqlState.isMissingTable(error) ||
  (isSqlError(error) && primaryCode(error.reason.cause) !== 26 && /\bno such table\b/.test(error.message));

/** Version of a store, with the oldest versions that read and write it correctly. */
interface Versions {
  readonly schema: number;
  readonly reader: number;
  readonly writer: number;
}

const readVersions = ({ meta, sql }: SqlTables.SqlTables): Effect.Effect<Versions | undefined, SqlError> =>
  Effect.map(
    sql<Named & { readonly value: string }>`SELECT name, value FROM ${meta}
      WHERE name IN ('schema_version', 'min_reader', 'min_writer')`,
    (rows) => {
      const of = (wanted: string) => rows.find(({ name }) => name === wanted)?.value;
      const schema = of("schema_version");
      if (schema === undefined) return undefined;
      // A store that declares nothing may only be used by programs of its own version.
      const [reader, writer] = [of("min_reader") ?? schema, of("min_writer") ?? schema];
      return { schema: Number(schema), reader: Number(reader), writer: Number(writer) };
    },
  );

const migrate = Effect.fnUntraced(function* (tables: SqlTables.SqlTables, place: string, shared: boolean) {
  const { meta, prefix, sql } = tables;
  const names = yield* listTables(sql);
  if (!names.includes(`${prefix}meta`)) {
    if (yield* isUnprefixed(sql, names)) yield* rename(tables);
    else if (!shared && names.length > 0) return yield* foreignDatabaseError(names, place);
  }
  yield* sql`CREATE TABLE IF NOT EXISTS ${meta} (name TEXT PRIMARY KEY, value TEXT NOT NULL)`;
  // Another process may have migrated already, so only the state inside the transaction counts.
  const found = yield* readVersions(tables);
  if (found !== undefined && found.schema >= schemaVersion) return found;
  for (const migration of migrations.slice(found?.schema ?? 0)) yield* migration(tables, found === undefined);
  // The programs of one machine are updated together. The programs of a server are not, so different versions run side by side for a while.
  const oldest = found === undefined ? partsVersion : Math.max(oldestNeighbour, found.reader, found.writer);
  const neighbours = { min_reader: oldest, min_writer: oldest };
  const made = { schema_version: schemaVersion, ...(tables.dialect.name === "postgres" ? neighbours : {}) };
  for (const [name, value] of Object.entries(made)) {
    yield* sql`INSERT INTO ${meta} (name, value) VALUES (${name}, ${String(value)})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
  }
  return { schema: schemaVersion, reader: oldest, writer: oldest } satisfies Versions;
});

/**
 * Lists the tables of a file, which show whether the file belongs to another program. For a server, which many programs share, the list is
 * empty.
 */
const listTables = (sql: SqlClient.SqlClient): Effect.Effect<ReadonlyArray<string>, SqlError> =>
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

/** Columns that distinguish the first version's unprefixed tables from a program's tables with the same names. */
const unprefixedColumns: Readonly<Record<(typeof SqlTables.firstTableNames)[number], ReadonlyArray<string>>> = {
  meta: ["name", "value"],
  leases: ["id", "label", "started_at", "expires_at", "fenced"],
  runs: ["seq", "run_id", "version", "owner", "state", "parked", "broken", "record"],
  incidents: ["run_id", "id", "n", "incident"],
  questions: ["run_id", "n", "question"],
};

/** True if these are the tables of the first version. A program's own tables with the same names stay untouched. */
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

/** Renames the tables of the first version, with their content. */
const rename = Effect.fnUntraced(function* (tables: SqlTables.SqlTables) {
  const { prefix, sql } = tables;
  for (const name of SqlTables.firstTableNames) {
    yield* sql`ALTER TABLE ${sql.literal(name)} RENAME TO ${sql.literal(prefix + name)}`;
  }
  // Index names are global to the database and are not renamed with their table.
  for (const name of firstIndexes) yield* sql`DROP INDEX IF EXISTS ${sql.literal(name)}`;
  yield* createIndexes(tables);
});

const foreignDatabaseError = (names: ReadonlyArray<string>, place: string) =>
  new RecorderError({
    reason: "corrupt",
    run_id: "",
    message: `${place} is a database of another program (it has the table ${names[0]}); name another file, or set a prefix to keep runs next to its tables`,
  });

/** Advice by kind of store. A server's address names a database, and optionally a schema in it. */
const instead: Readonly<Record<SqlTables.SqlTables["dialect"]["name"], string>> = {
  sqlite: "Update this program, or name another file",
  postgres: "Update this program, or name another database or schema in the address",
};

/**
 * Advice if this program may still read the store. The programs of a server are updated one by one, so an older program continues as well
 * as it can.
 */
const onlyReads: Partial<typeof instead> = {
  postgres: "Update this program. Until then it can only read this store, and its streams continue unrecorded",
};

/** @param then advice for the person */
const newerSchemaError = (found: number, place: string, then: string) =>
  new RecorderError({
    reason: "newer_schema",
    run_id: "",
    message: `${place} has schema version ${found}, but this program knows version ${schemaVersion}: a newer program has written it. ${then}`,
  });

const readDigestKey = Effect.fnUntraced(function* ({ meta, prefix, sql }: SqlTables.SqlTables) {
  const [row] = yield* sql<{ readonly value: string }>`SELECT value FROM ${meta} WHERE name = 'digest_key'`;
  const key = Uint8Array.from(Buffer.from(row?.value ?? "", "hex"));
  if (key.length === keyBytes) return key;
  return yield* new RecorderError({
    reason: "corrupt",
    run_id: "",
    message: `the store has lost its key for digests; restore the table ${prefix}meta from a backup`,
  });
});

const createTables = Effect.fnUntraced(function* (tables: SqlTables.SqlTables) {
  const { dialect, incidents, leases, meta, questions, runs, sql } = tables;
  const { ordinal, word } = dialect;
  const key = Buffer.from(generateKey()).toString("hex");
  yield* sql`CREATE TABLE ${leases} (
    id ${word} PRIMARY KEY, label TEXT NOT NULL, started_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL, fenced INTEGER NOT NULL${dialect.wallClock.column})`;
  yield* sql`CREATE TABLE ${runs} (
    seq ${ordinal}, run_id ${word} NOT NULL UNIQUE, version INTEGER NOT NULL, owner ${word},
    state TEXT NOT NULL, parked TEXT, provider TEXT NOT NULL, model TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION, broken INTEGER NOT NULL, record TEXT NOT NULL)`;
  yield* createIndexes(tables);
  yield* sql`CREATE TABLE ${incidents} (
    run_id ${word} NOT NULL REFERENCES ${runs} (run_id) ON DELETE CASCADE, id ${word} NOT NULL, n INTEGER NOT NULL,
    incident TEXT NOT NULL, PRIMARY KEY (run_id, id))`;
  yield* sql`CREATE TABLE ${questions} (
    run_id ${word} NOT NULL REFERENCES ${runs} (run_id) ON DELETE CASCADE, n INTEGER NOT NULL,
    question TEXT NOT NULL, PRIMARY KEY (run_id, n))`;
  yield* sql`INSERT INTO ${meta} (name, value) VALUES ('digest_key', ${key})`;
});

const firstIndexes = ["runs_open", "runs_driven", "runs_kept", "runs_ended", "runs_broken", "runs_owned"] as const;

/**
 * Creates the indexes. Lists are ordered by `seq`. Few runs are open or broken, so partial indexes keep a search for them from scanning all
 * ended runs.
 */
const createIndexes = Effect.fnUntraced(function* ({ prefix, runs, sql }: SqlTables.SqlTables) {
  const nameOf = (name: (typeof firstIndexes)[number]) => sql.literal(prefix + name);
  yield* sql`CREATE INDEX ${nameOf("runs_open")} ON ${runs} (seq) WHERE ended_at IS NULL`;
  yield* sql`CREATE INDEX ${nameOf("runs_driven")} ON ${runs} (seq)
    WHERE ended_at IS NULL AND (parked IS NULL OR parked = 'interrupted')`;
  yield* sql`CREATE INDEX ${nameOf("runs_kept")} ON ${runs} (seq, ended_at) WHERE ended_at IS NOT NULL`;
  yield* sql`CREATE INDEX ${nameOf("runs_ended")} ON ${runs} (ended_at) WHERE ended_at IS NOT NULL`;
  yield* sql`CREATE INDEX ${nameOf("runs_broken")} ON ${runs} (seq) WHERE broken > 0`;
  yield* sql`CREATE INDEX ${nameOf("runs_owned")} ON ${runs} (owner) WHERE owner IS NOT NULL`;
});

/**
 * Adds the count of renewals to leases. A search for abandoned runs then reads only runs of expired leases, never those of live processes.
 */
const addLeaseBeats = Effect.fnUntraced(function* ({ leases, prefix, runs, sql }: SqlTables.SqlTables) {
  yield* sql`ALTER TABLE ${leases} ADD COLUMN beats INTEGER NOT NULL DEFAULT 0`;
  yield* sql`ALTER TABLE ${leases} ADD COLUMN lease_ms DOUBLE PRECISION NOT NULL DEFAULT 0`;
  yield* sql`DROP INDEX ${sql.literal(`${prefix}runs_driven`)}`;
  yield* sql`CREATE INDEX ${sql.literal(`${prefix}runs_unowned`)} ON ${runs} (seq)
    WHERE owner IS NULL AND ended_at IS NULL AND (parked IS NULL OR parked = 'interrupted')`;
});

/** Adds facts, which processes share and which expire, and the secret for their keys. */
const addFacts = Effect.fnUntraced(function* ({ dialect, facts, groups, meta, prefix, sql }: SqlTables.SqlTables) {
  const { word } = dialect;
  const secret = Buffer.from(generateKey()).toString("hex");
  yield* sql`CREATE TABLE ${facts} (
    kind ${word} NOT NULL, key ${word} NOT NULL, value TEXT NOT NULL, node TEXT NOT NULL, stamp TEXT NOT NULL,
    put_at DOUBLE PRECISION NOT NULL, until DOUBLE PRECISION NOT NULL, PRIMARY KEY (kind, key))`;
  yield* sql`CREATE INDEX ${sql.literal(`${prefix}facts_over`)} ON ${facts} (until)`;
  yield* sql`CREATE TABLE ${groups} (
    id ${word} PRIMARY KEY, retries INTEGER NOT NULL, tokens DOUBLE PRECISION NOT NULL, until DOUBLE PRECISION NOT NULL)`;
  yield* sql`CREATE INDEX ${sql.literal(`${prefix}groups_over`)} ON ${groups} (until)`;
  yield* sql`INSERT INTO ${meta} (name, value) VALUES ('shared_key', ${secret})`;
});

/**
 * Adds the tables of the delivery log, for older programs that may share the server with this one. This version does not use these tables;
 * see docs/postgres.md.
 */
const addDeliveryTables = ({ dialect, prefix, sql }: SqlTables.SqlTables): Effect.Effect<void, SqlError> => {
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
 * Moves the long parts of runs on PostgreSQL to their own table. Files keep their tables, because a file is small.
 *
 * If a store already has runs, their records stay in their rows, because older programs that use the store do not know the parts.
 */
const moveParts: Migration = ({ dialect, leases, parts, prefix, runs, shelves, sql }, isFirst) => {
  if (dialect.name !== "postgres") return Effect.void;
  return Effect.gen(function* () {
    yield* sql`CREATE TABLE ${shelves} (
      id INTEGER PRIMARY KEY, opened_at DOUBLE PRECISION NOT NULL, first_seq BIGINT NOT NULL)`;
    yield* sql`CREATE TABLE ${parts} (
      shelf INTEGER NOT NULL, seq BIGINT NOT NULL, kind TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL,
      n BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (shelf, seq, kind, id))`;
    yield* sql`ALTER TABLE ${runs} ADD COLUMN shelf INTEGER NOT NULL DEFAULT 0, ADD COLUMN changed TEXT,
      ALTER COLUMN record DROP NOT NULL`;
    // An update writes a new version of the row. If that fits on the same page, the update need not write any index.
    yield* sql`ALTER TABLE ${runs} SET (fillfactor = 30)`;
    yield* sql`ALTER TABLE ${leases} ADD COLUMN knows INTEGER NOT NULL DEFAULT 0`;
    yield* sql`DROP INDEX ${sql.literal(`${prefix}runs_ended`)}`;
    // Drops the foreign keys, because they would be checked for every deleted row. Incidents and questions are deleted explicitly.
    for (const name of ["incidents", "questions"]) {
      yield* sql`ALTER TABLE ${sql.literal(prefix + name)}
        DROP CONSTRAINT IF EXISTS ${sql.literal(`${prefix}${name}_run_id_fkey`)}`;
    }
    if (isFirst) yield* sql`INSERT INTO ${shelves} (id, opened_at, first_seq) VALUES (1, 0, 1)`;
  });
};

/**
 * Indexes open runs that wait for an answer, so that a search for these runs need not scan the live ones. A file has the live runs of only
 * one machine and stays unchanged.
 */
const indexWaiting: Migration = ({ dialect, prefix, runs, sql }) =>
  dialect.name === "postgres"
    ? Effect.asVoid(sql`CREATE INDEX ${sql.literal(`${prefix}runs_waiting`)} ON ${runs} (seq)
        WHERE ended_at IS NULL AND state <> 'live'`)
    : Effect.void;

/**
 * Makes PostgreSQL delete ended runs by age, as a file does. Versions 5 and 6 kept parts in partitions: their content stays there, and the
 * newest partition takes all new parts. An operator of a large store should create the index beforehand: docs/postgres.md.
 */
const indexEnded: Migration = ({ dialect, prefix, runs, shelves, sql }) => {
  if (dialect.name !== "postgres") return Effect.void;
  return Effect.gen(function* () {
    yield* sql`DROP INDEX IF EXISTS ${sql.literal(`${prefix}runs_aged`)}`;
    yield* sql`CREATE INDEX IF NOT EXISTS ${sql.literal(`${prefix}runs_ended`)} ON ${runs} (ended_at, seq)
      WHERE ended_at IS NOT NULL`;
    // A program of version 6 opens and drops partitions according to these rows. Without them it has nothing to do.
    yield* sql`DELETE FROM ${shelves} WHERE id < (SELECT MAX(id) FROM ${shelves})`;
    yield* sql`UPDATE ${shelves} SET opened_at = 'Infinity', first_seq = 9223372036854775807`;
  });
};

/** First version that reads parts. Older programs must not read a store that has parts. */
const partsVersion = 5;

/** Oldest version that reads and writes a store without parts correctly. */
const oldestNeighbour = 2;

/** @param isFirst true if the store has no tables yet, so that no older program uses it */
type Migration = (tables: SqlTables.SqlTables, isFirst: boolean) => Effect.Effect<void, SqlError>;

/** One migration per version, in order. A published migration never changes its result. */
const migrations: ReadonlyArray<Migration> = [
  createTables,
  addLeaseBeats,
  addFacts,
  addDeliveryTables,
  moveParts,
  indexWaiting,
  indexEnded,
];
