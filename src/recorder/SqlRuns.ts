/**
 * Lists stored runs and forgets old ones.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { RecorderError } from "./RecorderError.ts";
import { listLimitDefault, type PruneQuery, type RunQuery } from "./RunRecorder.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import * as SqlStore from "./SqlStore.ts";

/** Most runs that one transaction forgets: others wait for it. */
const prunedRunsMax = 100;

/** Most runs that one statement counts off. */
const countedRunsMax = 10_000;

/** A lease that is over is kept this long for a person to look at, in milliseconds. */
const leaseKeptMs = 24 * 60 * 60 * 1_000;

/** Most rows that one statement reads: a list has to hold all of them at once. */
const pageRows = 200;

/** Lists runs, newest first; see `RunRecorder.runs`. */
export const list = Effect.fnUntraced(function* (sql: SqlClient, query: RunQuery) {
  const before =
    query.before === undefined
      ? []
      : yield* sql<{ readonly seq: number }>`SELECT seq FROM runs WHERE run_id = ${query.before}`;
  const start = before[0] === undefined ? undefined : Number(before[0].seq);
  const found = yield* readable(sql, query.limit ?? listLimitDefault, (after, count) => {
    const bound = after ?? start;
    return sql<SqlStore.Row>`SELECT seq, run_id, version, owner, record FROM runs WHERE ${sql.and([
      ...(bound === undefined ? [] : [sql`seq < ${bound}`]),
      ...(query.state === undefined ? [] : [ofState(sql, query.state)]),
      ...(query.broken === true ? [sql`broken > 0`] : []),
    ])} ORDER BY seq DESC LIMIT ${count}`;
  });
  return found.map(({ record }) => record);
});

/** Said so that the index of open runs, or of ended ones, is of use. */
const ofState = (sql: SqlClient, state: NonNullable<RunQuery["state"]>) =>
  state === "ended" ? sql`ended_at IS NOT NULL` : sql`ended_at IS NULL AND state = ${state}`;

/**
 * Reads as many records as asked for. A damaged row is left out, counted and told in the log: it must hide no other run.
 *
 * @param page the next rows after one with this `seq`, in the order of the list
 */
export const readable = Effect.fnUntraced(function* (
  sql: SqlClient,
  limit: number,
  page: (after: number | undefined, count: number) => Effect.Effect<ReadonlyArray<SqlStore.Row>, SqlError>,
) {
  const found: Array<SqlStore.Stored> = [];
  let after: number | undefined;
  while (found.length < limit) {
    const count = Math.min(limit - found.length, pageRows);
    const rows = yield* page(after, count);
    for (const result of yield* SqlStore.decoded(sql, rows)) {
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
  const { sql } = database;
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
  const { sql } = database;
  let [left, before] = [keep, Number.MAX_SAFE_INTEGER];
  while (true) {
    const step = Math.min(left, countedRunsMax);
    const [row] = yield* database.read(sql<{ readonly seq: number }>`SELECT seq FROM runs
      WHERE ended_at IS NOT NULL AND seq < ${before} ORDER BY seq DESC LIMIT 1 OFFSET ${step}`);
    if (row === undefined) return undefined;
    if (step === left) return Number(row.seq);
    [left, before] = [left - step - 1, Number(row.seq)];
    yield* Effect.yieldNow;
  }
});

/** What is to go is looked for without the lock of a writer: mostly there is nothing, and a reader needs no lock. */
const forget = Effect.fnUntraced(function* (database: SqlDatabase, which: ReturnType<SqlClient["literal"]>) {
  const { sql } = database;
  let gone = 0;
  while (true) {
    const rows = yield* database.read(sql<{ readonly seq: number }>`SELECT seq FROM runs
      WHERE ended_at IS NOT NULL AND ${which} LIMIT ${prunedRunsMax}`);
    if (rows.length === 0) return gone;
    const seqs = rows.map(({ seq }) => seq);
    const deleted = yield* database.write(sql`DELETE FROM runs WHERE seq IN ${sql.in(seqs)} RETURNING seq`);
    gone += deleted.length;
    yield* Effect.yieldNow;
  }
});

/**
 * Forgets leases that are over and own nothing.
 *
 * @param now wall clock, milliseconds since the epoch
 */
export const pruneLeases = Effect.fnUntraced(function* (database: SqlDatabase, now: number) {
  const { sql } = database;
  const over = sql`expires_at < ${now - leaseKeptMs} AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.owner = leases.id)`;
  const rows = yield* database.read(sql`SELECT id FROM leases WHERE ${over} LIMIT 1`);
  if (rows.length > 0) yield* database.write(sql`DELETE FROM leases WHERE ${over}`);
});

const leftOut = (error: RecorderError): Effect.Effect<void> =>
  Effect.andThen(SqlFailure.count(error), Effect.logError(`${error.message}; it is left out`));
