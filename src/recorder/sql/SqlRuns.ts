/** Lists stored runs and deletes old ones. */
import * as Effect from "effect/Effect";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { RecorderError } from "../RecorderError.ts";
import { foldCase, type RunQuery } from "../RunFilter.ts";
import { listLimitDefault, type PruneQuery } from "../RunRecorder.ts";
import { everyRun, type Old } from "../retention/Retention.ts";
import * as SqlParts from "./postgres/SqlParts.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import * as SqlStore from "./SqlStore.ts";
import type { SqlTables } from "./SqlTables.ts";

/** Maximum runs that one transaction deletes, because other transactions wait for it. */
const prunedRunsMax = 100;

/** Maximum runs that one statement skips while counting. */
const countedRunsMax = 10_000;

/** Time for which an expired lease is kept for people to inspect, in milliseconds. */
const leaseKeptMs = 24 * 60 * 60 * 1_000;

/** Maximum rows that one statement reads, because all of these rows are in memory at once. */
const pageRows = 200;

/** Lists runs, newest first; see `RunRecorder.runs`. */
export const list = Effect.fnUntraced(function* (tables: SqlTables, query: RunQuery) {
  const { dialect, runs, sql } = tables;
  const before =
    query.before === undefined
      ? []
      : yield* sql<{ readonly seq: number }>`SELECT seq FROM ${runs} WHERE run_id = ${query.before}`;
  const start = before[0] === undefined ? undefined : Number(before[0].seq);
  const found = yield* readRecords(tables, query.limit ?? listLimitDefault, (after, count) => {
    const bound = after ?? start;
    return sql<SqlStore.Row>`SELECT ${dialect.row} FROM ${runs} WHERE ${sql.and([
      ...(bound === undefined ? [] : [sql`seq < ${bound}`]),
      ...(query.state === undefined ? [] : [stateCondition(sql, query.state)]),
      ...(query.broken === true ? [sql`broken > 0`] : []),
      ...searchConditions(sql, query),
    ])} ORDER BY seq DESC LIMIT ${count}`;
  });
  return found.map(({ record }) => record);
});

/** Filters by state. The conditions match the partial index of all open runs, of open runs that are not live, or of ended runs. */
const stateCondition = (sql: SqlTables["sql"], state: NonNullable<RunQuery["state"]>) => {
  if (state === "ended") return sql`ended_at IS NOT NULL`;
  const open = sql`ended_at IS NULL AND state = ${state}`;
  return state === "live" ? open : sql`${open} AND state <> 'live'`;
};

/** Filters by columns exactly as `RunFilter.isListed` filters records. */
const searchConditions = (sql: SqlTables["sql"], query: RunQuery): ReadonlyArray<Fragment> => {
  const { model, provider, startedBefore, startedFrom, text } = query;
  return [
    ...(text === undefined
      ? []
      : [sql.or(["run_id", "provider", "model"].map((name) => textCondition(sql, name, text)))]),
    ...(provider === undefined ? [] : [textCondition(sql, "provider", provider)]),
    ...(model === undefined ? [] : [textCondition(sql, "model", model)]),
    ...(startedFrom === undefined ? [] : [sql`started_at >= ${startedFrom}`]),
    ...(startedBefore === undefined ? [] : [sql`started_at < ${startedBefore}`]),
  ];
};

/** Filters by text, ignoring case. SQLite lowercases only ASCII letters; PostgreSQL does so with the "C" collation. */
const textCondition = (sql: SqlTables["sql"], name: string, text: string): Fragment => {
  const [column, wanted] = [sql.literal(name), foldCase(text)];
  return sql.onDialectOrElse({
    sqlite: () => sql`instr(lower(${column}), ${wanted}) > 0`,
    orElse: () => sql`strpos(lower(${column} COLLATE "C"), ${wanted.replaceAll("\0", "\uFFFD")}) > 0`,
  });
};

/**
 * Reads up to `limit` records. A damaged row is omitted, counted and logged, because it must not hide other runs.
 *
 * @param page reads the rows after the row with this `seq`, in list order
 */
export const readRecords = Effect.fnUntraced(function* (
  tables: SqlTables,
  limit: number,
  page: (after: number | undefined, count: number) => Effect.Effect<ReadonlyArray<SqlStore.Row>, SqlError>,
) {
  const found: Array<SqlStore.Stored> = [];
  let after: number | undefined;
  while (found.length < limit) {
    const count = Math.min(limit - found.length, pageRows);
    const rows = yield* page(after, count);
    for (const result of yield* SqlStore.decodeRows(tables, rows)) {
      if (result._tag === "Success") found.push(result.success);
      else yield* reportSkipped(result.failure);
    }
    if (rows.length < count) break;
    after = Number(rows.at(-1)?.seq);
  }
  return found;
});

/**
 * Deletes ended runs in bounded transactions; see `RunRecorder.prune`.
 *
 * @param onProgress receives the number of runs deleted so far
 */
export const prune = Effect.fnUntraced(function* (
  database: SqlDatabase,
  query: OldQuery,
  onProgress: (runs: number) => void = () => {},
) {
  const { dialect, runs, sql } = database.tables;
  const last = yield* findLastOld(database, query);
  let gone = 0;
  let after: EndedPlace | undefined;
  while (true) {
    // Each page starts after the previous one, because the index keeps deleted entries until a vacuum.
    const which =
      after === undefined ? upToPlace(sql, last) : sql`${upToPlace(sql, last)} AND ${afterPlace(sql, after)}`;
    // Reads without a writer's lock, because usually no run is old.
    const rows = yield* database.read(sql<EndedHead>`SELECT ${sql.literal(dialect.head)}, ended_at FROM ${runs}
      WHERE ${which} ORDER BY ended_at, seq LIMIT ${prunedRunsMax}`);
    const newest = rows.at(-1);
    if (newest === undefined) return gone;
    gone += yield* database.write(forget(database.tables, rows));
    after = { at: Number(newest.ended_at), seq: Number(newest.seq) };
    onProgress(gone);
    yield* Effect.yieldNow;
  }
});

/** Counts the runs that `prune` would delete. */
export const countOld = Effect.fnUntraced(function* (database: SqlDatabase, query: OldQuery) {
  const { runs, sql } = database.tables;
  const last = yield* findLastOld(database, query);
  const [row] = yield* database.read(
    sql<{ readonly n: number }>`SELECT COUNT(*) AS n FROM ${runs} WHERE ${upToPlace(sql, last)}`,
  );
  return Number(row?.n ?? 0);
});

/** The limits that define old runs, set by a person or by the store's own retention. */
type OldQuery = PruneQuery & Partial<Pick<Old, "at" | "keptFrom">>;

interface EndedHead extends SqlStore.Head {
  readonly ended_at: number;
}

/** Position of a run in the order of ends, with ties in the order of starts. */
interface EndedPlace {
  readonly at: number;
  readonly seq: number;
}

/** Matches runs up to a position. Runs that have not ended never match. */
const upToPlace = (sql: SqlTables["sql"], { at, seq }: EndedPlace): Fragment =>
  sql`ended_at <= ${at} AND (ended_at < ${at} OR seq <= ${seq})`;

const afterPlace = (sql: SqlTables["sql"], { at, seq }: EndedPlace): Fragment =>
  sql`ended_at >= ${at} AND (ended_at > ${at} OR seq > ${seq})`;

/**
 * Returns the position of the newest run that is old: it ended too long ago, or too many runs have ended since. All ended runs before this
 * position are old too.
 */
const findLastOld = Effect.fnUntraced(function* (database: SqlDatabase, query: OldQuery) {
  const { endedBefore = -1, keep = everyRun, keptFrom = Number.MAX_SAFE_INTEGER } = query;
  const byAge: EndedPlace = { at: endedBefore, seq: -1 };
  const beyond = yield* findNewestBeyond(database, keep, query.at);
  const byNumber = beyond === undefined || beyond.at < keptFrom ? beyond : { at: keptFrom, seq: -1 };
  return byNumber === undefined || byNumber.at < byAge.at ? byAge : byNumber;
});

/**
 * Returns the position of the newest ended run that is not among the `keep` runs that ended last. Counts in bounded steps, because a
 * statement on a file blocks the thread.
 *
 * @param until end time after which runs are not counted, for automatic retention
 */
const findNewestBeyond = Effect.fnUntraced(function* (database: SqlDatabase, keep: number, until?: number) {
  const { runs, sql } = database.tables;
  if (keep === everyRun) return undefined;
  let [left, before]: [number, EndedPlace] = [
    keep,
    { at: until ?? Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER },
  ];
  while (true) {
    const step = Math.min(left, countedRunsMax);
    const [row] = yield* database.read(sql<{ readonly at: number; readonly seq: number }>`SELECT ended_at AS at, seq
      FROM ${runs} WHERE ${upToPlace(sql, before)} ORDER BY ended_at DESC, seq DESC LIMIT 1 OFFSET ${step}`);
    if (row === undefined) return undefined;
    const found: EndedPlace = { at: Number(row.at), seq: Number(row.seq) };
    if (step === left) return found;
    [left, before] = [left - step - 1, { ...found, seq: found.seq - 1 }];
    yield* Effect.yieldNow;
  }
});

/** Deletes incidents, questions and parts explicitly, because a program's own client may not enforce foreign keys. */
const forget = Effect.fnUntraced(function* (tables: SqlTables, heads: ReadonlyArray<SqlStore.Head>) {
  const { incidents, questions, runs, sql } = tables;
  const places = heads.map(SqlStore.placeOf);
  const inRows = places.filter(({ shelf }) => shelf === 0).map(({ seq }) => seq);
  if (inRows.length > 0) {
    // Selects by `seq`, because another run may have the same id by now.
    const these = sql`run_id IN (SELECT run_id FROM ${runs} WHERE seq IN ${sql.in(inRows)})`;
    yield* sql`DELETE FROM ${incidents} WHERE ${these}`;
    yield* sql`DELETE FROM ${questions} WHERE ${these}`;
  }
  yield* SqlParts.forget(tables, places);
  // Another process may have deleted some of them already. Those are not counted here.
  const deleted = yield* sql`DELETE FROM ${runs} WHERE seq IN ${sql.in(places.map(({ seq }) => seq))} RETURNING seq`;
  return deleted.length;
});

/**
 * Returns the time by which age is measured: the earlier of both clocks. A process whose clock is ahead of the server's would otherwise
 * delete the runs of all other processes.
 *
 * @param own wall clock of this process, in milliseconds since the epoch
 */
export const readAgreedNow = Effect.fnUntraced(function* (database: SqlDatabase, own: number) {
  const { dialect, sql } = database.tables;
  const [row] = yield* database.read(sql<{ readonly now: number }>`SELECT ${dialect.time(own)} AS now`);
  return Math.min(own, Number(row?.now ?? own));
});

/**
 * Deletes expired leases that own no run.
 *
 * @param now current time, in milliseconds since the epoch
 */
export const pruneLeases = Effect.fnUntraced(function* (database: SqlDatabase, now: number) {
  const { leases, runs, sql } = database.tables;
  const over = sql`expires_at < ${now - leaseKeptMs}
    AND NOT EXISTS (SELECT 1 FROM ${runs} r WHERE r.owner = ${leases}.id)`;
  const rows = yield* database.read(sql`SELECT id FROM ${leases} WHERE ${over} LIMIT 1`);
  if (rows.length > 0) yield* database.write(sql`DELETE FROM ${leases} WHERE ${over}`);
});

const reportSkipped = (error: RecorderError): Effect.Effect<void> =>
  Effect.andThen(SqlFailure.count(error), Effect.logError(`${error.message}; it is skipped`));
