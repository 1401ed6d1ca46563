/**
 * Keeps the long parts of runs in a separate table: incidents, questions, and the record as it was first written.
 *
 * The row of a run holds only the changes of its record since then, so that ending a run writes little. The key of a part starts with its
 * `shelf`: 1, or the number of a partition if version 5 or 6 created the tables. Shelf 0 means that a run has no parts: its record is in
 * its row, and its incidents and questions in their own tables, as in a file.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { RunRecord } from "../../RunRecord.ts";
import * as RecordChange from "./RecordChange.ts";
import { type Lists, transpose } from "./SqlLists.ts";

/** The tables that this module needs; see `SqlTables`. */
export interface Tables {
  readonly sql: SqlClient;
  readonly parts: Fragment;
  readonly ask: <Row extends object>(template: string, values: Lists) => Effect.Effect<ReadonlyArray<Row>, SqlError>;
}

/** Location of a run's parts: the first two columns of their key. */
export interface Place {
  readonly seq: number;
  readonly shelf: number;
}

/** A record as it was first written. Later versions are stored as changes to it. */
export interface Base {
  readonly record: RunRecord;
  /** Length of the record's JSON, in characters. */
  readonly length: number;
}

/** Place of a run's parts after a write, with the base stored there. */
export interface Kept {
  readonly place: Place;
  readonly base?: Base;
}

/** The encoded record, divided between its row and its parts. */
export interface Written {
  /** The record as JSON; empty if it is stored as a part. */
  readonly record: string;
  /** Changes since the base; empty if there are none. */
  readonly changed: string;
  /** The record as JSON if it becomes the new base; undefined if the existing base stays. */
  readonly body: string | undefined;
  readonly base: Base | undefined;
}

/** Kinds of parts: the record as it was first written, an incident, or a question. */
export const [ofRecord, ofIncident, ofQuestion] = ["r", "i", "q"] as const;

const none: ReadonlyArray<never> = [];

/** Removes incidents and questions, which are separate parts. Nearly every record has none and needs no copy. */
const withoutParts = (record: RunRecord): RunRecord =>
  record.incidents.length === 0 && record.questions.length === 0
    ? record
    : { ...record, incidents: none, questions: none };

/** True if only the run's row changed, so that no incident or question has to be written. */
export const isOneRow = (before: RunRecord | undefined, after: RunRecord): boolean =>
  isSame(before?.incidents, after.incidents) && isSame(before?.questions, after.questions);

const isSame = (before: ReadonlyArray<unknown> = [], after: ReadonlyArray<unknown>): boolean =>
  before === after || (before.length === 0 && after.length === 0);

/** Encodes a record for its row and its parts. */
export const encode = (record: RunRecord, shelf: number | undefined, base: Base | undefined): Written => {
  const own = withoutParts(record);
  if (shelf === 0) return { record: JSON.stringify(own), changed: "", body: undefined, base: undefined };
  if (base !== undefined) {
    // A record is plain JSON, but its type does not say so.
    const change = RecordChange.diff(base.record as unknown as RecordChange.Json, own as unknown as RecordChange.Json);
    const changed = change === undefined ? "" : JSON.stringify(change);
    // A change that is longer than the record saves nothing.
    if (changed.length <= base.length) return { record: "", changed, body: undefined, base };
  }
  const body = JSON.stringify(own);
  return { record: "", changed: "", body, base: { record: own, length: body.length } };
};

/** The parts of a run as read. */
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
  // The shelf is the first column of the key.
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

/** Parses a base from its part. Throws if it is missing. */
export const parseBase = (body: string | undefined): Base => {
  if (body === undefined) throw new Error("the stored parts of the run do not include its record");
  // This base is only compared as JSON, so it is not decoded.
  return { record: JSON.parse(body) as RunRecord, length: body.length };
};

/** Returns the base with its changes applied, as JSON. */
export const applyChanges = ({ record }: Base, changed: string | null | undefined): unknown =>
  changed === null || changed === undefined ? record : RecordChange.apply(record, JSON.parse(changed));

/** A changed or deleted part. */
export interface Part extends Place {
  readonly kind: typeof ofRecord | typeof ofIncident | typeof ofQuestion;
  readonly id: string;
  readonly n: number;
  /** Undefined if the part is deleted. */
  readonly body: string | undefined;
}

/** Builds the part that replaces a run's base. */
export const recordPart = ({ seq, shelf }: Place, body: string): Part => ({
  seq,
  shelf,
  kind: ofRecord,
  id: "",
  n: 0,
  body,
});

/** Returns the changed incidents and questions of a run. An incident is long and rarely changes. */
export const diffParts = (
  { seq, shelf }: Place,
  before: RunRecord | undefined,
  after: RunRecord,
): ReadonlyArray<Part> => {
  const of = (kind: Part["kind"], named: (record: RunRecord) => ReadonlyArray<Named>): ReadonlyArray<Part> => {
    const { gone, put } = differences(before === undefined ? none : named(before), named(after));
    return [
      ...gone.map(({ id, n }) => ({ seq, shelf, kind, id, n, body: undefined })),
      ...put.map(({ id, n, part }) => ({ seq, shelf, kind, id, n, body: JSON.stringify(part) })),
    ];
  };
  return [
    ...(before?.incidents === after.incidents ? none : of(ofIncident, incidentsOf)),
    ...(before?.questions === after.questions ? none : of(ofQuestion, questionsOf)),
  ];
};

/** Numbers incidents including those that were omitted, so that evicting the oldest does not renumber the others. */
const incidentsOf = ({ incidents, incidents_omitted: omitted }: RunRecord): ReadonlyArray<Named> =>
  incidents.map((part, index) => ({ id: part.id, n: omitted + index, part }));

/** Numbers questions in the order in which they were asked, because revisions may be in another order. */
const questionsOf = ({ questions }: RunRecord): ReadonlyArray<Named> =>
  questions.map((part, n) => ({ id: String(n), n, part }));

/** A part and its id among those of its kind. */
interface Named {
  readonly id: string;
  readonly n: number;
  readonly part: object;
}

const differences = (before: ReadonlyArray<Named>, after: ReadonlyArray<Named>) => {
  const [known, next] = [new Map(before.map((it) => [it.id, it.part])), new Map(after.map((it) => [it.id, it]))];
  return {
    gone: before.filter(({ id }) => !next.has(id)),
    put: [...next.values()].filter(({ id, part }) => known.get(id) !== part),
  };
};

/** Upserts the parts of all runs in one statement. Its values come from `putValues`. */
export const putTogether = `INSERT INTO {parts} (shelf, seq, kind, id, n, body)
  SELECT v.shelf::integer, v.seq::bigint, v.kind, v.id, v.n::bigint, v.body
  FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[]) AS v (shelf, seq, kind, id, n, body)
  ON CONFLICT (shelf, seq, kind, id) DO UPDATE SET body = excluded.body`;

/** Returns the values of `putTogether`. */
export const putValues = (parts: ReadonlyArray<Part>): Lists =>
  transpose(parts, 6, ({ body, id, kind, n, seq, shelf }) => [shelf, seq, kind, id, n, body ?? null]);

/**
 * Returns a row for each record that exists. Its values come from `foundValues`. Each record is looked up separately. A join might scan the
 * whole table, and concurrent writers would then be rolled back.
 */
export const foundTogether = `SELECT f.seq FROM unnest(?::text[], ?::text[]) AS v (shelf, seq), LATERAL (
    SELECT p.seq FROM {parts} AS p
    WHERE p.shelf = v.shelf::integer AND p.seq = v.seq::bigint AND p.kind = '${ofRecord}' AND p.id = '' LIMIT 1) AS f`;

/** Returns the values of `foundTogether`. */
export const foundValues = (records: ReadonlyArray<Place>): Lists =>
  transpose(records, 2, ({ seq, shelf }) => [shelf, seq]);

const removeTogether = `DELETE FROM {parts} AS p
  USING unnest(?::text[], ?::text[], ?::text[], ?::text[]) AS v (shelf, seq, kind, id)
  WHERE p.shelf = v.shelf::integer AND p.seq = v.seq::bigint AND p.kind = v.kind AND p.id = v.id`;

/** Deletes parts of any number of runs in one statement. */
export const remove = ({ ask }: Pick<Tables, "ask">, gone: ReadonlyArray<Part>): Effect.Effect<void, SqlError> => {
  if (gone.length === 0) return Effect.void;
  const lists = transpose(gone, 4, ({ id, kind, seq, shelf }) => [shelf, seq, kind, id]);
  return Effect.asVoid(ask(removeTogether, lists));
};

/** Deletes all parts of these runs. */
export const forget = Effect.fnUntraced(function* ({ parts, sql }: Tables, places: ReadonlyArray<Place>) {
  for (const [shelf, runs] of Map.groupBy(places, (it) => it.shelf)) {
    if (shelf === 0) continue;
    yield* sql`DELETE FROM ${parts} WHERE shelf = ${shelf} AND ${sql.in(
      "seq",
      runs.map(({ seq }) => seq),
    )}`;
  }
});
