/** Builds the row of a run: the values of its columns, and the statements for a file. Each statement writes one row. */
import type { RunRecord } from "../../RunRecord.ts";

/** A run to be written. */
export interface RowOfRun {
  readonly runId: string;
  readonly record: RunRecord;
  /** Lease of the process that owns the run. */
  readonly owner: string | undefined;
}

/** The row as this process last read or wrote it. */
export interface RowBefore extends Pick<RowOfRun, "owner" | "record"> {
  readonly version: number;
}

const inserted =
  "INSERT INTO {runs} (run_id, version, owner, state, parked, provider, model, started_at, ended_at, broken, record)";
const isOfVersion = "WHERE run_id = ? AND version = ?";
const updated = "UPDATE {runs} SET version = ?, state = ?, record = ?";

/**
 * Templates for `SqlTables.ask`. Each is a constant string, because a lookup of a newly concatenated string would have to read all of it.
 */
export const templates = {
  insert: `${inserted} VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  update: `${updated} ${isOfVersion}`,
  updateAll: `${updated}, owner = ?, parked = ?, ended_at = ?, broken = ? ${isOfVersion}`,
} as const;

type Template = keyof typeof templates;

/** Adds a condition to the statements, which write nothing if it does not hold. */
export const templatesWhere = (condition: string): Readonly<Record<Template, string>> => ({
  insert: `${inserted} SELECT ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${condition}`,
  update: `${templates.update} AND ${condition}`,
  updateAll: `${templates.updateAll} AND ${condition}`,
});

/** A template's name and its values. */
export type Values = readonly [Template, ReadonlyArray<string | number | null>];

/**
 * Returns the statement that inserts a run's row.
 *
 * @param kept converts a string to a form that a column can store
 */
export const insertValues = ({ owner, record, runId }: RowOfRun, kept: (text: string) => string): Values => {
  const { id, model } = record.provider;
  const ended = record.end?.at ?? null;
  const driver = isDriven(record) ? (owner ?? null) : null;
  const [parked, broken] = [record.parked ?? null, record.incidents.length];
  return [
    "insert",
    [
      runId,
      driver,
      record.state,
      parked,
      kept(id),
      kept(model ?? ""),
      record.started_at,
      ended,
      broken,
      encode(record),
    ],
  ];
};

/** Returns the statement that updates a run's row if the row still has the version that was read. */
export const updateValues = (before: RowBefore, { owner, record, runId }: RowOfRun): Values => {
  const [kept, next] = [columns(before.record, before.owner), columns(record, owner)];
  const written = [before.version + 1, record.state, encode(record)];
  // Setting an indexed column costs an index write, even if the value does not change.
  return next.every((value, index) => value === kept[index])
    ? ["update", [...written, runId, before.version]]
    : ["updateAll", [...written, ...next, runId, before.version]];
};

/** Returns the indexed columns. */
export const columns = (record: RunRecord, owner: string | undefined): ReadonlyArray<string | number | null> => [
  record.state === "ended" ? null : (owner ?? null),
  record.parked ?? null,
  record.end?.at ?? null,
  record.incidents.length,
];

/** True if the run needs a process to continue it: it has not ended and is not parked. */
export const isDriven = (record: RunRecord): boolean => record.state !== "ended" && record.parked === undefined;

/** Encodes a record as JSON. Records are plain data, so encoding them with the schema would change nothing. */
const encode = (record: RunRecord): string =>
  JSON.stringify(
    // Nearly every record has no incidents and no questions, so it needs no copy.
    record.incidents.length === 0 && record.questions.length === 0
      ? record
      : { ...record, incidents: [], questions: [] },
  );
