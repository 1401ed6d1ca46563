/**
 * Keeps incidents and questions of the runs of a file, in two tables. Statements on a file need no round trip, so each row gets its own
 * statement.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { Fragment } from "effect/sql/Statement";
import type { RunRecord } from "../../RunRecord.ts";

/** The tables that this module needs; see `SqlTables`. */
export interface Tables {
  readonly sql: SqlClient;
  readonly incidents: Fragment;
  readonly questions: Fragment;
}

/** Writes the changed incidents and questions. Returns false if a row to change was missing. */
export const save = Effect.fnUntraced(function* (
  tables: Tables,
  runId: string,
  before: RunRecord | undefined,
  after: RunRecord,
) {
  const { questions, sql } = tables;
  const isThere =
    before?.incidents === after.incidents ||
    (yield* saveIncidents(tables, runId, before?.incidents ?? [], after.incidents));
  if (before?.questions === after.questions) return isThere;
  if (before !== undefined && before.questions.length > 0) {
    yield* sql`DELETE FROM ${questions} WHERE run_id = ${runId}`;
  }
  for (const [n, question] of after.questions.entries()) {
    yield* sql`INSERT INTO ${questions} (run_id, n, question) VALUES (${runId}, ${n}, ${JSON.stringify(question)})`;
  }
  return isThere;
});

/** Writes only changed incidents, because an incident is long and rarely changes. */
const saveIncidents = Effect.fnUntraced(function* (
  { incidents, sql }: Tables,
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
    if (rows.length !== 1) return false;
  }
  return true;
});
