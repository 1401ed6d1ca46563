/**
 * Copies whole runs to and from another store.
 */
import * as Effect from "effect/Effect";
import type { RecorderError } from "../RecorderError.ts";
import type { RunRecord } from "../RunRecord.ts";
import { isSameRecord, type KeptRun, type RunTransfer, type Taken } from "../transfer/RunTransfer.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlStore from "./SqlStore.ts";
import type { SqlTables } from "./SqlTables.ts";

/** Creates the transfer of a database. */
export const make = (database: SqlDatabase): RunTransfer => ({
  key: database.read(keyOf(database.tables)),
  readPage: (from, limit) => database.read(page(database.tables, from, limit)),
  insertRuns: (key, records, dryRun = false) => {
    if (dryRun) return Effect.map(database.read(classifyRuns(database.tables, key, records)), ({ taken }) => taken);
    return Effect.flatMap(database.write(put(database.tables, key, records)), ({ isNewKey, taken }) =>
      Effect.as(isNewKey ? database.ready : Effect.void, taken),
    );
  },
});

interface DrivenRow extends SqlStore.Row {
  readonly driven: number;
}

/**
 * Reads a page of runs. An unfenced lease counts as held, because a snapshot does not show whether it has expired; `orphans` fences expired leases.
 */
const page = Effect.fnUntraced(function* (tables: SqlTables, from: number | undefined, limit: number) {
  const { dialect, leases, runs: ofRuns, sql } = tables;
  const rows = yield* sql<DrivenRow>`SELECT ${dialect.row},
      CASE WHEN EXISTS (SELECT 1 FROM ${leases} l WHERE l.id = r.owner AND l.fenced = 0) THEN 1 ELSE 0 END AS driven
    FROM ${ofRuns} r WHERE r.seq > ${from ?? -1} ORDER BY r.seq LIMIT ${limit}`;
  const runs: Array<KeptRun> = [];
  const damaged: Array<string> = [];
  for (const [index, found] of (yield* SqlStore.decodeRows(tables, rows)).entries()) {
    const row = rows[index];
    if (found._tag === "Failure") damaged.push(found.failure.run_id);
    else runs.push({ record: found.success.record, isDriven: Number(row?.driven) === 1 });
  }
  const last = rows.length < limit ? undefined : rows.at(-1);
  return { runs, damaged, next: last === undefined ? undefined : Number(last.seq) };
});

const put = Effect.fnUntraced(function* (tables: SqlTables, key: string, records: ReadonlyArray<RunRecord>) {
  const { meta, sql } = tables;
  const { isNewKey, taken } = yield* classifyRuns(tables, key, records);
  const added = records.filter((_, index) => taken[index] === "added");
  if (isNewKey && added.length > 0) yield* sql`UPDATE ${meta} SET value = ${key} WHERE name = 'digest_key'`;
  yield* SqlStore.save(
    tables,
    added.map((record) => ({ runId: record.run_id, before: undefined, record, owner: undefined })),
  );
  return { isNewKey, taken };
});

/** Determines the result for each run by comparing it with the recorded one. */
const classifyRuns = Effect.fnUntraced(function* (tables: SqlTables, key: string, records: ReadonlyArray<RunRecord>) {
  const { dialect, runs, sql } = tables;
  const ids = [...new Set(records.map(({ run_id }) => run_id))].filter(dialect.canStore);
  const rows =
    ids.length === 0 ? [] : yield* sql<SqlStore.Row>`SELECT ${dialect.row} FROM ${runs} WHERE run_id IN ${sql.in(ids)}`;
  const known = new Map<string, RunRecord | RecorderError>();
  for (const [index, found] of (yield* SqlStore.decodeRows(tables, rows)).entries()) {
    known.set(rows[index]?.run_id ?? "", found._tag === "Failure" ? found.failure : found.success.record);
  }
  const isOtherKey = (yield* keyOf(tables)) !== key;
  const isNewKey = isOtherKey && (yield* sql`SELECT 1 AS one FROM ${runs} ORDER BY seq LIMIT 1`).length === 0;
  const taken = records.map((record): Taken => {
    const { run_id } = record;
    if (!dialect.canStore(run_id)) return "unkept";
    const there = known.get(run_id);
    if (there !== undefined) return "message" in there || !isSameRecord(there, record) ? "differs" : "same";
    if (isOtherKey && !isNewKey && record.state !== "ended" && record.transcript !== undefined) return "foreign_key";
    known.set(run_id, record);
    return "added";
  });
  return { isNewKey, taken };
});

const keyOf = ({ meta, sql }: SqlTables) =>
  Effect.map(
    sql<{ readonly value: string }>`SELECT value FROM ${meta} WHERE name = 'digest_key'`,
    ([row]) => row?.value ?? "",
  );
