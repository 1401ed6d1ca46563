/**
 * Lists stored runs and forgets old ones.
 */
import * as Effect from "effect/Effect";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { RecorderError } from "../RecorderError.ts";
import { folded, type RunQuery } from "../RunFilter.ts";
import { listLimitDefault, type PruneQuery } from "../RunRecorder.ts";
import * as SqlParts from "./postgres/SqlParts.ts";
import * as SqlShelves from "./postgres/SqlShelves.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import * as SqlSchema from "./SqlSchema.ts";
import * as SqlStore from "./SqlStore.ts";
import type { SqlTables } from "./SqlTables.ts";

/** Most runs that one transaction forgets: others wait for it. */
const prunedRunsMax = 100;

/** Most rows of a shelf that one transaction deletes. */
const clearedRunsMax = 1_000;

/** Most runs that one statement counts off. */
const countedRunsMax = 10_000;

/** A lease that is over is kept this long for a person to look at, in milliseconds. */
const leaseKeptMs = 24 * 60 * 60 * 1_000;

/** Most rows that one statement reads: a list has to hold all of them at once. */
const pageRows = 200;

/** Lists runs, newest first; see `RunRecorder.runs`. */
export const list = Effect.fnUntraced(function* (tables: SqlTables, query: RunQuery) {
  const { dialect, runs, sql } = tables;
  const before =
    query.before === undefined
      ? []
      : yield* sql<{ readonly seq: number }>`SELECT seq FROM ${runs} WHERE run_id = ${query.before}`;
  const start = before[0] === undefined ? undefined : Number(before[0].seq);
  const found = yield* readable(tables, query.limit ?? listLimitDefault, (after, count) => {
    const bound = after ?? start;
    return sql<SqlStore.Row>`SELECT ${dialect.row} FROM ${runs} WHERE ${sql.and([
      ...(bound === undefined ? [] : [sql`seq < ${bound}`]),
      ...(query.state === undefined ? [] : [ofState(sql, query.state)]),
      ...(query.broken === true ? [sql`broken > 0`] : []),
      ...searched(sql, query),
    ])} ORDER BY seq DESC LIMIT ${count}`;
  });
  return found.map(({ record }) => record);
});

/** Said so that the index of open runs, of those of them that are not live, or of ended ones, is of use. */
const ofState = (sql: SqlTables["sql"], state: NonNullable<RunQuery["state"]>) => {
  if (state === "ended") return sql`ended_at IS NOT NULL`;
  const open = sql`ended_at IS NULL AND state = ${state}`;
  return state === "live" ? open : sql`${open} AND state <> 'live'`;
};

/** What a search asks of the columns; as `RunFilter.isListed` does of a record. */
const searched = (sql: SqlTables["sql"], query: RunQuery): ReadonlyArray<Fragment> => {
  const { model, provider, startedBefore, startedFrom, text } = query;
  return [
    ...(text === undefined ? [] : [sql.or(["run_id", "provider", "model"].map((name) => contains(sql, name, text)))]),
    ...(provider === undefined ? [] : [contains(sql, "provider", provider)]),
    ...(model === undefined ? [] : [contains(sql, "model", model)]),
    ...(startedFrom === undefined ? [] : [sql`started_at >= ${startedFrom}`]),
    ...(startedBefore === undefined ? [] : [sql`started_at < ${startedBefore}`]),
  ];
};

/** SQLite makes ASCII letters small and no others; PostgreSQL does so by the rules of "C". */
const contains = (sql: SqlTables["sql"], name: string, text: string): Fragment => {
  const [column, wanted] = [sql.literal(name), folded(text)];
  return sql.onDialectOrElse({
    sqlite: () => sql`instr(lower(${column}), ${wanted}) > 0`,
    orElse: () => sql`strpos(lower(${column} COLLATE "C"), ${wanted.replaceAll("\0", "\uFFFD")}) > 0`,
  });
};

/**
 * Reads as many records as asked for. A damaged row is left out, counted and told in the log: it must hide no other run.
 *
 * @param page the next rows after one with this `seq`, in the order of the list
 */
export const readable = Effect.fnUntraced(function* (
  tables: SqlTables,
  limit: number,
  page: (after: number | undefined, count: number) => Effect.Effect<ReadonlyArray<SqlStore.Row>, SqlError>,
) {
  const found: Array<SqlStore.Stored> = [];
  let after: number | undefined;
  while (found.length < limit) {
    const count = Math.min(limit - found.length, pageRows);
    const rows = yield* page(after, count);
    for (const result of yield* SqlStore.decoded(tables, rows)) {
      if (result._tag === "Success") found.push(result.success);
      else yield* leftOut(result.failure);
    }
    if (rows.length < count) break;
    after = Number(rows.at(-1)?.seq);
  }
  return found;
});

/** Forgets ended runs, a bounded number a transaction; see `RunRecorder.prune`. */
export const prune = Effect.fnUntraced(function* (database: SqlDatabase, { endedBefore, keep }: PruneQuery) {
  const { sql } = database.tables;
  let gone = 0;
  if (keep !== undefined) {
    const newest = yield* newestBeyond(database, keep);
    if (newest !== undefined) gone += yield* forget(database, sql`seq <= ${newest}`);
  }
  if (endedBefore !== undefined) gone += yield* forget(database, sql`ended_at < ${endedBefore}`);
  return gone;
});

/** What is forgotten by itself: what is older, and what is more. */
export interface Old {
  /** Milliseconds since the epoch. */
  readonly endedBefore: number;
  readonly keep: number;
  readonly size: SqlShelves.ShelfSize;
}

/**
 * Forgets what is old. On PostgreSQL whole shelves go: a shelf that was closed so long ago, or behind which there are so many
 * newer runs. A run on it that has not ended, or not for long enough, is moved off it first.
 */
export const retire = Effect.fnUntraced(function* (database: SqlDatabase, { endedBefore, keep, size }: Old) {
  const { tables } = database;
  const { dialect, sql } = tables;
  if (dialect.name !== "postgres") return yield* prune(database, { endedBefore, keep });
  const turned = Effect.as(SqlShelves.turn(tables, size, SqlSchema.shelvesVersion), true);
  const mayArrange = yield* database.arrange(
    Effect.catchIf(turned, SqlShelves.isForbidden, () => Effect.succeed(false)),
  );
  if (!mayArrange) return yield* prune(database, { endedBefore, keep });
  const beyond = (yield* newestBeyond(database, keep)) ?? -1;
  let gone = 0;
  for (const { closedAt, id, nextSeq } of yield* database.read(SqlShelves.closed(tables))) {
    const isBeyond = nextSeq - 1 <= beyond;
    if (!isBeyond && closedAt > endedBefore) continue;
    const cleared = yield* clear(database, id, (at) => at !== null && (isBeyond || at < endedBefore));
    // A reader may have found a row that is gone by now, and has yet to read its parts: they go at the next look.
    if (cleared === 0) yield* database.arrange(SqlShelves.drop(tables, id));
    gone += cleared;
  }
  gone += yield* forget(database, sql`shelf = 0 AND seq <= ${beyond}`);
  return gone + (yield* forget(database, sql`shelf = 0 AND ended_at < ${endedBefore}`));
});

/** Deletes the rows of the runs on a shelf that are to be forgotten, and moves the others off it; gives how many there were. */
const clear = Effect.fnUntraced(function* (
  database: SqlDatabase,
  shelf: number,
  isOld: (endedAt: number | null) => boolean,
) {
  const { tables } = database;
  const { runs, sql } = tables;
  let [count, after] = [0, -1];
  while (true) {
    const found = yield* database.read(SqlShelves.runsOn(tables, shelf, after, clearedRunsMax));
    const last = found.at(-1);
    if (last === undefined) return count;
    const old = found.filter(({ ended_at }) => isOld(ended_at)).map(({ seq }) => seq);
    if (old.length > 0) {
      yield* database.write(
        sql`DELETE FROM ${runs} WHERE ${sql.in("seq", old)} AND shelf = ${shelf} AND ended_at IS NOT NULL`,
      );
    }
    for (const { ended_at, run_id } of found) if (!isOld(ended_at)) yield* moveOff(database, shelf, run_id);
    [count, after] = [count + found.length, last.seq];
    yield* Effect.yieldNow;
  }
});

/** A damaged record is not moved, and keeps its shelf. */
const moveOff = (database: SqlDatabase, shelf: number, runId: string): Effect.Effect<void, RecorderError> => {
  const moved = Effect.gen(function* () {
    const stored = yield* SqlStore.load(database.tables, runId);
    if (stored?.shelf === shelf) yield* SqlStore.unshelve(database.tables, runId, stored);
  });
  return Effect.catchIf(database.write(moved), ({ reason }) => reason === "corrupt", leftOut);
};

/** The newest ended run after so many, counted off a bounded number at a time: counting blocks the thread too. */
const newestBeyond = Effect.fnUntraced(function* (database: SqlDatabase, keep: number) {
  const { runs, sql } = database.tables;
  let [left, before] = [keep, Number.MAX_SAFE_INTEGER];
  while (true) {
    const step = Math.min(left, countedRunsMax);
    const [row] = yield* database.read(sql<{ readonly seq: number }>`SELECT seq FROM ${runs}
      WHERE ended_at IS NOT NULL AND seq < ${before} ORDER BY seq DESC LIMIT 1 OFFSET ${step}`);
    if (row === undefined) return undefined;
    if (step === left) return Number(row.seq);
    [left, before] = [left - step - 1, Number(row.seq)];
    yield* Effect.yieldNow;
  }
});

/** Looks for old runs without the lock of a writer: mostly there are none, and a reader needs no lock. */
const forget = Effect.fnUntraced(function* (database: SqlDatabase, which: Fragment) {
  const { dialect, runs, sql } = database.tables;
  let gone = 0;
  while (true) {
    const rows = yield* database.read(sql<SqlStore.Head>`SELECT ${sql.literal(dialect.head)} FROM ${runs}
      WHERE ended_at IS NOT NULL AND ${which} LIMIT ${prunedRunsMax}`);
    if (rows.length === 0) return gone;
    gone += yield* database.write(forgetRuns(database.tables, rows.map(SqlStore.placeOf)));
    yield* Effect.yieldNow;
  }
});

/** The parts go by name: a program's own client may not look after foreign keys. */
const forgetRuns = Effect.fnUntraced(function* (tables: SqlTables, places: ReadonlyArray<SqlParts.Place>) {
  const { incidents, questions, runs, sql } = tables;
  const seqs = places.map(({ seq }) => seq);
  const these = sql`run_id IN (SELECT run_id FROM ${runs} WHERE seq IN ${sql.in(seqs)})`;
  yield* sql`DELETE FROM ${incidents} WHERE ${these}`;
  yield* sql`DELETE FROM ${questions} WHERE ${these}`;
  yield* SqlParts.forget(tables, places);
  const deleted = yield* sql`DELETE FROM ${runs} WHERE seq IN ${sql.in(seqs)} RETURNING seq`;
  return deleted.length;
});

/**
 * The time by which things are old: a process whose clock is ahead of the server's would forget what all others have written.
 *
 * @param own wall clock of this process, milliseconds since the epoch
 */
export const agreedNow = Effect.fnUntraced(function* (database: SqlDatabase, own: number) {
  const { dialect, sql } = database.tables;
  const [row] = yield* database.read(sql<{ readonly now: number }>`SELECT ${dialect.time(own)} AS now`);
  return Math.min(own, Number(row?.now ?? own));
});

/**
 * Forgets leases that are over and own nothing.
 *
 * @param now milliseconds since the epoch
 */
export const pruneLeases = Effect.fnUntraced(function* (database: SqlDatabase, now: number) {
  const { leases, runs, sql } = database.tables;
  const over = sql`expires_at < ${now - leaseKeptMs}
    AND NOT EXISTS (SELECT 1 FROM ${runs} r WHERE r.owner = ${leases}.id)`;
  const rows = yield* database.read(sql`SELECT id FROM ${leases} WHERE ${over} LIMIT 1`);
  if (rows.length > 0) yield* database.write(sql`DELETE FROM ${leases} WHERE ${over}`);
});

const leftOut = (error: RecorderError): Effect.Effect<void> =>
  Effect.andThen(SqlFailure.count(error), Effect.logError(`${error.message}; it is left out`));
