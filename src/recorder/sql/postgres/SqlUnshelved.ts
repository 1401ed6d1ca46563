/**
 * Keeps incidents and questions in two tables, for runs whose records are in their rows. All runs of a transaction share the statements.
 */
import * as Effect from "effect/Effect";
import type { RunRecord } from "../../RunRecord.ts";
import { transpose } from "./SqlLists.ts";
import type { Tables } from "./SqlParts.ts";

/** A run before and after a transaction. */
export interface Unshelved {
  readonly runId: string;
  readonly before: RunRecord | undefined;
  readonly after: RunRecord;
}

/** Writes the changed incidents and questions. Returns false if a row to change was missing. */
export const save = Effect.fnUntraced(function* (tables: Pick<Tables, "ask">, runs: ReadonlyArray<Unshelved>) {
  const isThere = yield* saveIncidents(
    tables,
    runs.filter(({ after, before }) => before?.incidents !== after.incidents),
  );
  yield* saveQuestions(
    tables,
    runs.filter(({ after, before }) => before?.questions !== after.questions),
  );
  return isThere;
});

/** Writes only changed incidents, because an incident is long and rarely changes. */
const saveIncidents = Effect.fnUntraced(function* ({ ask }: Pick<Tables, "ask">, runs: ReadonlyArray<Unshelved>) {
  const all = runs.map(incidentsOf);
  const [gone, changed, added] = [
    all.flatMap((it) => it.gone),
    all.flatMap((it) => it.changed),
    all.flatMap((it) => it.added),
  ];
  if (gone.length > 0) yield* ask(removeIncidents, transpose(gone, 2, identity));
  if (added.length > 0) yield* ask(addIncidents, transpose(added, 4, identity));
  if (changed.length === 0) return true;
  return (yield* ask(changeIncidents, transpose(changed, 3, identity))).length === changed.length;
});

const incidentsOf = ({ after, before, runId }: Unshelved) => {
  const [known, next] = [
    new Map(before?.incidents.map((it) => [it.id, it])),
    new Set(after.incidents.map(({ id }) => id)),
  ];
  const put = after.incidents.filter((it) => known.get(it.id) !== it);
  return {
    gone: [...known.keys()].filter((id) => !next.has(id)).map((id) => [runId, id]),
    changed: put.filter(({ id }) => known.has(id)).map((it) => [runId, it.id, JSON.stringify(it)]),
    added: put.filter(({ id }) => !known.has(id)).map((it, index) => [runId, it.id, index + 1, JSON.stringify(it)]),
  };
};

const identity = <A>(row: A): A => row;

const removeIncidents = `DELETE FROM {incidents} AS i USING unnest(?::text[], ?::text[]) AS v (run_id, id)
  WHERE i.run_id = v.run_id AND i.id = v.id`;

const changeIncidents = `UPDATE {incidents} AS i SET incident = v.incident
  FROM unnest(?::text[], ?::text[], ?::text[]) AS v (run_id, id, incident)
  WHERE i.run_id = v.run_id AND i.id = v.id RETURNING i.id`;

const addIncidents = `INSERT INTO {incidents} (run_id, id, n, incident)
  SELECT v.run_id, v.id, (SELECT COALESCE(MAX(n), 0) FROM {incidents} AS i WHERE i.run_id = v.run_id) + v.n::integer, v.incident
  FROM unnest(?::text[], ?::text[], ?::text[], ?::text[]) AS v (run_id, id, n, incident)`;

const saveQuestions = Effect.fnUntraced(function* ({ ask }: Pick<Tables, "ask">, runs: ReadonlyArray<Unshelved>) {
  const known = runs.filter(({ before }) => before !== undefined && before.questions.length > 0);
  if (known.length > 0) yield* ask(removeQuestions, [known.map(({ runId }) => runId)]);
  const all = runs.flatMap(({ after, runId }) => after.questions.map((it, n) => [runId, n, JSON.stringify(it)]));
  if (all.length > 0) yield* ask(addQuestions, transpose(all, 3, identity));
});

const removeQuestions = "DELETE FROM {questions} WHERE run_id = ANY (?::text[])";

const addQuestions = `INSERT INTO {questions} (run_id, n, question)
  SELECT v.run_id, v.n::integer, v.question FROM unnest(?::text[], ?::text[], ?::text[]) AS v (run_id, n, question)`;
