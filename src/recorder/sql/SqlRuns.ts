/**
 * Lists stored runs and forgets old ones.
 */
import * as Effect from "effect/Effect";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { RecorderError } from "../RecorderError.ts";
import { folded, type RunQuery } from "../RunFilter.ts";
import { listLimitDefault, type PruneQuery } from "../RunRecorder.ts";
import { everyRun, type Looked, nothing, type Old } from "../retention/Retention.ts";
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

/** Told how many runs are forgotten by now. */
type Told = (runs: number) => void;

/** Forgets ended runs, a bounded number a transaction; see `RunRecorder.prune`. */
export const prune = Effect.fnUntraced(function* (database: SqlDatabase, query: PruneQuery, told: Told = () => {}) {
  const last = yield* lastOld(database, query);
  return yield* forget(database, endedBy(database.tables.sql, last), told, true);
});

/**
 * Forgets what is old. On PostgreSQL whole shelves go: a shelf that was closed so long ago, or behind which there are so many
 * newer runs. A run on it that has not ended, or not for long enough, is moved off it first.
 *
 * A role that does not own the tables leaves shelves to who does, and takes the rows of runs away as ever. Where the owner does not come,
 * it forgets row by row.
 */
export const retire = Effect.fnUntraced(function* (database: SqlDatabase, old: Old, told: Told = () => {}) {
  const { tables } = database;
  const { size } = old;
  const { dialect, sql } = tables;
  if (dialect.name !== "postgres") return { ...nothing, runs: yield* prune(database, old, told) };
  const arranged = yield* database.arrange(allowed(tables, SqlShelves.turn(tables, size, SqlSchema.shelvesVersion)));
  let lacksRight: Looked["lacksRight"] = arranged === undefined ? yield* tending(database, size) : "no";
  if (lacksRight === "untended") {
    return { ...nothing, lacksRight, runs: yield* prune(database, old, told) };
  }
  const last = yield* lastOld(database, old);
  let [gone, dropped, emptied] = [0, 0, 0];
  const more: Told = (runs) => told(gone + runs);
  for (const { id, isOld } of yield* oldShelves(database, last)) {
    const cleared = yield* clear(database, id, isOld, more);
    gone += cleared.gone;
    const isEmptied = cleared.gone + cleared.moved > 0;
    if (isEmptied && cleared.damaged === 0) emptied += 1;
    if (!isEmptied && cleared.damaged > 0) yield* lighten(database, id);
    // A reader may have found a row that is gone by now, and has yet to read its parts: they go at the next look.
    if (cleared.found > 0 || arranged === undefined) continue;
    const isDropped = yield* database.arrange(allowed(tables, SqlShelves.drop(tables, id)));
    if (isDropped === true) dropped += 1;
    // A partition may have another owner than the tables.
    if (isDropped === undefined) lacksRight = "tended";
  }
  gone += yield* forget(database, sql`shelf = 0 AND ${endedBy(sql, last)}`, more);
  return { runs: gone, dropped, emptied, opened: arranged === true, lacksRight } satisfies Looked;
});

/** What `retire` would come to. It changes nothing, so that runs which end meanwhile are not among them. */
export const due = Effect.fnUntraced(function* (database: SqlDatabase, old: Old) {
  const { tables } = database;
  const { size } = old;
  const { dialect, sql } = tables;
  const last = yield* lastOld(database, old);
  const byRow = endedBy(sql, last);
  if (dialect.name !== "postgres") return { ...nothing, runs: yield* counted(database, byRow) };
  const isAllowed = yield* database.read(SqlShelves.isAllowed(tables));
  const lacksRight = isAllowed ? "no" : yield* tending(database, size);
  if (lacksRight === "untended") return { ...nothing, lacksRight, runs: yield* counted(database, byRow) };
  let [runs, dropped, emptied] = [yield* counted(database, sql`shelf = 0 AND ${byRow}`), 0, 0];
  for (const { id, isOld } of yield* oldShelves(database, last)) {
    const { damaged, found, gone } = yield* walked(database, id, isOld, ({ length }, others) =>
      Effect.map(Effect.forEach(others, isDamaged(database)), (all) => {
        const count = all.filter((it) => it).length;
        return { gone: length, moved: others.length - count, damaged: count };
      }),
    );
    runs += gone;
    if (found > 0) emptied += damaged > 0 ? 0 : 1;
    else if (isAllowed) dropped += 1;
  }
  const opened = isAllowed && (yield* database.read(SqlShelves.isDue(tables, size)));
  return { runs, dropped, emptied, opened, lacksRight } satisfies Looked;
});

const counted = (database: SqlDatabase, which: Fragment) => {
  const { runs, sql } = database.tables;
  const counts = sql<{ readonly n: number }>`SELECT COUNT(*) AS n FROM ${runs} WHERE ${which}`;
  return Effect.map(database.read(counts), ([row]) => Number(row?.n ?? 0));
};

/** Arranges shelves; undefined where the role may not. */
const allowed = <A>(tables: SqlTables, arranges: Effect.Effect<A, SqlError>): Effect.Effect<A | undefined, SqlError> =>
  Effect.flatMap(SqlShelves.isAllowed(tables), (isAllowed) =>
    isAllowed ? Effect.catchIf(arranges, SqlShelves.isForbidden, () => Effect.undefined) : Effect.undefined,
  );

/** Where there is no shelf, or one that holds twice what it may, no owner comes to open the next one. */
const tending = (database: SqlDatabase, { ageMs, runs }: Old["size"]) =>
  Effect.map(database.read(SqlShelves.isDue(database.tables, { ageMs: ageMs * 2, runs: runs * 2 })), (isDue) =>
    isDue ? ("untended" as const) : ("tended" as const),
  );

/** Closed shelves that are as old as the last old run: some began later. With whether a run on one is old. */
const oldShelves = (database: SqlDatabase, last: EndedPlace) =>
  Effect.map(database.read(SqlShelves.closed(database.tables)), (closed) =>
    closed.flatMap(({ closedAt, id }) => (closedAt > last.at ? [] : [{ id, isOld: isEndedBy(last) }])),
  );

type OnShelf = Effect.Success<ReturnType<typeof SqlShelves.runsOn>>;

/** What has become of the runs of a page: rows that are gone by this process, runs that it has moved, and those that are damaged. */
interface Cleared {
  readonly gone: number;
  readonly moved: number;
  readonly damaged: number;
}

/** Goes through the runs on a shelf; gives how many there were, and what has become of them. */
const walked = Effect.fnUntraced(function* (
  database: SqlDatabase,
  shelf: number,
  isOld: (run: OnShelf[number]) => boolean,
  each: (old: OnShelf, others: OnShelf) => Effect.Effect<Cleared, RecorderError>,
  told: Told = () => {},
) {
  let [found, after] = [0, -1];
  let all: Cleared = { gone: 0, moved: 0, damaged: 0 };
  while (true) {
    const page = yield* database.read(SqlShelves.runsOn(database.tables, shelf, after, clearedRunsMax));
    const last = page.at(-1);
    if (last === undefined) return { ...all, found };
    const { damaged, gone, moved } = yield* each(
      page.filter(isOld),
      page.filter((run) => !isOld(run)),
    );
    all = { gone: all.gone + gone, moved: all.moved + moved, damaged: all.damaged + damaged };
    [found, after] = [found + page.length, last.seq];
    told(all.gone);
    yield* Effect.yieldNow;
  }
});

/** Deletes the rows of the runs on a shelf that are to be forgotten, and moves the others off it. */
const clear = (database: SqlDatabase, shelf: number, isOld: (run: OnShelf[number]) => boolean, told: Told) => {
  const { runs, sql } = database.tables;
  const cleared = Effect.fnUntraced(function* (old: OnShelf, others: OnShelf) {
    const seqs = old.map(({ seq }) => seq);
    // Another process may have been faster: what it has deleted is not counted here.
    const deleted =
      seqs.length === 0
        ? []
        : yield* database.write(
            sql`DELETE FROM ${runs} WHERE ${sql.in("seq", seqs)} AND shelf = ${shelf} AND ended_at IS NOT NULL
              RETURNING seq`,
          );
    const moved = yield* Effect.forEach(others, ({ run_id }) => moveOff(database, shelf, run_id));
    const count = (of: Moved) => moved.filter((it) => it === of).length;
    return { gone: deleted.length, moved: count("moved"), damaged: count("damaged") };
  });
  return walked(database, shelf, isOld, cleared, told);
};

/** `absent`: another process has moved it, or it is gone. */
type Moved = "moved" | "absent" | "damaged";

/** A damaged record is not moved, and keeps its shelf. */
const moveOff = (database: SqlDatabase, shelf: number, runId: string): Effect.Effect<Moved, RecorderError> => {
  const moved = Effect.gen(function* () {
    const stored = yield* SqlStore.load(database.tables, runId);
    if (stored?.shelf !== shelf) return "absent" as const;
    yield* SqlStore.unshelve(database.tables, runId, stored);
    return "moved" as const;
  });
  return Effect.catchIf(
    database.write(moved),
    ({ reason }) => reason === "corrupt",
    (error) => Effect.as(leftOut(error, "its partition stays"), "damaged" as const),
  );
};

/** Whether a record cannot be read. */
const isDamaged =
  (database: SqlDatabase) =>
  ({ run_id }: OnShelf[number]): Effect.Effect<boolean, RecorderError> =>
    database.read(SqlStore.load(database.tables, run_id)).pipe(
      Effect.as(false),
      Effect.catchIf(
        ({ reason }) => reason === "corrupt",
        () => Effect.succeed(true),
      ),
    );

/** Takes the parts of the others from a shelf that a damaged record keeps: they would lie there for as long as it does. */
const lighten = Effect.fnUntraced(function* (database: SqlDatabase, shelf: number) {
  let after = -1;
  while (true) {
    const gone = yield* database.read(SqlShelves.goneFrom(database.tables, shelf, after, clearedRunsMax));
    const last = gone.at(-1);
    if (last === undefined) return;
    yield* database.write(SqlParts.forget(database.tables, gone));
    after = last.seq;
  }
});

/** The place of a run in the order in which runs ended: those of one moment in that in which they began. */
interface EndedPlace {
  readonly at: number;
  readonly seq: number;
}

/** The runs up to a place. One that has not ended is none of them, whatever is asked for. */
const endedBy = (sql: SqlTables["sql"], { at, seq }: EndedPlace): Fragment =>
  sql`ended_at <= ${at} AND (ended_at < ${at} OR seq <= ${seq})`;

/** The same of a run that was read. */
const isEndedBy =
  (last: EndedPlace) =>
  ({ ended_at, seq }: OnShelf[number]): boolean =>
    ended_at !== null && (ended_at < last.at || (ended_at === last.at && seq <= last.seq));

/** The last run that is old, by its age or because so many ended behind it: all that ended before it are old too. */
const lastOld = Effect.fnUntraced(function* (
  database: SqlDatabase,
  query: PruneQuery & Partial<Pick<Old, "at" | "keptFrom">>,
) {
  const { endedBefore = -1, keep = everyRun, keptFrom = Number.MAX_SAFE_INTEGER } = query;
  const byAge: EndedPlace = { at: endedBefore, seq: -1 };
  const beyond = yield* newestBeyond(database, keep, query.at);
  const byNumber = beyond === undefined || beyond.at < keptFrom ? beyond : { at: keptFrom, seq: -1 };
  return byNumber === undefined || byNumber.at < byAge.at ? byAge : byNumber;
});

/**
 * The ended run after so many that ended last. A file counts off a bounded number at a time, which blocks its thread; a server has no index
 * of it, and sorts them once.
 *
 * @param until what ended later is not counted, of what is forgotten by itself. Of that a server looks at those alone that began last, twice
 *   as many as are kept. A run that took longer than it takes so many to begin is not counted: then more runs are kept, and none that
 *   should be kept goes
 */
const newestBeyond = Effect.fnUntraced(function* (database: SqlDatabase, keep: number, until?: number) {
  const { dialect, runs, sql } = database.tables;
  if (keep === everyRun) return undefined;
  const counted =
    dialect.name === "postgres" && until !== undefined
      ? sql`(SELECT ended_at, seq FROM ${runs} WHERE ended_at IS NOT NULL ORDER BY seq DESC LIMIT ${2 * keep + countedRunsMax}) AS latest`
      : runs;
  let [left, before]: [number, EndedPlace] = [
    keep,
    { at: until ?? Number.MAX_SAFE_INTEGER, seq: Number.MAX_SAFE_INTEGER },
  ];
  while (true) {
    const step = dialect.name === "postgres" ? left : Math.min(left, countedRunsMax);
    const [row] = yield* database.read(sql<{ readonly at: number; readonly seq: number }>`SELECT ended_at AS at, seq
      FROM ${counted} WHERE ${endedBy(sql, before)} ORDER BY ended_at DESC, seq DESC LIMIT 1 OFFSET ${step}`);
    if (row === undefined) return undefined;
    const found: EndedPlace = { at: Number(row.at), seq: Number(row.seq) };
    if (step === left) return found;
    [left, before] = [left - step - 1, { ...found, seq: found.seq - 1 }];
    yield* Effect.yieldNow;
  }
});

/**
 * Looks for old runs without the lock of a writer: mostly there are none, and a reader needs no lock.
 *
 * @param all they are looked for among all runs: a server has no index of when runs ended that lie on shelves, and goes through them once
 */
const forget = Effect.fnUntraced(function* (database: SqlDatabase, which: Fragment, told: Told, all = false) {
  const { dialect, runs, sql } = database.tables;
  let [gone, after] = [0, -1];
  while (true) {
    const next = all && dialect.name === "postgres" ? sql`${which} AND seq > ${after} ORDER BY seq` : which;
    const rows = yield* database.read(sql<SqlStore.Head>`SELECT ${sql.literal(dialect.head)} FROM ${runs}
      WHERE ${next} LIMIT ${prunedRunsMax}`);
    const last = rows.at(-1);
    if (last === undefined) return gone;
    gone += yield* database.write(forgetRuns(database.tables, rows.map(SqlStore.placeOf)));
    after = Number(last.seq);
    told(gone);
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

const leftOut = (error: RecorderError, then = "it is left out"): Effect.Effect<void> =>
  Effect.andThen(SqlFailure.count(error), Effect.logError(`${error.message}; ${then}`));
