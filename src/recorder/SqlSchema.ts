/**
 * Makes the tables of the store and brings older ones up to date, by itself and in one transaction.
 */
import * as Effect from "effect/Effect";
import type * as SqlClient from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { keyBytes, newKey } from "./Digest.ts";
import { RecorderError } from "./RecorderError.ts";
import { primaryCode } from "./SqlNodeSqlite.ts";

/** Version of the tables: the number of migrations. A store of a newer one is refused. */
export const schemaVersion = 1;

/**
 * Makes the store ready: empty ones get their tables, older ones what they lack. Any number of processes may do so at once.
 *
 * @param place the database, as a person knows it
 * @returns the store's own key for digests
 */
export const ready = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, place: string) {
  const found = yield* Effect.catchIf(version(sql), isMissingTable, () => Effect.void);
  if (found === undefined || found < schemaVersion) yield* sql.withTransaction(migrate(sql, place));
  else if (found > schemaVersion) return yield* newerSchema(found, place);
  return yield* digestKey(sql);
});

/** Whether a statement failed because the store has no tables (yet, or any more). */
export const isMissingTable = (error: unknown): boolean =>
  isSqlError(error) && primaryCode(error.reason.cause) !== 26 && /\bno such table\b|\b42P01\b/.test(error.message);

const version = (sql: SqlClient.SqlClient): Effect.Effect<number | undefined, SqlError> =>
  Effect.map(sql<{ readonly value: string }>`SELECT value FROM meta WHERE name = 'schema_version'`, ([row]) =>
    row === undefined ? undefined : Number(row.value),
  );

const migrate = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, place: string) {
  const strangers = yield* foreignTables(sql);
  if (strangers.length > 0) return yield* notOurs(strangers, place);
  yield* sql`CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)`;
  // Another process may have been faster: what counts is what stands there inside of the transaction.
  const found = (yield* version(sql)) ?? 0;
  if (found > schemaVersion) return yield* newerSchema(found, place);
  for (const migration of migrations.slice(found)) yield* migration(sql);
  yield* sql`INSERT INTO meta (name, value) VALUES ('schema_version', ${String(schemaVersion)})
    ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
});

/** Tables of a file that has none of ours: it belongs to another program. A server is shared by many, so none is foreign. */
const foreignTables = (sql: SqlClient.SqlClient): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  sql.onDialectOrElse({
    sqlite: () =>
      Effect.map(
        sql<{
          readonly name: string;
        }>`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`,
        (rows) => {
          const names = rows.map((row) => row.name);
          return names.includes("meta") && names.includes("leases") ? [] : names;
        },
      ),
    orElse: () => Effect.succeed([]),
  });

const notOurs = (tables: ReadonlyArray<string>, place: string) =>
  new RecorderError({
    reason: "corrupt",
    run_id: "",
    message: `${place} is a database of another program (it has the table ${tables[0]}); name another file`,
  });

const newerSchema = (found: number, place: string) =>
  new RecorderError({
    reason: "newer_schema",
    run_id: "",
    message: `${place} has schema version ${found}, and this program knows version ${schemaVersion}: a newer one has written it. Update this program, or name another file`,
  });

const digestKey = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const [row] = yield* sql<{ readonly value: string }>`SELECT value FROM meta WHERE name = 'digest_key'`;
  const key = Uint8Array.from(Buffer.from(row?.value ?? "", "hex"));
  if (key.length === keyBytes) return key;
  return yield* new RecorderError({
    reason: "corrupt",
    run_id: "",
    message: "the store has lost its key for digests; restore the table meta from a backup",
  });
});

const first = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
  const ordinal = sql.onDialectOrElse({
    sqlite: () => sql.literal("INTEGER PRIMARY KEY AUTOINCREMENT"),
    orElse: () => sql.literal("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
  });
  const key = Buffer.from(newKey()).toString("hex");
  yield* sql`CREATE TABLE leases (
    id TEXT PRIMARY KEY, label TEXT NOT NULL, started_at DOUBLE PRECISION NOT NULL,
    expires_at DOUBLE PRECISION NOT NULL, fenced INTEGER NOT NULL)`;
  yield* sql`CREATE TABLE runs (
    seq ${ordinal}, run_id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, owner TEXT,
    state TEXT NOT NULL, parked TEXT, provider TEXT NOT NULL, model TEXT NOT NULL,
    started_at DOUBLE PRECISION NOT NULL, ended_at DOUBLE PRECISION, broken INTEGER NOT NULL, record TEXT NOT NULL)`;
  // Every list goes by seq. Few runs are open and few are broken, and neither may be looked for among all that have ended.
  yield* sql`CREATE INDEX runs_open ON runs (seq) WHERE ended_at IS NULL`;
  yield* sql`CREATE INDEX runs_driven ON runs (seq)
    WHERE ended_at IS NULL AND (parked IS NULL OR parked = 'interrupted')`;
  yield* sql`CREATE INDEX runs_kept ON runs (seq, ended_at) WHERE ended_at IS NOT NULL`;
  yield* sql`CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL`;
  yield* sql`CREATE INDEX runs_broken ON runs (seq) WHERE broken > 0`;
  yield* sql`CREATE INDEX runs_owned ON runs (owner) WHERE owner IS NOT NULL`;
  yield* sql`CREATE TABLE incidents (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE, id TEXT NOT NULL, n INTEGER NOT NULL,
    incident TEXT NOT NULL, PRIMARY KEY (run_id, id))`;
  yield* sql`CREATE TABLE questions (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE, n INTEGER NOT NULL,
    question TEXT NOT NULL, PRIMARY KEY (run_id, n))`;
  yield* sql`INSERT INTO meta (name, value) VALUES ('digest_key', ${key})`;
});

/** One a version, in order; a published one never changes. */
const migrations: ReadonlyArray<(sql: SqlClient.SqlClient) => Effect.Effect<void, SqlError>> = [first];
