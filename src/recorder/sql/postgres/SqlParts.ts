/**
 * Keeps the long parts of runs in a table beside their rows: the record as it was first written, incidents, and questions.
 *
 * The row of a run holds what has changed of its record since, so that an end writes little. `shelf` is the first column of the key of its
 * parts. It is 1, or the number of a partition where version 5 or 6 made the tables. Shelf 0 says that a run has no parts there: its record
 * stands in its row, and its incidents and questions in tables of their own, as in a file.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { Fragment } from "effect/sql/Statement";
import type { RunRecord } from "../../RunRecord.ts";
import * as RecordChange from "./RecordChange.ts";
import { type Lists, listsOf } from "./SqlLists.ts";

/** The tables that this needs; `SqlTables` says what they are. */
export interface Tables {
  readonly sql: SqlClient;
  readonly parts: Fragment;
  readonly ask: <Row extends object>(template: string, values: Lists) => Effect.Effect<ReadonlyArray<Row>, SqlError>;
}

/** Where the parts of a run are. */
export interface Place {
  readonly seq: number;
  readonly shelf: number;
}

/** A record as it was first written, from which later versions are told apart. */
export interface Base {
  readonly record: RunRecord;
  /** Its length as JSON, in characters. */
  readonly length: number;
}

/** The place of a run's parts after a write, and its record as it was first written there. */
export interface Kept {
  readonly place: Place;
  readonly base?: Base;
}

/** The share of a record that its row holds, and the share that goes into its parts. */
export interface Written {
  /** The record; empty if it is among the parts. */
  readonly record: string;
  /** Changes since it was put there; empty if there are none. */
  readonly changed: string;
  /** The record to be put there; undefined if the one there stays. */
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

/** A record as it was read from its parts. Fails if it is not there. */
export const baseOf = (body: string | undefined): Base => {
  if (body === undefined) throw new Error("the record is not among its parts");
  // Later versions are told apart from it as JSON; nothing else is read of it.
  return { record: JSON.parse(body) as RunRecord, length: body.length };
};

/** The record with what has changed since it was first written, as JSON has it. */
export const recordOf = ({ record }: Base, changed: string | null | undefined): unknown =>
  changed === null || changed === undefined ? record : RecordChange.applied(record, JSON.parse(changed));

/** A part that has changed, or that is gone. */
export interface Part extends Place {
  readonly kind: typeof ofRecord | typeof ofIncident | typeof ofQuestion;
  readonly id: string;
  readonly n: number;
  /** Undefined where it has given way. */
  readonly body: string | undefined;
}

/** A record that is written in place of the one among the parts. */
export const recordPart = ({ seq, shelf }: Place, body: string): Part => ({
  seq,
  shelf,
  kind: ofRecord,
  id: "",
  n: 0,
  body,
});

/** What has changed of the incidents and questions of a run: an incident is long and rarely changes. */
export const changesOf = (
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

/** The oldest are left out at some time: those behind them keep their numbers. */
const incidentsOf = ({ incidents, incidents_omitted: omitted }: RunRecord): ReadonlyArray<Named> =>
  incidents.map((part, index) => ({ id: part.id, n: omitted + index, part }));

/** They stand in the order in which they were asked, which their revisions need not be. */
const questionsOf = ({ questions }: RunRecord): ReadonlyArray<Named> =>
  questions.map((part, n) => ({ id: String(n), n, part }));

/** A part by its name among those of its kind. */
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

/** Puts the parts of all runs together; `putValues` are its values. */
export const putTogether = `INSERT INTO {parts} (shelf, seq, kind, id, n, body)
  SELECT v.shelf::integer, v.seq::bigint, v.kind, v.id, v.n::bigint, v.body
  FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[]) AS v (shelf, seq, kind, id, n, body)
  ON CONFLICT (shelf, seq, kind, id) DO UPDATE SET body = excluded.body`;

/** The values of `putTogether`. */
export const putValues = (parts: ReadonlyArray<Part>): Lists =>
  listsOf(parts, 6, ({ body, id, kind, n, seq, shelf }) => [shelf, seq, kind, id, n, body ?? null]);

/**
 * Gives a row for each of some records that is there; `foundValues` are its values. Each is looked for by itself: a join may
 * read the whole table, and transactions that write to it would be undone for that.
 */
export const foundTogether = `SELECT f.seq FROM unnest(?::text[], ?::text[]) AS v (shelf, seq), LATERAL (
    SELECT p.seq FROM {parts} AS p
    WHERE p.shelf = v.shelf::integer AND p.seq = v.seq::bigint AND p.kind = '${ofRecord}' AND p.id = '' LIMIT 1) AS f`;

/** The values of `foundTogether`. */
export const foundValues = (records: ReadonlyArray<Place>): Lists =>
  listsOf(records, 2, ({ seq, shelf }) => [shelf, seq]);

const removeTogether = `DELETE FROM {parts} AS p
  USING unnest(?::text[], ?::text[], ?::text[], ?::text[]) AS v (shelf, seq, kind, id)
  WHERE p.shelf = v.shelf::integer AND p.seq = v.seq::bigint AND p.kind = v.kind AND p.id = v.id`;

/** Deletes parts that have given way, those of all runs together. */
export const remove = ({ ask }: Pick<Tables, "ask">, gone: ReadonlyArray<Part>): Effect.Effect<void, SqlError> => {
  if (gone.length === 0) return Effect.void;
  const lists = listsOf(gone, 4, ({ id, kind, seq, shelf }) => [shelf, seq, kind, id]);
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
