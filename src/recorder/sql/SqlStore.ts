/**
 * Keeps records of runs in rows. Searchable fields are columns, and the rest is JSON.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import type { SqlError } from "effect/sql/SqlError";
import { type RecorderError, runError } from "../RecorderError.ts";
import { RunRecord } from "../RunRecord.ts";
import { transpose } from "./postgres/SqlLists.ts";
import * as SqlParts from "./postgres/SqlParts.ts";
import * as SqlUnshelved from "./postgres/SqlUnshelved.ts";
import * as SqlFailure from "./SqlFailure.ts";
import { selectUnfenced } from "./SqlLease.ts";
import type { SqlTables } from "./SqlTables.ts";
import * as SqlFileParts from "./sqlite/SqlFileParts.ts";
import { columns, insertValues, isDriven, templates, templatesWhere, updateValues } from "./sqlite/SqlFileRow.ts";
import type { RowStatement } from "./sqlite/SqlNodeSqlite.ts";

/** A record with the columns of its row that are not part of the record. */
export interface Stored extends SqlParts.Place {
  /** Counts the writes of the row. A process that knows the newest version also knows the record. */
  readonly version: number;
  /** Lease of the process that owns the run. */
  readonly owner: string | undefined;
  readonly record: RunRecord;
  /** The record as it was first written, if known. */
  readonly base?: SqlParts.Base;
}

/** Columns of a row without its record. */
export interface Head {
  /** Number of the run in the order of starts. */
  readonly seq: number | string;
  /** Shelf of the run's parts on PostgreSQL; see `SqlParts`. */
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

/** Returns the key of a run's rows in the parts table. */
export const placeOf = ({ seq, shelf }: Pick<Head, "seq" | "shelf">): SqlParts.Place => ({
  seq: Number(seq),
  shelf: shelf ?? 0,
});

/** Reads the versions and owners of runs. */
export const readHeads = (
  { ask, dialect, runs, sql }: SqlTables,
  runIds: ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<Head>, SqlError> =>
  runIds.length === 1
    ? ask<Head>(`SELECT ${dialect.head} FROM {runs} WHERE run_id = ?`, runIds)
    : dialect.name === "postgres"
      ? ask<Head>(`SELECT ${dialect.head} FROM {runs} WHERE run_id = ANY (?::text[])`, [runIds])
      : sql<Head>`SELECT ${sql.literal(dialect.head)} FROM ${runs} WHERE run_id IN ${sql.in(runIds)}`;

/** Reads one run; returns undefined if it is unknown. Fails as `corrupt` if its row is damaged. */
export const load = Effect.fnUntraced(function* (tables: SqlTables, runId: string) {
  const { dialect, runs, sql } = tables;
  const rows = yield* sql<Row>`SELECT ${dialect.row} FROM ${runs} WHERE run_id = ${runId}`;
  const [stored] = yield* decodeRows(tables, rows);
  if (stored?._tag === "Failure") return yield* stored.failure;
  return stored?.success;
});

/** Decodes the records of rows, in order. A damaged record becomes an error and does not affect the others. */
export const decodeRows = Effect.fnUntraced(function* (tables: SqlTables, rows: ReadonlyArray<Row>) {
  if (rows.length === 0) return [];
  const inRows = yield* readParts(
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
          const base = place.shelf === 0 ? undefined : SqlParts.parseBase(parts?.record);
          const own = base === undefined ? JSON.parse(row.record ?? "") : SqlParts.applyChanges(base, row.changed);
          const [incidents, questions] = [parts?.incidents ?? [], parts?.questions ?? []].map(parseAll);
          const record = decode({ ...requireObject(own), incidents, questions });
          const where = base === undefined ? place : { ...place, base };
          return { ...where, version: Number(row.version), owner: row.owner ?? undefined, record };
        },
        catch: (cause) => runError("corrupt", row.run_id, cause),
      }),
  );
});

/** Reads incidents and questions of runs that keep their records in their rows. */
const readParts = Effect.fnUntraced(function* (
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

const parseAll = (texts: ReadonlyArray<string>): ReadonlyArray<unknown> => texts.map((text) => JSON.parse(text));

/** A run that a transaction changes. */
export interface Changed {
  readonly runId: string;
  /** State that the transaction found; undefined for a new run. */
  readonly before: Stored | undefined;
  readonly record: RunRecord;
  /** Lease of the process that owns the run after this write, including a claimed run that is still parked. */
  readonly owner: string | undefined;
}

/** Data to keep in memory after a write, by run. Empty for a file, which keeps everything in rows. */
export type Kept = ReadonlyMap<string, SqlParts.Kept>;

/** Returns the data to keep in memory for a run whose row was read. */
export const toKept = ({ base, seq, shelf }: Stored): SqlParts.Kept => ({
  place: { seq, shelf },
  ...(base && { base }),
});

/**
 * Writes the changed runs of a transaction. On PostgreSQL, all new runs share one statement and all other runs another, because every
 * statement is a round trip.
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
    const { toKept, values } = encodeNewRows(tables, fresh);
    for (const [runId, it] of toKept(yield* tables.ask<Head>(insertTogether, values))) kept.set(runId, it);
    // A new run rarely has parts.
    const put = fresh.flatMap((run) => changedParts(kept.get(run.runId)?.place ?? inRow, run));
    if (put.length > 0) yield* tables.ask(SqlParts.putTogether, SqlParts.putValues(put));
  }
  if (known.length > 0) {
    const all = known.map((run) => ({
      run,
      written: SqlParts.encode(run.record, run.before.shelf, run.before.base),
    }));
    for (const { run, written } of all) kept.set(run.runId, toKeptAfterWrite(run.before, written));
    yield* updateKnown(tables, all);
  }
  const unshelved = changed.filter(
    ({ before, record, runId }) =>
      (kept.get(runId)?.place ?? inRow).shelf === 0 && !SqlParts.isOneRow(before?.record, record),
  );
  if (unshelved.length > 0) yield* saveUnshelved(tables, unshelved);
  return kept satisfies Kept;
});

/** Returns the rows of new runs, and the data to keep for each afterwards. */
const encodeNewRows = (tables: SqlTables, fresh: ReadonlyArray<Changed>) => {
  const all = fresh.map((run) => ({ run, written: SqlParts.encode(run.record, undefined, undefined) }));
  return {
    values: transpose(all, 10, ({ run, written }) => [...newColumns(run, tables.dialect), written.body ?? ""]),
    toKept: (rows: ReadonlyArray<Head>): Kept => {
      const places = new Map(rows.map((row) => [row.run_id, placeOf(row)]));
      return new Map(
        all.map(({ run, written }) => [run.runId, toKeptAfterWrite(places.get(run.runId) ?? inRow, written)]),
      );
    },
  };
};

/**
 * Builds the statement that starts runs under a lease. It adds all of the runs or none: none if the lease was fenced, and none outside a
 * serialisable transaction.
 *
 * @param fresh runs without incidents and questions
 */
export const beginStatement = (tables: SqlTables, fresh: ReadonlyArray<Changed>, lease: string) => {
  const { toKept, values } = encodeNewRows(tables, fresh);
  return {
    template: insertHeld,
    values: [...values, lease],
    // The caller passes the rows that the statement returned.
    toKept: (rows: ReadonlyArray<object>) =>
      rows.length === fresh.length ? toKept(rows as ReadonlyArray<Head>) : undefined,
  };
};

const toKeptAfterWrite = ({ seq, shelf }: SqlParts.Place, { base }: SqlParts.Written): SqlParts.Kept => ({
  place: { seq, shelf },
  ...(base && shelf > 0 ? { base } : {}),
});

/** Returns the parts of a run that changed: incidents and questions. Nearly every write changes none. */
const changedParts = (place: SqlParts.Place, { before, record }: Changed): ReadonlyArray<SqlParts.Part> =>
  place.shelf === 0 || SqlParts.isOneRow(before?.record, record)
    ? []
    : SqlParts.diffParts(place, before?.record, record);

/**
 * Updates runs that are on record, and their parts in the same statement. The transaction fails if a row or a record is not as expected.
 */
const updateKnown = Effect.fnUntraced(function* (
  tables: SqlTables,
  all: ReadonlyArray<{ readonly run: Changed & { readonly before: Stored }; readonly written: SqlParts.Written }>,
) {
  const records = all.flatMap(({ run: { before }, written: { body } }) =>
    body === undefined ? [] : [SqlParts.recordPart(before, body)],
  );
  const parts = all.flatMap(({ run }) => changedParts(run.before, run));
  const put = [...records, ...parts.filter(({ body }) => body !== undefined)];
  const lists = transpose(all, 9, ({ run, written }) => [...updateColumns(run), written.record, written.changed]);
  const rows = yield* put.length === 0
    ? tables.ask(updateTogether, lists)
    : tables.ask(updateWithParts, [...lists, ...SqlParts.putValues(put), ...SqlParts.foundValues(records)]);
  yield* requireRow(rows.length === all.length + records.length);
  yield* SqlParts.remove(
    tables,
    parts.filter(({ body }) => body === undefined),
  );
});

const saveUnshelved = (tables: SqlTables, runs: ReadonlyArray<Changed>) => {
  const all = runs.map(({ before, record, runId }) => ({ runId, before: before?.record, after: record }));
  return Effect.flatMap(SqlUnshelved.save(tables, all), requireRow);
};

/** Fails the transaction if a row that it should have changed is missing. */
const requireRow = (isThere: boolean): Effect.Effect<void, SqlFailure.RowChanged> =>
  isThere ? Effect.void : Effect.fail(new SqlFailure.RowChanged());

const newColumns = ({ owner, record, runId }: Changed, { toStorable }: SqlTables["dialect"]) => {
  const { id, model } = record.provider;
  const [driver, ...rest] = columns(record, owner);
  return [
    runId,
    isDriven(record) ? (driver ?? null) : null,
    ...rest,
    toStorable(id),
    toStorable(model ?? ""),
    record.started_at,
    record.state,
  ];
};

/**
 * Inserts new runs. The parts of a run go to the newest shelf (a section of the parts table; see `SqlParts`). If there is no shelf, the
 * record stays in its row.
 */
const insertTemplate = (where: string) => `WITH v AS (
    SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])
      WITH ORDINALITY AS u (run_id, owner, parked, ended_at, broken, provider, model, started_at, state, record, n)
  ), s AS (
    SELECT COALESCE(MAX(id), 0) AS id FROM {shelves}
  ), h AS (
    INSERT INTO {runs}
      (run_id, version, owner, parked, ended_at, broken, provider, model, started_at, state, shelf, record)
    SELECT v.run_id, 1, NULLIF(v.owner, ''), NULLIF(v.parked, ''), NULLIF(v.ended_at, '')::double precision, v.broken::integer,
      v.provider, v.model, v.started_at::double precision, v.state, s.id, CASE WHEN s.id = 0 THEN v.record END
    FROM v, s${where} ORDER BY v.n RETURNING run_id, seq, shelf
  ), p AS (
    INSERT INTO {parts} (shelf, seq, kind, id, n, body)
    SELECT h.shelf, h.seq, '${SqlParts.ofRecord}', '', 0, v.record FROM h JOIN v ON v.run_id = h.run_id WHERE h.shelf > 0
  )
  SELECT run_id, seq, shelf FROM h`;

const insertTogether = insertTemplate("");

const insertHeld = insertTemplate(
  ` WHERE EXISTS (${selectUnfenced("")}) AND current_setting('transaction_isolation') = 'serializable'`,
);

const updateColumns = ({ before, owner, record, runId }: Changed) => [
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

/** Returns one row per run of the expected version, and one per record that existed. All subqueries see the state before the statement. */
const updateWithParts = `WITH u AS (${updateTogether}), p AS (${SqlParts.putTogether})
  SELECT seq FROM u UNION ALL ${SqlParts.foundTogether}`;

/**
 * Builds the statement that writes a run's row under a lease. It changes one row, or none if the version changed since the row was read or
 * if the lease was fenced.
 */
export const rowStatement = (
  { before, owner, record, runId }: Changed,
  lease: string,
  dialect: SqlTables["dialect"],
): RowStatement => {
  const [template, values] =
    before === undefined
      ? insertValues({ record, owner, runId }, dialect.toStorable)
      : updateValues(before, { record, owner, runId });
  return [heldTemplates[template], [...values, lease]];
};

/** The templates write nothing if the lease was fenced, because the process that fences a lease takes its runs over. */
const heldTemplates = templatesWhere(`EXISTS (${selectUnfenced("")})`);

const insert = Effect.fnUntraced(function* (
  tables: SqlTables,
  runId: string,
  record: RunRecord,
  owner: string | undefined,
) {
  const [template, values] = insertValues({ record, owner, runId }, tables.dialect.toStorable);
  yield* tables.ask(templates[template], values);
  yield* saveInFile(tables, runId, undefined, record);
});

const saveInFile = (tables: SqlTables, runId: string, before: RunRecord | undefined, after: RunRecord) =>
  Effect.flatMap(SqlFileParts.save(tables, runId, before, after), requireRow);

/** Place of a run without parts, as in a file: its record is in its row. */
export const inRow: SqlParts.Place = { seq: 0, shelf: 0 };

/**
 * Writes the changes of a run if its version has not changed since it was read, and increments the version.
 *
 * @param owner lease of the process that owns the run after this write, including a claimed run that is still parked
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
  const [template, values] = updateValues(before, { record, owner, runId });
  const rows = yield* tables.ask(`${templates[template]} RETURNING seq`, values);
  yield* requireRow(rows.length === 1);
  yield* saveInFile(tables, runId, before.record, record);
});

interface Part {
  readonly run_id: string;
  readonly part: string;
}

const byRun = ({ run_id }: Part): string => run_id;

const decode = Schema.decodeUnknownSync(RunRecord);

const requireObject = (value: unknown): object => {
  if (typeof value !== "object" || value === null) throw new Error("the record is not a JSON object");
  return value;
};
