/**
 * Lists stored runs and forgets old ones.
 */
import * as Effect from "effect/Effect";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { RecorderError } from "../RecorderError.ts";
import { folded, type RunQuery } from "../RunFilter.ts";
import { listLimitDefault, type PruneQuery } from "../RunRecorder.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import * as SqlStore from "./SqlStore.ts";
import type { SqlTables } from "./SqlTables.ts";

/** Most runs that one transaction forgets: others wait for it. */
const prunedRunsMax = 100;

/** Most runs that one statement counts off. */
const countedRunsMax = 10_000;

/** A lease that is over is kept this long for a person to look at, in milliseconds. */
const leaseKeptMs = 24 * 60 * 60 * 1_000;

/** Most rows that one statement reads: a list has to hold all of them at once. */
const pageRows = 200;

/** Lists runs, newest first; see `RunRecorder.runs`. */
export const list = Effect.fnUntraced(function* (tables: SqlTables, query: RunQuery) {
  const { runs, sql } = tables;
  const before =
    query.before === undefined
      ? []
      : yield* sql<{ readonly seq: number }>`SELECT seq FROM ${runs} WHERE run_id = ${query.before}`;
  const start = before[0] === undefined ? undefined : Number(before[0].seq);
  const found = yield* readable(tables, query.limit ?? listLimitDefault, (after, count) => {
    const bound = after ?? start;
    return sql<SqlStore.Row>`SELECT seq, run_id, version, owner, record FROM ${runs} WHERE ${sql.and([
      ...(bound === undefined ? [] : [sql`seq < ${bound}`]),
      ...(query.state === undefined ? [] : [ofState(sql, query.state)]),
      ...(query.broken === true ? [sql`broken > 0`] : []),
      ...searched(sql, query),
    ])} ORDER BY seq DESC LIMIT ${count}`;
  });
  return found.map(({ record }) => record);
});

/** Said so that the index of open runs, or of ended ones, is of use. */
const ofState = (sql: SqlTables["sql"], state: NonNullable<RunQuery["state"]>) =>
  state === "ended" ? sql`ended_at IS NOT NULL` : sql`ended_at IS NULL AND state = ${state}`;

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
  const { runs, sql } = database.tables;
  let gone = 0;
  while (true) {
    const rows = yield* database.read(sql<{ readonly seq: number }>`SELECT seq FROM ${runs}
      WHERE ended_at IS NOT NULL AND ${which} LIMIT ${prunedRunsMax}`);
    if (rows.length === 0) return gone;
    const seqs = rows.map(({ seq }) => seq);
    gone += yield* database.write(forgetRuns(database.tables, seqs));
    yield* Effect.yieldNow;
  }
});

/** The parts go by name: a program's own client may not look after foreign keys. */
const forgetRuns = Effect.fnUntraced(function* (tables: SqlTables, seqs: ReadonlyArray<number>) {
  const { incidents, questions, runs, sql } = tables;
  const these = sql`run_id IN (SELECT run_id FROM ${runs} WHERE seq IN ${sql.in(seqs)})`;
  yield* sql`DELETE FROM ${incidents} WHERE ${these}`;
  yield* sql`DELETE FROM ${questions} WHERE ${these}`;
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
