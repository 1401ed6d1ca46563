/**
 * Keeps records of runs in rows: what is looked for in columns, the rest as JSON.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import type { SqlError } from "effect/sql/SqlError";
import { type RecorderError, refused } from "../RecorderError.ts";
import { RunRecord } from "../RunRecord.ts";
import { listsOf } from "./postgres/SqlLists.ts";
import * as SqlParts from "./postgres/SqlParts.ts";
import * as SqlUnshelved from "./postgres/SqlUnshelved.ts";
import * as SqlFailure from "./SqlFailure.ts";
import { holding } from "./SqlLease.ts";
import type { SqlTables } from "./SqlTables.ts";
import * as SqlFileParts from "./sqlite/SqlFileParts.ts";
import { columns, inserting, isDriven, templates, templatesWhere, updating } from "./sqlite/SqlFileRow.ts";
import type { RowStatement } from "./sqlite/SqlNodeSqlite.ts";

/** A record with what its row says beside it. */
export interface Stored extends SqlParts.Place {
  /** Counts the writes of the row: a process that knows the newest version knows the record. */
  readonly version: number;
  /** The lease of the process that drives it. */
  readonly owner: string | undefined;
  readonly record: RunRecord;
  /** The record as it was first written, if that is known. */
  readonly base?: SqlParts.Base;
}

/** What a row says without its record. */
export interface Head {
  /** Grows in the order in which runs were started. */
  readonly seq: number | string;
  /** Where the parts of the run are, on PostgreSQL; see `SqlParts`. */
  readonly shelf?: number;
  readonly run_id: string;
  readonly version: number;
  readonly owner: string | null;
}

/** A row of `runs`. */
export interface Row extends Head {
  readonly record: string | null;
  readonly changed?: string | null;
}

/** Where the parts of a run are. */
export const placeOf = ({ seq, shelf }: Pick<Head, "seq" | "shelf">): SqlParts.Place => ({
  seq: Number(seq),
  shelf: shelf ?? 0,
});

/** Versions and owners of runs. */
export const heads = (
  { ask, dialect, runs, sql }: SqlTables,
  runIds: ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<Head>, SqlError> =>
  runIds.length === 1
    ? ask<Head>(`SELECT ${dialect.head} FROM {runs} WHERE run_id = ?`, runIds)
    : dialect.name === "postgres"
      ? ask<Head>(`SELECT ${dialect.head} FROM {runs} WHERE run_id = ANY (?::text[])`, [runIds])
      : sql<Head>`SELECT ${sql.literal(dialect.head)} FROM ${runs} WHERE run_id IN ${sql.in(runIds)}`;

/** Reads one run; undefined when it is not known. Fails as `corrupt` where its row is damaged. */
export const load = Effect.fnUntraced(function* (tables: SqlTables, runId: string) {
  const { dialect, runs, sql } = tables;
  const rows = yield* sql<Row>`SELECT ${dialect.row} FROM ${runs} WHERE run_id = ${runId}`;
  const [stored] = yield* decoded(tables, rows);
  if (stored?._tag === "Failure") return yield* stored.failure;
  return stored?.success;
});

/** Reads the records of rows, in their order; a damaged one is its error and harms no other. */
export const decoded = Effect.fnUntraced(function* (tables: SqlTables, rows: ReadonlyArray<Row>) {
  if (rows.length === 0) return [];
  const inRows = yield* partsOf(
    tables,
    rows.filter(({ shelf = 0 }) => shelf === 0),
  );
  const shelved = yield* SqlParts.load(tables, rows.map(placeOf));
  return rows.map(
    (row): Result.Result<Stored, RecorderError> =>
      Result.try({
        try: () => {
          const place = placeOf(row);
          const parts = place.shelf === 0 ? inRows(row.run_id) : shelved.get(place.seq);
          const base = place.shelf === 0 ? undefined : SqlParts.baseOf(parts?.record);
          const own = base === undefined ? JSON.parse(row.record ?? "") : SqlParts.recordOf(base, row.changed);
          const [incidents, questions] = [parts?.incidents ?? [], parts?.questions ?? []].map(parsed);
          const record = decode({ ...plain(own), incidents, questions });
          const where = base === undefined ? place : { ...place, base };
          return { ...where, version: Number(row.version), owner: row.owner ?? undefined, record };
        },
        catch: (cause) => refused("corrupt", row.run_id, cause),
      }),
  );
});

/** Incidents and questions of runs whose records stand in their rows. */
const partsOf = Effect.fnUntraced(function* (
  { incidents: ofIncidents, questions: ofQuestions, sql }: SqlTables,
  rows: ReadonlyArray<Row>,
) {
  const runIds = rows.map((row) => row.run_id);
  const isNone = runIds.length === 0;
  const incidents = isNone
    ? []
    : yield* sql<Part>`SELECT run_id, incident AS part FROM ${ofIncidents}
        WHERE run_id IN ${sql.in(runIds)} ORDER BY n`;
  const questions = isNone
    ? []
    : yield* sql<Part>`SELECT run_id, question AS part FROM ${ofQuestions}
        WHERE run_id IN ${sql.in(runIds)} ORDER BY n`;
  const [incidentsOf, questionsOf] = [Map.groupBy(incidents, byRun), Map.groupBy(questions, byRun)];
  const textsOf = (of: Map<string, Array<Part>>, runId: string) => (of.get(runId) ?? []).map(({ part }) => part);
  return (runId: string): SqlParts.Parts => ({
    record: undefined,
    incidents: textsOf(incidentsOf, runId),
    questions: textsOf(questionsOf, runId),
  });
});

const parsed = (texts: ReadonlyArray<string>): ReadonlyArray<unknown> => texts.map((text) => JSON.parse(text));

/** What a transaction has made of a run. */
export interface Changed {
  readonly runId: string;
  /** As the transaction found it; undefined for a new run. */
  readonly before: Stored | undefined;
  readonly record: RunRecord;
  /** The lease of the process that drives the run behind this write, also of one that claimed it while it is parked. */
  readonly owner: string | undefined;
}

/** What is kept of runs behind a write, by run; empty in a file, where all of it stands in their rows. */
export type Kept = ReadonlyMap<string, SqlParts.Kept>;

/** The same of a run whose row was read. */
export const keptOf = ({ base, seq, shelf }: Stored): SqlParts.Kept => ({
  place: { seq, shelf },
  ...(base && { base }),
});

/**
 * Writes what a transaction has made of its runs. PostgreSQL is asked once for all new ones and once for all others: each
 * statement is a way there and back.
 */
export const save = (
  tables: SqlTables,
  changed: ReadonlyArray<Changed>,
): Effect.Effect<Kept, SqlError | SqlFailure.RowChanged> =>
  tables.dialect.name === "postgres"
    ? saveTogether(tables, changed)
    : Effect.as(
        Effect.forEach(changed, (run) => saveOne(tables, run), { discard: true }),
        new Map(),
      );

const saveOne = (tables: SqlTables, { before, owner, record, runId }: Changed) =>
  before === undefined ? insert(tables, runId, record, owner) : updateRow(tables, runId, before, record, owner);

const saveTogether = Effect.fnUntraced(function* (tables: SqlTables, changed: ReadonlyArray<Changed>) {
  const fresh = changed.filter(({ before }) => before === undefined);
  const known = changed.flatMap(({ before, ...run }) => (before === undefined ? [] : [{ ...run, before }]));
  const kept = new Map<string, SqlParts.Kept>();
  if (fresh.length > 0) {
    const all = fresh.map((run) => ({ run, written: SqlParts.written(run.record, undefined, undefined) }));
    const rows = yield* tables.ask<Head>(
      insertTogether,
      listsOf(all, 10, ({ run, written }) => [...newColumns(run, tables.dialect), written.body ?? ""]),
    );
    const places = new Map(rows.map((row) => [row.run_id, placeOf(row)]));
    for (const { run, written } of all) kept.set(run.runId, keptAs(places.get(run.runId) ?? inRow, written));
    // Nearly none of them has any.
    const put = fresh.flatMap((run) => shelvedOf(kept.get(run.runId)?.place ?? inRow, run));
    if (put.length > 0) yield* tables.ask(SqlParts.putTogether, SqlParts.putValues(put));
  }
  if (known.length > 0) {
    const all = known.map((run) => ({
      run,
      written: SqlParts.written(run.record, run.before.shelf, run.before.base),
    }));
    for (const { run, written } of all) kept.set(run.runId, keptAs(run.before, written));
    yield* updateKnown(tables, all);
  }
  const unshelved = changed.filter(
    ({ before, record, runId }) =>
      (kept.get(runId)?.place ?? inRow).shelf === 0 && !SqlParts.isOneRow(before?.record, record),
  );
  if (unshelved.length > 0) yield* saveUnshelved(tables, unshelved);
  return kept satisfies Kept;
});

const keptAs = ({ seq, shelf }: SqlParts.Place, { base }: SqlParts.Written): SqlParts.Kept => ({
  place: { seq, shelf },
  ...(base && shelf > 0 ? { base } : {}),
});

/** Incidents and questions of a run that have changed among its parts. Nearly every write changes none of them. */
const shelvedOf = (place: SqlParts.Place, { before, record }: Changed): ReadonlyArray<SqlParts.Part> =>
  place.shelf === 0 || SqlParts.isOneRow(before?.record, record)
    ? []
    : SqlParts.changesOf(place, before?.record, record);

/** Parts share the statement of the rows. If a row or a record is not as it was known, nothing stays of any. */
const updateKnown = Effect.fnUntraced(function* (
  tables: SqlTables,
  all: ReadonlyArray<{ readonly run: Changed & { readonly before: Stored }; readonly written: SqlParts.Written }>,
) {
  const records = all.flatMap(({ run: { before }, written: { body } }) =>
    body === undefined ? [] : [SqlParts.recordPart(before, body)],
  );
  const parts = all.flatMap(({ run }) => shelvedOf(run.before, run));
  const put = [...records, ...parts.filter(({ body }) => body !== undefined)];
  const lists = listsOf(all, 9, ({ run, written }) => [...changedColumns(run), written.record, written.changed]);
  const rows = yield* put.length === 0
    ? tables.ask(updateTogether, lists)
    : tables.ask(updateWithParts, [...lists, ...SqlParts.putValues(put), ...SqlParts.foundValues(records)]);
  yield* orChanged(rows.length === all.length + records.length);
  yield* SqlParts.remove(
    tables,
    parts.filter(({ body }) => body === undefined),
  );
});

const saveUnshelved = (tables: SqlTables, runs: ReadonlyArray<Changed>) => {
  const all = runs.map(({ before, record, runId }) => ({ runId, before: before?.record, after: record }));
  return Effect.flatMap(SqlUnshelved.save(tables, all), orChanged);
};

/** A transaction fails where a row that it was to change is not there. */
const orChanged = (isThere: boolean): Effect.Effect<void, SqlFailure.RowChanged> =>
  isThere ? Effect.void : Effect.fail(new SqlFailure.RowChanged());

const newColumns = ({ owner, record, runId }: Changed, { kept }: SqlTables["dialect"]) => {
  const { id, model } = record.provider;
  const [driver, ...rest] = columns(record, owner);
  return [
    runId,
    isDriven(record) ? (driver ?? null) : null,
    ...rest,
    kept(id),
    kept(model ?? ""),
    record.started_at,
    record.state,
  ];
};

/** The parts of a run go under the number that the store says. A store without one keeps the record in the row. */
const insertTogether = `WITH v AS (
    SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])
      WITH ORDINALITY AS u (run_id, owner, parked, ended_at, broken, provider, model, started_at, state, record, n)
  ), s AS (
    SELECT COALESCE(MAX(id), 0) AS id FROM {shelves}
  ), h AS (
    INSERT INTO {runs}
      (run_id, version, owner, parked, ended_at, broken, provider, model, started_at, state, shelf, record)
    SELECT v.run_id, 1, NULLIF(v.owner, ''), NULLIF(v.parked, ''), NULLIF(v.ended_at, '')::double precision, v.broken::integer,
      v.provider, v.model, v.started_at::double precision, v.state, s.id, CASE WHEN s.id = 0 THEN v.record END
    FROM v, s ORDER BY v.n RETURNING run_id, seq, shelf
  ), p AS (
    INSERT INTO {parts} (shelf, seq, kind, id, n, body)
    SELECT h.shelf, h.seq, '${SqlParts.ofRecord}', '', 0, v.record FROM h JOIN v ON v.run_id = h.run_id WHERE h.shelf > 0
  )
  SELECT run_id, seq, shelf FROM h`;

const changedColumns = ({ before, owner, record, runId }: Changed) => [
  runId,
  before?.version ?? 0,
  ...columns(record, owner),
  record.state,
];

const updateTogether = `UPDATE {runs} AS r SET version = r.version + 1, owner = NULLIF(v.owner, ''), parked = NULLIF(v.parked, ''),
    ended_at = NULLIF(v.ended_at, '')::double precision, broken = v.broken::integer, state = v.state,
    record = NULLIF(v.record, ''), changed = NULLIF(v.changed, '')
  FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])
    AS v (run_id, version, owner, parked, ended_at, broken, state, record, changed)
  WHERE r.run_id = v.run_id AND r.version = v.version::integer RETURNING r.seq`;

/** A row for each run that is of its version, and one for each record that was there: all of it sees what was there before. */
const updateWithParts = `WITH u AS (${updateTogether}), p AS (${SqlParts.putTogether})
  SELECT seq FROM u UNION ALL ${SqlParts.foundTogether}`;

/**
 * The statement that writes the row of a run under a lease: it changes one row, or none where the row is not of the version any more
 * that was read, or the lease was fenced.
 */
export const rowStatement = (
  { before, owner, record, runId }: Changed,
  lease: string,
  dialect: SqlTables["dialect"],
): RowStatement => {
  const [template, values] =
    before === undefined
      ? inserting({ record, owner, runId }, dialect.kept)
      : updating(before, { record, owner, runId });
  return [heldTemplates[template], [...values, lease]];
};

/** Whether the lease is good is for its row to say: a process that fences it takes its runs over. */
const heldTemplates = templatesWhere(`EXISTS (${holding("")})`);

/** Adds a run's row. */
const insert = Effect.fnUntraced(function* (
  tables: SqlTables,
  runId: string,
  record: RunRecord,
  owner: string | undefined,
) {
  const [template, values] = inserting({ record, owner, runId }, tables.dialect.kept);
  yield* tables.ask(templates[template], values);
  yield* saveInFile(tables, runId, undefined, record);
});

const saveInFile = (tables: SqlTables, runId: string, before: RunRecord | undefined, after: RunRecord) =>
  Effect.flatMap(SqlFileParts.save(tables, runId, before, after), orChanged);

/** The place of runs in a file, whose records stand in their rows. */
export const inRow: SqlParts.Place = { seq: 0, shelf: 0 };

/**
 * Writes what changed of a run as its version was read; the version becomes the next one.
 *
 * @param owner the lease of the process that drives the run behind this write, also of one that claimed it while it is parked
 */
export const update = (
  tables: SqlTables,
  runId: string,
  before: Stored,
  record: RunRecord,
  owner: string | undefined,
): Effect.Effect<void, SqlError | SqlFailure.RowChanged> =>
  Effect.asVoid(save(tables, [{ before, owner, record, runId }]));

const updateRow = Effect.fnUntraced(function* (
  tables: SqlTables,
  runId: string,
  before: Stored,
  record: RunRecord,
  owner: string | undefined,
) {
  const [template, values] = updating(before, { record, owner, runId });
  const rows = yield* tables.ask(`${templates[template]} RETURNING seq`, values);
  yield* orChanged(rows.length === 1);
  yield* saveInFile(tables, runId, before.record, record);
});

interface Part {
  readonly run_id: string;
  readonly part: string;
}

const byRun = ({ run_id }: Part): string => run_id;

const decode = Schema.decodeUnknownSync(RunRecord);

const plain = (value: unknown): object => {
  if (typeof value !== "object" || value === null) throw new Error("the record is no JSON object");
  return value;
};
