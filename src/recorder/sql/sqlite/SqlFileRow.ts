/**
 * Says how the row of a run is written: what its columns hold, and the statements of a file, each of which writes one row.
 */
import type { RunRecord } from "../../RunRecord.ts";

/** What is written of a run. */
export interface RowOfRun {
  readonly runId: string;
  readonly record: RunRecord;
  /** The lease of the process that drives it. */
  readonly owner: string | undefined;
}

/** What its row says before. */
export interface RowBefore extends Pick<RowOfRun, "owner" | "record"> {
  readonly version: number;
}

const inserted =
  "INSERT INTO {runs} (run_id, version, owner, state, parked, provider, model, started_at, ended_at, broken, record)";
const isOfVersion = "WHERE run_id = ? AND version = ?";
const updated = "UPDATE {runs} SET version = ?, state = ?, record = ?";

/**
 * Templates, as `SqlTables.ask` takes them. Each is a text that is made once: one that is put together anew is read through before its
 * statement is found.
 */
export const templates = {
  insert: `${inserted} VALUES (?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  update: `${updated} ${isOfVersion}`,
  updateAll: `${updated}, owner = ?, parked = ?, ended_at = ?, broken = ? ${isOfVersion}`,
} as const;

type Template = keyof typeof templates;

/** The same statements, which write nothing where a condition does not hold. */
export const templatesWhere = (condition: string): Readonly<Record<Template, string>> => ({
  insert: `${inserted} SELECT ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE ${condition}`,
  update: `${templates.update} AND ${condition}`,
  updateAll: `${templates.updateAll} AND ${condition}`,
});

/** A statement by its name, with its values. */
export type Values = readonly [Template, ReadonlyArray<string | number | null>];

/**
 * The statement that adds the row of a run.
 *
 * @param kept a text as a column keeps it
 */
export const inserting = ({ owner, record, runId }: RowOfRun, kept: (text: string) => string): Values => {
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

/** The statement that changes the row of a run, where it is of the version that was read. */
export const updating = (before: RowBefore, { owner, record, runId }: RowOfRun): Values => {
  const [kept, next] = [columns(before.record, before.owner), columns(record, owner)];
  const written = [before.version + 1, record.state, encode(record)];
  // A column that an index names costs a write of that index, also where its value stays.
  return next.every((value, index) => value === kept[index])
    ? ["update", [...written, runId, before.version]]
    : ["updateAll", [...written, ...next, runId, before.version]];
};

/** The columns that indexes name. */
export const columns = (record: RunRecord, owner: string | undefined): ReadonlyArray<string | number | null> => [
  record.state === "ended" ? null : (owner ?? null),
  record.parked ?? null,
  record.end?.at ?? null,
  record.incidents.length,
];

/** Whether a process has to drive the run: it has not ended and was not parked. */
export const isDriven = (record: RunRecord): boolean => record.state !== "ended" && record.parked === undefined;

/** Records are plain data already: what the schema would encode to is what they are. */
const encode = (record: RunRecord): string =>
  JSON.stringify(
    // Nearly every record has none of them, and needs no copy.
    record.incidents.length === 0 && record.questions.length === 0
      ? record
      : { ...record, incidents: [], questions: [] },
  );
