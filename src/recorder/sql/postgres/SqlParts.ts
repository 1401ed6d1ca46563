/**
 * Keeps the heavy parts of runs on shelves: partitions of one table, which are forgotten whole.
 *
 * The row of a run says on which shelf its parts are: its record as it was first written, its incidents, its questions. What
 * has changed of the record since stands in the run's row, so that an end writes little. Shelf 0 is no partition: the record of
 * such a run stands in its row, and its incidents and questions in their own tables, as before there were shelves.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { RunRecord } from "../../RunRecord.ts";
import * as RecordChange from "./RecordChange.ts";

/** The tables that this needs; `SqlTables` says what they are. */
export interface Tables {
  readonly sql: SqlClient;
  readonly parts: Fragment;
  readonly ask: (template: string, values: ReadonlyArray<ReadonlyArray<string>>) => Effect.Effect<unknown, SqlError>;
}

/** Where the parts of a run are. */
export interface Place {
  readonly seq: number;
  readonly shelf: number;
}

/** A record as it lies on its shelf, which later versions are told apart from. */
export interface Base {
  readonly record: RunRecord;
  /** Its length as JSON, in characters. */
  readonly length: number;
}

/** Where the parts of a run are behind a write, and its record as it lies on its shelf. */
export interface Kept {
  readonly place: Place;
  readonly base?: Base;
}

/** What stands in a run's row of its record, and what has to be put on its shelf for that. */
export interface Written {
  /** The record; empty where it lies on a shelf. */
  readonly record: string;
  /** What has changed since it was put there; empty where nothing has. */
  readonly changed: string;
  /** The record to be put on the shelf; undefined where the one there stays. */
  readonly body: string | undefined;
  readonly base: Base | undefined;
}

/** Kinds of parts. */
export const [ofRecord, ofIncident, ofQuestion] = ["r", "i", "q"] as const;

const none: ReadonlyArray<never> = [];

/** Incidents and questions are parts of their own. Nearly every record has none of them, and needs no copy. */
const alone = (record: RunRecord): RunRecord =>
  record.incidents.length === 0 && record.questions.length === 0
    ? record
    : { ...record, incidents: none, questions: none };

/** Whether what changed of a record is its row: incidents and questions have their own. */
export const isOneRow = (before: RunRecord | undefined, after: RunRecord): boolean =>
  isSame(before?.incidents, after.incidents) && isSame(before?.questions, after.questions);

const isSame = (before: ReadonlyArray<unknown> = [], after: ReadonlyArray<unknown>): boolean =>
  before === after || (before.length === 0 && after.length === 0);

/** What is written of a record. */
export const written = (record: RunRecord, shelf: number | undefined, base: Base | undefined): Written => {
  const own = alone(record);
  if (shelf === 0) return { record: JSON.stringify(own), changed: "", body: undefined, base: undefined };
  if (base !== undefined) {
    // A record is plain JSON, which its type does not say.
    const change = RecordChange.between(
      base.record as unknown as RecordChange.Json,
      own as unknown as RecordChange.Json,
    );
    const changed = change === undefined ? "" : JSON.stringify(change);
    // One that is longer than the record is no gain.
    if (changed.length <= base.length) return { record: "", changed, body: undefined, base };
  }
  const body = JSON.stringify(own);
  return { record: "", changed: "", body, base: { record: own, length: body.length } };
};

/** The parts of a run as they are read. */
export interface Parts {
  record: string | undefined;
  readonly incidents: Array<string>;
  readonly questions: Array<string>;
}

interface PartRow {
  readonly seq: string;
  readonly kind: string;
  readonly body: string;
}

/** Reads the parts of runs, by `seq`. */
export const load = Effect.fnUntraced(function* ({ parts, sql }: Tables, places: ReadonlyArray<Place>) {
  const found = new Map<number, Parts>(
    places.map(({ seq }) => [seq, { record: undefined, incidents: [], questions: [] }]),
  );
  const shelved = places.filter(({ shelf }) => shelf > 0);
  if (shelved.length === 0) return found;
  // The shelves stand in the statement, so that no other one is looked into.
  const shelves = [...new Set(shelved.map(({ shelf }) => shelf))];
  const rows = yield* sql<PartRow>`SELECT seq, kind, body FROM ${parts}
    WHERE ${sql.in("shelf", shelves)} AND ${sql.in(
      "seq",
      shelved.map(({ seq }) => seq),
    )} ORDER BY n`;
  for (const { body, kind, seq } of rows) {
    const of = found.get(Number(seq));
    if (kind === ofRecord && of !== undefined) of.record = body;
    else (kind === ofIncident ? of?.incidents : of?.questions)?.push(body);
  }
  return found;
});

/** A record as it was read from its shelf. Fails where it does not lie there. */
export const baseOf = (body: string | undefined): Base => {
  if (body === undefined) throw new Error("the record does not lie on its shelf");
  // Later versions are told apart from it as JSON; nothing else is read of it.
  return { record: JSON.parse(body) as RunRecord, length: body.length };
};

/** The record behind what has changed since it was put on its shelf, as JSON has it. */
export const recordOf = ({ record }: Base, changed: string | null | undefined): unknown =>
  changed === null || changed === undefined ? record : RecordChange.applied(record, JSON.parse(changed));

/** Puts a record on its shelf in place of the one there; gives whether there was one. */
export const replace = (
  { parts, sql }: Tables,
  { seq, shelf }: Place,
  body: string,
): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql`UPDATE ${parts} SET body = ${body} WHERE shelf = ${shelf} AND seq = ${seq} AND kind = ${ofRecord} RETURNING seq`,
    ({ length }) => length === 1,
  );

/** A run whose parts lie on a shelf, before a write and behind it. */
export interface Shelved {
  readonly place: Place;
  readonly before: RunRecord | undefined;
  readonly after: RunRecord;
}

/**
 * Puts on their shelves what has changed of the incidents and questions of runs: an incident is long and rarely changes. What is put
 * there is one statement for all of them.
 */
export const save = Effect.fnUntraced(function* (tables: Tables, all: ReadonlyArray<Shelved>) {
  const put: Array<ReadonlyArray<string | number>> = [];
  for (const { after, before, place } of all) {
    if (before?.incidents !== after.incidents) {
      // The oldest are left out at some time: those behind them keep their numbers.
      const named = ({ incidents, incidents_omitted: omitted }: RunRecord) =>
        incidents.map((part, index) => ({ id: part.id, n: omitted + index, part }));
      put.push(
        ...(yield* changedOf(tables, place, ofIncident, before === undefined ? [] : named(before), named(after))),
      );
    }
    if (before?.questions !== after.questions) {
      // They stand in the order in which they were asked, which their revisions need not be.
      const named = ({ questions }: RunRecord) => questions.map((part, n) => ({ id: String(n), n, part }));
      put.push(
        ...(yield* changedOf(tables, place, ofQuestion, before === undefined ? [] : named(before), named(after))),
      );
    }
  }
  if (put.length > 0) yield* tables.ask(putTogether, listsOf(put));
});

const putTogether = `INSERT INTO {parts} (shelf, seq, kind, id, n, body)
  SELECT v.shelf::integer, v.seq::bigint, v.kind, v.id, v.n::bigint, v.body
    FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[]) AS v (shelf, seq, kind, id, n, body)
  ON CONFLICT (shelf, seq, kind, id) DO UPDATE SET body = excluded.body`;

/** Each column of rows as one list, and as text: a list has one type, and an empty text stands for no value. */
export const listsOf = (rows: ReadonlyArray<ReadonlyArray<string | number | null>>): ReadonlyArray<Array<string>> =>
  (rows[0] ?? []).map((_, column) => rows.map((row) => String(row[column] ?? "")));

interface Named {
  readonly id: string;
  readonly n: number;
  readonly part: object;
}

/** Takes parts that are gone from their shelf, and gives the rows of those that are to be put there. */
const changedOf = Effect.fnUntraced(function* (
  { parts, sql }: Tables,
  { seq, shelf }: Place,
  kind: typeof ofIncident | typeof ofQuestion,
  before: ReadonlyArray<Named>,
  after: ReadonlyArray<Named>,
) {
  const [known, kept] = [new Map(before.map((it) => [it.id, it.part])), new Set(after.map(({ id }) => id))];
  const gone = before.filter(({ id }) => !kept.has(id)).map(({ id }) => id);
  if (gone.length > 0) {
    yield* sql`DELETE FROM ${parts} WHERE shelf = ${shelf} AND seq = ${seq} AND kind = ${kind} AND ${sql.in("id", gone)}`;
  }
  return after
    .filter(({ id, part }) => known.get(id) !== part)
    .map(({ id, n, part }) => [shelf, seq, kind, id, n, JSON.stringify(part)]);
});

/** Takes everything of these runs from their shelves. */
export const forget = Effect.fnUntraced(function* ({ parts, sql }: Tables, places: ReadonlyArray<Place>) {
  for (const [shelf, runs] of Map.groupBy(places, (it) => it.shelf)) {
    if (shelf === 0) continue;
    yield* sql`DELETE FROM ${parts} WHERE shelf = ${shelf} AND ${sql.in(
      "seq",
      runs.map(({ seq }) => seq),
    )}`;
  }
});
