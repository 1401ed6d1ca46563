/**
 * Writes of runs that break in PostgreSQL. An outage of a provider breaks all of them at once, and their incidents, questions and
 * records are committed together.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { incidentsMax } from "../../../src/domain/Limits.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RowChanged } from "../../../src/recorder/sql/SqlFailure.ts";
import * as SqlStore from "../../../src/recorder/sql/SqlStore.ts";
import * as SqlTables from "../../../src/recorder/sql/SqlTables.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

const idsOf = (many: number): ReadonlyArray<string> => Array.from({ length: many }, (_, index) => `r${index}`);

type EntriesOf = (id: string) => ReadonlyArray<Entry>;

/** A process with visible statements, and another one that has written nothing and reads the result. */
const opened = Effect.gen(function* () {
  const address = yield* Databases.empty;
  const proxy = yield* StatementProxy.make(address);
  // With a long lease no heartbeat comes between the statements.
  const recorder = yield* Databases.open({ address: proxy.address, process: "writes", leaseMs: 3_600_000 });
  const other = yield* Databases.open({ address, process: "reads" });
  const admin = yield* Databases.client(address, "operator");
  // The first transaction of a process creates its lease.
  yield* recorder.write("first", [E.begun("first")]);
  return { address, admin, other, proxy, recorder };
});

/** One write of each run at the same time; returns the statements of their group between its lease and its commit. */
const together = (
  { proxy, recorder }: { readonly proxy: StatementProxy.StatementProxy; readonly recorder: Recorder },
  runs: number,
  entriesOf: EntriesOf,
) =>
  Effect.gen(function* () {
    const from = proxy.statements.length;
    yield* Effect.forEach(idsOf(runs), (id) => recorder.write(id, entriesOf(id)), {
      concurrency: "unbounded",
      discard: true,
    });
    // Statements of the listening connection concern no run.
    const all = proxy.statements.slice(from).filter((sql) => !/^LISTEN|^SELECT pg_notify|^SELECT 1$/.test(sql));
    const kinds = all.map(kindOf);
    // On a busy server PostgreSQL may roll a serializable transaction back, and the group is tried again.
    const [begin = "", lease = "", ...group] = kinds.slice(kinds.lastIndexOf("ROLLBACK") + 1);
    assert.deepStrictEqual([begin, lease, group.pop()], ["BEGIN", "SELECT", "COMMIT"], kinds.join(", "));
    return group;
  });

/** A statement's first word, and the first table that it changes. */
const kindOf = (sql: string): string => {
  const [, word = "", table] =
    /^(?:WITH \w+ AS \()?\s*(\w+)(?: (?:FROM |INTO )?\w*_(runs|parts|incidents|questions)\b)?/.exec(sql) ?? [];
  const and = /^WITH/.test(sql) && /INSERT INTO \w*_parts\b/.test(sql) ? " and parts" : "";
  return table === undefined ? `${word}${and}` : `${word} ${table}${and}`;
};

/** Checks that all runs are on record as the entries make them, for every process. */
const areOnRecord = Effect.fnUntraced(function* (
  { other, recorder }: { readonly recorder: Recorder; readonly other: Recorder },
  runs: number,
  entriesOf: EntriesOf,
) {
  for (const it of [recorder, other]) {
    const found = new Map((yield* it.runs({ limit: 100 })).map((run) => [run.run_id, run]));
    for (const id of idsOf(runs)) assert.deepStrictEqual(found.get(id), E.folded(entriesOf(id)));
  }
});

const began: EntriesOf = (id) => [E.begun(id), E.attempt(1)];
const broke: EntriesOf = (id) => [E.raised(1, { shown: "text" }), E.opened(id, 1), E.asked(id, 1)];
const wentOn: EntriesOf = (id) => [
  E.answered(1, "retry"),
  E.marked(id, 1, "acted_on", "retry"),
  E.attempt(2, "replay"),
];
const over: EntriesOf = () => [E.ended({ attempts: 2 })];

/** Enough incidents that the oldest are dropped, from number `n` on. */
const several =
  (n: number, many: number): EntriesOf =>
  (id) =>
    Array.from({ length: many }, (_, index) => E.opened(id, n + index));

/** From now on records are kept in their rows, as in stores made before version 5. */
const noShelves = (admin: SqlClient) => admin`DELETE FROM stream_recovery_shelves`;

describe("runs that break at once, over PostgreSQL", () => {
  it.live("write their incidents and questions with their rows, by one statement for all", () =>
    Effect.gen(function* () {
      const its = yield* opened;
      const life = [began, broke, wentOn, over];
      const groups: Array<ReadonlyArray<string>> = [];
      for (const entriesOf of life) groups.push(yield* together(its, 60, entriesOf));
      const broken = ["UPDATE runs and parts"];
      assert.deepStrictEqual(groups, [["SELECT and parts"], broken, broken, broken]);
      yield* areOnRecord(its, 60, (id) => life.flatMap((entriesOf) => entriesOf(id)));
    }).pipe(Effect.scoped),
  );

  it.live("write dropped ones, and those of runs that begin with them, in one further statement", () =>
    Effect.gen(function* () {
      const its = yield* opened;
      const first: EntriesOf = (id) => [...began(id), ...several(1, 3)(id)];
      assert.deepStrictEqual(yield* together(its, 20, first), ["SELECT and parts", "INSERT parts"]);
      const more = several(4, incidentsMax);
      const group = yield* together(its, 20, more);
      assert.deepStrictEqual(group, ["UPDATE runs and parts", "DELETE parts"]);
      yield* areOnRecord(its, 20, (id) => [...first(id), ...more(id)]);
    }).pipe(Effect.scoped),
  );

  it.live("write them in one statement per kind with records in their rows", () =>
    Effect.gen(function* () {
      const its = yield* opened;
      yield* noShelves(its.admin);
      const first: EntriesOf = (id) => [...began(id), ...broke(id)];
      const more: EntriesOf = (id) => [...wentOn(id), ...several(2, incidentsMax)(id), E.asked(id, 2)];
      const groups = [yield* together(its, 20, first), yield* together(its, 20, more), yield* together(its, 20, over)];
      const said = groups.map((them) => them.join(", ")).join("; ");
      const expected = [
        ["SELECT and parts", "INSERT incidents", "INSERT questions"],
        ["UPDATE runs", "DELETE incidents", "INSERT incidents", "DELETE questions", "INSERT questions"],
        ["UPDATE runs", "UPDATE incidents"],
      ];
      assert.deepStrictEqual(groups, expected, said);
      yield* areOnRecord(its, 20, (id) => [...first(id), ...more(id), ...over(id)]);
    }).pipe(Effect.scoped),
  );
});

/** A group of writes by a process that has read its runs. */
const group = Effect.fnUntraced(function* (
  tables: SqlTables.SqlTables,
  entriesOf: EntriesOf,
  runIds: ReadonlyArray<string>,
) {
  const changed: Array<SqlStore.Changed> = [];
  for (const runId of runIds) {
    const stored = yield* SqlStore.load(tables, runId);
    if (stored === undefined) throw new Error("it is there");
    // The first form of this record is unknown.
    const { base: _, ...before } = stored;
    changed.push({ runId, before, record: E.folded([...began(runId), ...entriesOf(runId)]), owner: before.owner });
  }
  return changed;
});

describe("a group of runs that break, over PostgreSQL", () => {
  const three = ["a", "b", "c"];

  it.live("changes nothing if one of its runs has another version", () =>
    Effect.gen(function* () {
      const { admin, address, recorder } = yield* opened;
      const tables = SqlTables.make(yield* Databases.client(address, "test"), SqlTables.prefixDefault);
      for (const id of three) yield* recorder.write(id, began(id));
      const stale = yield* group(tables, broke, three);
      yield* recorder.write("c", [E.noted(1)]);
      assert.instanceOf(yield* Effect.flip(tables.dialect.write(SqlStore.save(tables, stale))), RowChanged);
      for (const id of three) assert.strictEqual((yield* record(recorder, id)).incidents.length, 0);
      assert.deepStrictEqual(yield* admin`SELECT id FROM stream_recovery_parts WHERE kind <> 'r'`, []);
      yield* tables.dialect.write(SqlStore.save(tables, yield* group(tables, broke, three)));
      for (const id of three) assert.strictEqual((yield* record(recorder, id)).incidents.length, 1);
    }).pipe(Effect.scoped),
  );

  it.live("rewrites the records whose first form was unknown, all or none of them", () =>
    Effect.gen(function* () {
      const { admin, other, proxy, recorder } = yield* opened;
      const tables = SqlTables.make(yield* Databases.client(proxy.address, "test"), SqlTables.prefixDefault);
      for (const id of three) yield* recorder.write(id, began(id));
      const changed = yield* group(tables, broke, three);
      const from = proxy.statements.length;
      yield* tables.dialect.write(SqlStore.save(tables, changed));
      const writes = proxy.statements.slice(from).map(kindOf);
      assert.deepStrictEqual(
        writes.filter((kind) => !/^(?:BEGIN|SELECT|COMMIT)$/.test(kind)),
        ["UPDATE runs and parts"],
      );
      for (const id of three) {
        assert.deepStrictEqual(yield* record(other, id), E.folded([...began(id), ...broke(id)]));
      }
      const again = yield* group(tables, (id) => [...broke(id), ...wentOn(id)], three);
      yield* admin`DELETE FROM stream_recovery_parts
        WHERE kind = 'r' AND seq = (SELECT seq FROM stream_recovery_runs WHERE run_id = 'c')`;
      assert.instanceOf(yield* Effect.flip(tables.dialect.write(SqlStore.save(tables, again))), RowChanged);
      assert.strictEqual((yield* record(other, "a")).attempts.length, 1);
    }).pipe(Effect.scoped),
  );

  it.live("changes nothing if an incident that it changes is gone, with records in their rows", () =>
    Effect.gen(function* () {
      const { admin, address, recorder } = yield* opened;
      yield* noShelves(admin);
      const tables = SqlTables.make(yield* Databases.client(address, "test"), SqlTables.prefixDefault);
      for (const id of three) yield* recorder.write(id, [...began(id), ...broke(id)]);
      const changed = yield* group(tables, (id) => [...broke(id), ...wentOn(id)], three);
      yield* admin`DELETE FROM stream_recovery_incidents WHERE run_id = 'c'`;
      assert.instanceOf(yield* Effect.flip(tables.dialect.write(SqlStore.save(tables, changed))), RowChanged);
      assert.strictEqual((yield* record(recorder, "a")).attempts.length, 1);
    }).pipe(Effect.scoped),
  );
});

describe("a run that ends, over PostgreSQL", () => {
  it.live("leaves its parts unchanged: its end is written into its row alone", () =>
    Effect.gen(function* () {
      const { admin, other, recorder } = yield* opened;
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      const seq = admin`SELECT seq FROM stream_recovery_runs WHERE run_id = 'r'`;
      const part = admin`SELECT ctid::text AS at, xmin::text AS by, body FROM stream_recovery_parts WHERE seq = (${seq})`;
      const first = yield* part;
      yield* recorder.write("r", [E.raised(1, { shown: "text" })]);
      yield* recorder.write("r", [E.raised(1, { shown: "text", terminal_seen: true }), E.ended()]);
      assert.deepStrictEqual(yield* part, first);
      const [row] = yield* admin`SELECT record, changed FROM stream_recovery_runs WHERE run_id = 'r'`;
      assert.isNull(row?.record);
      assert.match(String(row?.changed), /"ended"/);
      // A process that has not written the run reads the same.
      assert.deepStrictEqual(yield* record(other, "r"), yield* record(recorder, "r"));
    }).pipe(Effect.scoped),
  );
});
