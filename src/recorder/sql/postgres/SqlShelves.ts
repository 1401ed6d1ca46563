/**
 * Opens shelves for the parts of runs, and takes away those that hold only what is to be forgotten.
 *
 * A shelf is a partition. The newest one takes all new runs; there is no other one that a write could miss. A shelf goes in
 * steps: runs that are to stay are moved off it, the rows of the others are deleted, and at a later look, when no reader has
 * seen those rows for long, the partition is dropped. Only the rows of runs are deleted one by one: they are short.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import { monotonicMs, realClock } from "../../MonotonicTime.ts";
import type { Place } from "./SqlParts.ts";
import type { Transact } from "./SqlPostgres.ts";
import { sqlStateOf } from "./SqlState.ts";

/** The tables that this needs; `SqlTables` says what they are. */
export interface Tables {
  readonly sql: SqlClient;
  readonly prefix: string;
  readonly leases: Fragment;
  readonly meta: Fragment;
  readonly parts: Fragment;
  readonly runs: Fragment;
  readonly shelves: Fragment;
  readonly dialect: { readonly migrate: Transact; readonly time: (own: number) => Fragment };
}

/** How much a shelf takes, whichever is first. */
export interface ShelfSize {
  readonly ageMs: number;
  readonly runs: number;
}

/** Longest that a lease seems to live on after its end, in milliseconds: its process may only be late. */
const lateMs = 60_000;

/** A shelf that was closed so short a time ago may be written to by a transaction that began before, in milliseconds. */
const closingMs = 60_000;

/**
 * Longest that taking a shelf away waits for those who read it, in milliseconds: whoever comes later waits behind it. It is
 * tried again at the next look.
 */
const dropWaitMs = 500;

/** Most shelves: a plan that is made for all of them takes longer with each. */
const shelvesMax = 400;

/** Makes what shelves need, in the transaction that makes tables. */
export const make = Effect.fnUntraced(function* (
  { leases, parts, prefix, runs, shelves, sql }: Tables,
  isFirst: boolean,
) {
  yield* sql`CREATE TABLE ${shelves} (
    id INTEGER PRIMARY KEY, opened_at DOUBLE PRECISION NOT NULL, first_seq BIGINT NOT NULL)`;
  yield* sql`CREATE TABLE ${parts} (
    shelf INTEGER NOT NULL, seq BIGINT NOT NULL, kind TEXT COLLATE "C" NOT NULL, id TEXT COLLATE "C" NOT NULL,
    n BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (shelf, seq, kind, id)) PARTITION BY LIST (shelf)`;
  yield* sql`ALTER TABLE ${runs} ADD COLUMN shelf INTEGER NOT NULL DEFAULT 0, ADD COLUMN changed TEXT,
    ALTER COLUMN record DROP NOT NULL`;
  // The versions of a row that follow each other need room beside it: then no index is written for them.
  yield* sql`ALTER TABLE ${runs} SET (fillfactor = 30)`;
  yield* sql`ALTER TABLE ${leases} ADD COLUMN knows INTEGER NOT NULL DEFAULT 0`;
  yield* sql`DROP INDEX ${sql.literal(`${prefix}runs_ended`)}`;
  yield* sql`CREATE INDEX ${sql.literal(`${prefix}runs_aged`)} ON ${runs} (ended_at) WHERE ended_at IS NOT NULL AND shelf = 0`;
  // What belongs to a run is deleted by name, and a key that looks after it is asked for every row that goes.
  for (const name of ["incidents", "questions"]) {
    yield* sql`ALTER TABLE ${sql.literal(prefix + name)}
      DROP CONSTRAINT IF EXISTS ${sql.literal(`${prefix}${name}_run_id_fkey`)}`;
  }
  if (isFirst) yield* add({ leases, parts, prefix, runs, shelves, sql }, 1);
});

/** Adds a shelf, which takes all new runs from then on. */
const add = Effect.fnUntraced(function* (
  { parts, prefix, runs, shelves, sql }: Omit<Tables, "dialect" | "meta">,
  id: number,
) {
  const table = partition(sql, prefix, id);
  // A table that is attached holds up no writer, and one that is made as a partition holds up all.
  yield* sql`CREATE TABLE ${table} (LIKE ${parts} INCLUDING ALL)`;
  yield* owned(sql, prefix, table);
  yield* sql`ALTER TABLE ${parts} ATTACH PARTITION ${table} FOR VALUES IN (${sql.literal(String(id))})`;
  yield* sql`INSERT INTO ${shelves} (id, opened_at, first_seq)
    VALUES (${id}, ${serverTime(sql)}, (SELECT COALESCE(MAX(seq), 0) + 1 FROM ${runs}))`;
});

/** Gives a partition to the owner of the tables: whoever else may make it, a superuser or a member of that role, is not there to drop it. */
const owned = Effect.fnUntraced(function* (sql: SqlClient, prefix: string, table: Fragment) {
  const [row] = yield* sql<{ readonly owner: string; readonly own: boolean }>`
    SELECT quote_ident(pg_get_userbyid(relowner)) AS owner, pg_get_userbyid(relowner) = current_user AS own
    FROM pg_class WHERE oid = to_regclass(${`${prefix}parts`})`;
  if (row !== undefined && !row.own) yield* sql`ALTER TABLE ${table} OWNER TO ${sql.literal(row.owner)}`;
});

const partition = (sql: SqlClient, prefix: string, id: number): Fragment => sql.literal(`${prefix}parts_${id}`);

const serverTime = (sql: SqlClient): Fragment =>
  sql.literal("(extract(epoch FROM clock_timestamp()) * 1000)::double precision");

interface Newest {
  readonly id: number;
  readonly isFull: boolean;
}

/** The newest shelf, and whether it is to be closed; undefined where there is none. */
const newest = ({ runs, shelves, sql }: Tables, size: ShelfSize): Effect.Effect<Newest | undefined, SqlError> =>
  Effect.map(
    sql<{ readonly id: number; readonly full: boolean }>`SELECT id, opened_at <= ${serverTime(sql)} - ${size.ageMs}
        OR (SELECT COALESCE(MAX(seq), 0) FROM ${runs}) - first_seq >= ${size.runs} AS full
      FROM ${shelves} ORDER BY id DESC LIMIT 1`,
    ([row]) => (row === undefined ? undefined : { id: row.id, isFull: row.full }),
  );

/** Whether there is no shelf yet, or the newest one is to be closed. */
export const isDue = (tables: Tables, size: ShelfSize): Effect.Effect<boolean, SqlError> =>
  Effect.map(newest(tables, size), (found) => found?.isFull !== false);

/** Whether this role may open shelves and drop them: it has to own the tables. */
export const isAllowed = ({ prefix, sql }: Tables): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql<{ readonly may: boolean }>`SELECT
        pg_has_role(relowner, 'USAGE') AND has_schema_privilege(relnamespace, 'CREATE') AS may
      FROM pg_class WHERE oid = to_regclass(${`${prefix}parts`})`,
    ([row]) => row?.may === true,
  );

/**
 * Opens the next shelf where the newest one is full; gives whether one was opened. The first one of a store that had none is opened when no process of an
 * older version drives runs there: such a process does not read what lies on shelves.
 *
 * @param version what a process has to know from then on, to read and write
 */
export const turn = Effect.fnUntraced(function* (tables: Tables, size: ShelfSize, version: number) {
  const found = yield* newest(tables, size);
  if (found !== undefined && !found.isFull) return false;
  return yield* tables.dialect.migrate(
    Effect.gen(function* () {
      const { leases, meta, shelves, sql } = tables;
      // Another process may have been faster.
      const last = yield* newest(tables, size);
      if (last !== undefined) {
        const [row] = yield* sql<{ readonly n: number }>`SELECT COUNT(*)::integer AS n FROM ${shelves}`;
        if (!last.isFull || (row?.n ?? 0) >= shelvesMax) return false;
        yield* add(tables, last.id + 1);
        return true;
      }
      const older = yield* sql`SELECT id FROM ${leases}
        WHERE fenced = 0 AND knows = 0 AND expires_at > ${serverTime(sql)} - ${lateMs} LIMIT 1`;
      if (older.length > 0) return false;
      yield* sql`UPDATE ${meta} SET value = ${String(version)}
        WHERE name IN ('min_reader', 'min_writer') AND value::integer < ${version}`;
      yield* add(tables, 1);
      return true;
    }),
  );
});

/** A shelf that takes no new runs. */
export interface Closed {
  readonly id: number;
  /** When it was closed, by the server's clock, in milliseconds since the epoch. */
  readonly closedAt: number;
  /** Every run on it began before this one. */
  readonly nextSeq: number;
}

/** The shelves that take no new runs, and that no transaction writes to which began when they did; oldest first. */
export const closed = ({ shelves, sql }: Tables): Effect.Effect<ReadonlyArray<Closed>, SqlError> =>
  Effect.map(
    sql<{ readonly id: number; readonly closed_at: number; readonly next_seq: string }>`SELECT * FROM (
        SELECT id, lead(opened_at) OVER (ORDER BY id) AS closed_at, lead(first_seq) OVER (ORDER BY id) AS next_seq
        FROM ${shelves}) AS s
      WHERE closed_at < ${serverTime(sql)} - ${closingMs} ORDER BY id`,
    (rows) => rows.map((row) => ({ id: row.id, closedAt: row.closed_at, nextSeq: Number(row.next_seq) })),
  );

/** Runs whose parts lie on a shelf, from one of them on. */
export const runsOn = (
  { parts, runs, sql }: Tables,
  shelf: number,
  after: number,
  limit: number,
): Effect.Effect<ReadonlyArray<Place & { readonly run_id: string; readonly ended_at: number | null }>, SqlError> =>
  Effect.map(
    sql<{ readonly seq: string; readonly run_id: string; readonly ended_at: number | null }>`SELECT
        r.seq, r.run_id, r.ended_at
      FROM ${parts} p JOIN ${runs} r ON r.seq = p.seq AND r.shelf = p.shelf
      WHERE p.shelf = ${shelf} AND p.kind = 'r' AND p.seq > ${after} ORDER BY p.seq LIMIT ${limit}`,
    (rows) => rows.map((row) => ({ ...row, seq: Number(row.seq), shelf })),
  );

/** Runs that are gone and whose parts lie on a shelf still, from one of them on. */
export const goneFrom = (
  { parts, runs, sql }: Tables,
  shelf: number,
  after: number,
  limit: number,
): Effect.Effect<ReadonlyArray<Place>, SqlError> =>
  Effect.map(
    sql<{ readonly seq: string }>`SELECT DISTINCT p.seq FROM ${parts} p WHERE p.shelf = ${shelf} AND p.seq > ${after}
      AND NOT EXISTS (SELECT 1 FROM ${runs} r WHERE r.seq = p.seq AND r.shelf = p.shelf) ORDER BY p.seq LIMIT ${limit}`,
    (rows) => rows.map(({ seq }) => ({ seq: Number(seq), shelf })),
  );

/**
 * Drops a shelf on which no run has its parts; gives whether it is gone. Nothing is dropped where a run was found after all,
 * and where readers hold it for too long.
 */
export const drop = (tables: Tables, shelf: number): Effect.Effect<boolean, SqlError> => {
  const { dialect, prefix, shelves, sql } = tables;
  const table = partition(sql, prefix, shelf);
  const dropped = Effect.gen(function* () {
    yield* sql`SELECT set_config('lock_timeout', ${String(dropWaitMs)}, true)`;
    // Another process may have been faster.
    const there = yield* sql`SELECT id FROM ${shelves} WHERE id = ${shelf}`;
    if (there.length === 0) return false;
    // No run comes to it from here on; those of other shelves are written as ever.
    yield* sql`LOCK TABLE ${table} IN SHARE MODE`;
    if ((yield* runsOn(tables, shelf, 0, 1)).length > 0) return false;
    yield* sql`DROP TABLE ${table}`;
    yield* sql`DELETE FROM ${shelves} WHERE id = ${shelf}`;
    return true;
  });
  return Effect.catchIf(dialect.migrate(dropped), isHeld, () => Effect.succeed(false));
};

const isHeld = (error: unknown): boolean => isSqlError(error) && ["55P03", "40P01"].includes(sqlStateOf(error) ?? "");

/**
 * A read that began before a shelf was dropped begins anew for so long, in milliseconds. A shelf that has no table after that
 * was dropped or moved by hand: the runs on it are damaged, and must not keep a read of others from its end.
 */
const lostMs = 1_000;

/**
 * Whether one of these shelves was dropped since the transaction began: its row is there still, as in that moment, but a table is gone for
 * everybody at once.
 */
export const isLost = (
  {
    lostSince,
    prefix,
    shelves,
    sql,
  }: Pick<Tables, "prefix" | "shelves" | "sql"> & { readonly lostSince: Map<number, number> },
  ids: ReadonlyArray<number>,
): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql<{ readonly id: number | string }>`SELECT id FROM ${shelves}
      WHERE ${sql.in("id", ids)} AND to_regclass(concat(${`${prefix}parts_`}::text, id)) IS NULL`,
    (rows) => {
      const now = monotonicMs(realClock);
      return rows
        .map(({ id }) => {
          const since = lostSince.get(Number(id)) ?? now;
          lostSince.set(Number(id), since);
          return now - since < lostMs;
        })
        .includes(true);
    },
  );

/** Whether a failure says that the role may not make or drop tables: then runs are forgotten one by one. */
export const isForbidden = (error: unknown): boolean => sqlStateOf(error) === "42501";
