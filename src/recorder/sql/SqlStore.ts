/**
 * Keeps records of runs in rows: what is looked for in columns, the rest as JSON.
 */
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Schema from "effect/Schema";
import type { SqlError } from "effect/sql/SqlError";
import { type RecorderError, refused } from "../RecorderError.ts";
import { RunRecord } from "../RunRecord.ts";
import * as SqlParts from "./postgres/SqlParts.ts";
import * as SqlFailure from "./SqlFailure.ts";
import type { SqlTables } from "./SqlTables.ts";

/** A record with what its row says beside it. */
export interface Stored extends SqlParts.Place {
  /** Counts the writes of the row: a process that knows the newest version knows the record. */
  readonly version: number;
  /** The lease of the process that drives it. */
  readonly owner: string | undefined;
  readonly record: RunRecord;
  /** The record as it lies on its shelf, where that is known. */
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
  const keep = (runId: string, { seq, shelf }: SqlParts.Place, { base }: SqlParts.Written) =>
    kept.set(runId, { place: { seq, shelf }, ...(base && shelf > 0 ? { base } : {}) });
  if (fresh.length > 0) {
    const all = fresh.map((run) => ({ run, written: SqlParts.written(run.record, undefined, undefined) }));
    const rows = yield* tables.ask<Head>(
      insertTogether,
      SqlParts.listsOf(all.map(({ run, written }) => [...newColumns(run, tables.dialect), written.body ?? ""])),
    );
    const places = new Map(rows.map((row) => [row.run_id, placeOf(row)]));
    for (const { run, written } of all) keep(run.runId, places.get(run.runId) ?? inRow, written);
  }
  if (known.length > 0) {
    const all = known.map((run) => ({
      run,
      written: SqlParts.written(run.record, run.before.shelf, run.before.base),
    }));
    const rows = yield* tables.ask(
      updateTogether,
      SqlParts.listsOf(all.map(({ run, written }) => [...changedColumns(run), written.record, written.changed])),
    );
    if (rows.length !== known.length) return yield* Effect.fail(new SqlFailure.RowChanged());
    for (const { run, written } of all) {
      keep(run.runId, run.before, written);
      const isThere = written.body === undefined || (yield* SqlParts.replace(tables, run.before, written.body));
      if (!isThere) return yield* Effect.fail(new SqlFailure.RowChanged());
    }
  }
  // Nearly every write changes none of them.
  const broken = changed
    .filter(({ before, record }) => !SqlParts.isOneRow(before?.record, record))
    .map(({ before, record, runId }) => ({
      runId,
      place: kept.get(runId)?.place ?? inRow,
      before: before?.record,
      after: record,
    }));
  for (const { after, before, place, runId } of broken) {
    if (place.shelf === 0) yield* saveInTables(tables, runId, before, after);
  }
  const shelved = broken.filter(({ place }) => place.shelf > 0);
  if (shelved.length > 0) yield* SqlParts.save(tables, shelved);
  return kept satisfies Kept;
});

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

/**
 * The parts of a run go to the newest shelf. Where there is none, its record stands in its row. So does that of a run which comes
 * from another store and has ended there: it may be forgotten long before that shelf.
 */
const insertTogether = `WITH v AS (
    SELECT * FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])
      WITH ORDINALITY AS u (run_id, owner, parked, ended_at, broken, provider, model, started_at, state, record, n)
  ), s AS (
    SELECT COALESCE(MAX(id), 0) AS id, false AS ended FROM {shelves} UNION ALL SELECT 0, true
  ), h AS (
    INSERT INTO {runs}
      (run_id, version, owner, parked, ended_at, broken, provider, model, started_at, state, shelf, record)
    SELECT v.run_id, 1, NULLIF(v.owner, ''), NULLIF(v.parked, ''), NULLIF(v.ended_at, '')::double precision, v.broken::integer,
      v.provider, v.model, v.started_at::double precision, v.state, s.id, CASE WHEN s.id = 0 THEN v.record END
    FROM v JOIN s ON s.ended = (v.ended_at <> '') ORDER BY v.n RETURNING run_id, seq, shelf
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

/** A statement of one row: its template and values, as `SqlTables.ask` takes them. */
export type Statement = readonly [template: string, values: ReadonlyArray<string | number | null>];

/** The statement that writes the row of a run: it changes one row, or none where the row is not of the version any more that was read. */
export const rowStatement = ({ before, owner, record, runId }: Changed, dialect: SqlTables["dialect"]): Statement =>
  before === undefined ? inserting(runId, record, owner, dialect) : updating(runId, before, record, owner);

const inserting = (
  runId: string,
  record: RunRecord,
  owner: string | undefined,
  { kept }: SqlTables["dialect"],
): Statement => {
  const { id, model } = record.provider;
  return [
    `INSERT INTO {runs} (run_id, version, owner, state, parked, provider, model, started_at, ended_at, broken, record)
      VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      runId,
      isDriven(record) ? (owner ?? null) : null,
      record.state,
      record.parked ?? null,
      kept(id),
      kept(model ?? ""),
      record.started_at,
      record.end?.at ?? null,
      record.incidents.length,
      encode(record),
    ],
  ];
};

const updating = (runId: string, before: Stored, record: RunRecord, owner: string | undefined): Statement => {
  const [kept, next] = [columns(before.record, before.owner), columns(record, owner)];
  const where = "WHERE run_id = ? AND version = ?";
  // A column that an index names costs a write of that index, also where its value stays.
  return next.every((value, index) => value === kept[index])
    ? [
        `UPDATE {runs} SET version = ?, state = ?, record = ? ${where}`,
        [before.version + 1, record.state, encode(record), runId, before.version],
      ]
    : [
        `UPDATE {runs} SET version = ?, state = ?, record = ?, owner = ?, parked = ?, ended_at = ?, broken = ? ${where}`,
        [before.version + 1, record.state, encode(record), ...next, runId, before.version],
      ];
};

/** Adds a run's row. */
const insert = Effect.fnUntraced(function* (
  tables: SqlTables,
  runId: string,
  record: RunRecord,
  owner: string | undefined,
) {
  yield* tables.ask(...inserting(runId, record, owner, tables.dialect));
  yield* saveInTables(tables, runId, undefined, record);
});

/** Where the parts of a run are in a file: none lies on a shelf. */
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
  const [template, values] = updating(runId, before, record, owner);
  const rows = yield* tables.ask(`${template} RETURNING seq`, values);
  if (rows.length !== 1) return yield* Effect.fail(new SqlFailure.RowChanged());
  yield* saveInTables(tables, runId, before.record, record);
});

/** The columns that indexes name. */
const columns = (record: RunRecord, owner: string | undefined): ReadonlyArray<string | number | null> => [
  record.state === "ended" ? null : (owner ?? null),
  record.parked ?? null,
  record.end?.at ?? null,
  record.incidents.length,
];

/** Takes a run off its shelf, which is to go: its record stands in its row from then on. */
export const unshelve = Effect.fnUntraced(function* (tables: SqlTables, runId: string, stored: Stored) {
  const { runs, sql } = tables;
  const rows = yield* sql`UPDATE ${runs}
    SET shelf = 0, record = ${encode(stored.record)}, changed = NULL, version = ${stored.version + 1}
    WHERE run_id = ${runId} AND version = ${stored.version} RETURNING seq`;
  if (rows.length !== 1) return yield* Effect.fail(new SqlFailure.RowChanged());
  yield* SqlParts.forget(tables, [stored]);
  yield* saveInTables(tables, runId, undefined, stored.record);
});

/** Whether a process has to drive the run: it has not ended and was not parked. */
export const isDriven = (record: RunRecord): boolean => record.state !== "ended" && record.parked === undefined;

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

/** Records are plain data already: what the schema would encode to is what they are. */
const encode = (record: RunRecord): string =>
  JSON.stringify(
    // Nearly every record has none of them, and needs no copy.
    record.incidents.length === 0 && record.questions.length === 0
      ? record
      : { ...record, incidents: [], questions: [] },
  );

const saveInTables = Effect.fnUntraced(function* (
  tables: SqlTables,
  runId: string,
  before: RunRecord | undefined,
  after: RunRecord,
) {
  const { questions, sql } = tables;
  if (before?.incidents !== after.incidents) {
    yield* saveIncidents(tables, runId, before?.incidents ?? [], after.incidents);
  }
  if (before?.questions === after.questions) return;
  if (before !== undefined && before.questions.length > 0) {
    yield* sql`DELETE FROM ${questions} WHERE run_id = ${runId}`;
  }
  for (const [n, question] of after.questions.entries()) {
    yield* sql`INSERT INTO ${questions} (run_id, n, question) VALUES (${runId}, ${n}, ${JSON.stringify(question)})`;
  }
});

/** An incident is long and rarely changes: only those that did are written. */
const saveIncidents = Effect.fnUntraced(function* (
  { incidents, sql }: SqlTables,
  runId: string,
  before: RunRecord["incidents"],
  after: RunRecord["incidents"],
) {
  const [known, kept] = [new Map(before.map((it) => [it.id, it])), new Set(after.map(({ id }) => id))];
  for (const { id } of before) {
    if (!kept.has(id)) yield* sql`DELETE FROM ${incidents} WHERE run_id = ${runId} AND id = ${id}`;
  }
  for (const incident of after) {
    const old = known.get(incident.id);
    if (old === incident) continue;
    const json = JSON.stringify(incident);
    if (old === undefined) {
      yield* sql`INSERT INTO ${incidents} (run_id, id, n, incident) VALUES (${runId}, ${incident.id},
          (SELECT COALESCE(MAX(n), 0) + 1 FROM ${incidents} WHERE run_id = ${runId}), ${json})`;
      continue;
    }
    const rows = yield* sql`UPDATE ${incidents} SET incident = ${json}
      WHERE run_id = ${runId} AND id = ${incident.id} RETURNING id`;
    if (rows.length !== 1) return yield* Effect.fail(new SqlFailure.RowChanged());
  }
});
