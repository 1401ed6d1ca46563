import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { inject } from "vitest";
import * as Cluster from "../../../scripts/postgres/Cluster.ts";
import { schemaVersion } from "../../../src/recorder/sql/SqlSchema.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Former from "../suite/FormerStore.ts";
import * as Databases from "./Databases.ts";

type Name = "rows" | "partitions";

let made = 0;

/** The address of a database restored from a dump, and a client of it. */
const restored = Effect.fnUntraced(function* (name: Name) {
  made += 1;
  const database = `former_${process.pid}_${made}`;
  const admin = yield* Databases.client(Databases.addressOf("postgres"));
  yield* Effect.acquireRelease(admin`CREATE DATABASE ${admin(database)}`, () =>
    Effect.ignore(admin`DROP DATABASE IF EXISTS ${admin(database)} WITH (FORCE)`),
  );
  const to = ["-h", inject("postgresSocket"), "-U", "postgres", "-d", database, "-qAt", "-v", "ON_ERROR_STOP=1"];
  const programs = Cluster.programs() ?? assert.fail("the suite has a server");
  execFileSync(join(programs, "psql"), [...to, "-f", Former.fileOf(6, `${name}.sql`)], { stdio: "pipe" });
  const address = Databases.addressOf(database);
  return { address, sql: yield* Databases.client(address, "operator") };
});

const openedOf = Effect.fnUntraced(function* (name: Name) {
  const { address, sql } = yield* restored(name);
  // It waits for the length of its own lease before it considers a process dead.
  const recorder = yield* Databases.open({ address, leaseMs: 1_000 });
  const count = (table: string) =>
    Effect.orDie(
      Effect.map(
        sql.unsafe<{ readonly n: number }>(`SELECT count(*)::integer AS n FROM stream_recovery_${table}`),
        ([row]) => row?.n ?? 0,
      ),
    );
  return { address, count, recorder, sql };
});

const tables = ["incidents", "questions", "parts"];

for (const name of ["rows", "partitions"] as const) Former.suite({ version: 6, name, opened: openedOf(name), tables });

describe("tables of version 6 in PostgreSQL", () => {
  for (const name of ["rows", "partitions"] as const) {
    it.live(`are upgraded, and processes find their shared facts there (${name})`, () =>
      Effect.gen(function* () {
        const { address, sql } = yield* restored(name);
        const meta = Effect.map(
          sql<{ readonly name: string; readonly value: string }>`SELECT name, value FROM stream_recovery_meta
            WHERE name IN ('schema_version', 'min_reader', 'min_writer')`,
          (rows) => Object.fromEntries(rows.map((row) => [row.name, Number(row.value)])),
        );
        const before = yield* meta;
        assert.strictEqual(before.schema_version, 6);
        const recorder = yield* Databases.open({ address });
        // A program of version 6 keeps running beside this one, with its old rules.
        assert.deepStrictEqual(yield* meta, { ...before, schema_version: schemaVersion });
        assert.isAtMost(before.min_writer ?? 99, 6);
        const shared = recorder.shared ?? assert.fail("processes of a server know things together");
        for (const kind of ["failed", "told", "owner", "cooldown"] as const)
          assert.strictEqual((yield* shared.find(kind, `key of ${kind}`))?.value, JSON.stringify({ kind }));
        assert.strictEqual((yield* shared.all("cancel"))[0]?.key, "halfway");
        assert.isUndefined(yield* shared.find("failed", "taken"));
        const spent = yield* shared.spend("batch 7", { retries: 1, tokens: 0 }, 60_000);
        assert.deepStrictEqual(spent, { retries: 3, tokens: 120 });
        // The program of version 6 goes on using its delivery log, which this one leaves alone.
        const logged = yield* sql<{ readonly state: string; readonly sealed: Uint8Array }>`SELECT d.state, p.sealed
          FROM stream_recovery_deliveries d JOIN stream_recovery_deliveryparts p ON p.run_id = d.run_id ORDER BY d.state`;
        assert.deepStrictEqual(
          logged.map(({ state }) => state),
          ["broken", "evicted", "live", "whole"],
        );
      }).pipe(Effect.scoped),
    );

    it.live(`accept the rows that a program of version 6 still writes beside this one (${name})`, () =>
      Effect.gen(function* () {
        const { recorder, sql } = yield* openedOf(name);
        const id = "of the older program";
        const first = E.folded([E.begun(id), E.attempt(1)]);
        type Row = { readonly seq: string; readonly shelf: number };
        const [found] = yield* sql.unsafe<Row>(inserting, [id, JSON.stringify(first)]);
        const row = found ?? assert.fail("the statement gives a row");
        assert.strictEqual(row.shelf, name === "rows" ? 0 : 3);
        assert.deepStrictEqual(yield* record(recorder, id), first);
        const entries = [E.raised(1, { shown: "text" }), E.opened(id, 1), E.asked(id, 1)];
        const [second, incident, question] = partsOf([E.begun(id), E.attempt(1), ...entries]);
        if (name === "rows") {
          yield* sql`INSERT INTO stream_recovery_incidents (run_id, id, n, incident) VALUES (${id}, ${`${id}.1`}, 1, ${incident})`;
          yield* sql`INSERT INTO stream_recovery_questions (run_id, n, question) VALUES (${id}, 0, ${question})`;
          yield* sql.unsafe(updating, [id, JSON.stringify(second), null]);
        } else {
          // The parts hold the first version of the record; the row holds the changes since.
          const changed = { o: { attempts: { i: { "0": { v: second.attempts[0] } } }, state: { v: "asking" } } };
          yield* sql.unsafe(putting, [row.shelf, row.seq, "i", `${id}.1`, 0, incident]);
          yield* sql.unsafe(putting, [row.shelf, row.seq, "q", "0", 0, question]);
          yield* sql.unsafe(updating, [id, null, JSON.stringify(changed)]);
        }
        assert.deepStrictEqual(yield* record(recorder, id), E.folded([E.begun(id), E.attempt(1), ...entries]));
      }).pipe(Effect.scoped),
    );
  }
});

describe("partitions of version 6 in PostgreSQL", () => {
  it.live("are kept: the newest gets all new runs, and a program of version 6 neither opens nor drops any", () =>
    Effect.gen(function* () {
      const { address, sql } = yield* restored("partitions");
      const looks = [sql.unsafe(newestFull, [60_000, 1_000]), sql.unsafe(closed, [0])];
      const partitions = sql`SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = 'stream_recovery_parts'::regclass ORDER BY 1`;
      const before = yield* partitions;
      assert.deepStrictEqual(before, [{ name: "stream_recovery_parts_2" }, { name: "stream_recovery_parts_3" }]);
      const due = yield* Effect.all(looks);
      assert.deepStrictEqual(due, [[{ id: 3, full: true }], [{ id: 2 }]]);
      const recorder = yield* Databases.open({ address });
      assert.deepStrictEqual(yield* Effect.all(looks), [[{ id: 3, full: false }], []]);
      yield* recorder.write("new", E.life("new"));
      const places = yield* sql`SELECT DISTINCT p.tableoid::regclass::text AS name FROM stream_recovery_parts p
        JOIN stream_recovery_runs r USING (seq, shelf) WHERE r.run_id = 'new'`;
      assert.deepStrictEqual(places, [{ name: "stream_recovery_parts_3" }]);
      assert.strictEqual(yield* recorder.prune({ keep: 0 }), 11);
      assert.deepStrictEqual(yield* partitions, before);
      // As docs/postgres.md describes for a partition that no run uses any more.
      yield* recorder.answer({ run_id: "second", revision: 1, choice: "stop", by: "person" });
      yield* recorder.claim("second");
      yield* recorder.write("second", [{ _tag: "RunResumed" }, E.ended()]);
      const named = sql`SELECT count(*)::integer AS n FROM stream_recovery_runs WHERE shelf = 2`;
      assert.deepStrictEqual(yield* named, [{ n: 1 }]);
      yield* recorder.prune({ keep: 0 });
      assert.deepStrictEqual(yield* named, [{ n: 0 }]);
      yield* sql`DROP TABLE stream_recovery_parts_2`;
      assert.strictEqual((yield* record(recorder, "halfway")).state, "live");
      yield* recorder.write("newer", E.life("newer"));
    }).pipe(Effect.scoped),
  );
});

/** The query with which a program of version 6 decides to open the next partition. */
const newestFull = `SELECT id, opened_at <= (extract(epoch FROM clock_timestamp()) * 1000)::double precision - $1
    OR (SELECT COALESCE(MAX(seq), 0) FROM stream_recovery_runs) - first_seq >= $2 AS full
  FROM stream_recovery_shelves ORDER BY id DESC LIMIT 1`;

/** The query with which it finds partitions to empty and drop. */
const closed = `SELECT id FROM (SELECT id, lead(opened_at) OVER (ORDER BY id) AS closed_at FROM stream_recovery_shelves) AS s
  WHERE closed_at < (extract(epoch FROM clock_timestamp()) * 1000)::double precision - $1 ORDER BY id`;

/** A record as it is written without its parts, its first incident, and its first question. */
const partsOf = (entries: Parameters<typeof E.folded>[0]) => {
  const { incidents, questions, ...own } = E.folded(entries);
  const record = { ...own, incidents: [], questions: [] };
  return [record, JSON.stringify(incidents[0]), JSON.stringify(questions[0])] as const;
};

/** The statement with which a program of version 6 stores a run, with one run instead of its lists. */
const inserting = `WITH v AS (SELECT $1::text AS run_id, $2::text AS record), s AS (
    SELECT COALESCE(MAX(id), 0) AS id FROM stream_recovery_shelves
  ), h AS (
    INSERT INTO stream_recovery_runs (run_id, version, broken, provider, model, started_at, state, shelf, record)
    SELECT v.run_id, 1, 0, 'p', 'm', 1000, 'live', s.id, CASE WHEN s.id = 0 THEN v.record END FROM v, s
    RETURNING run_id, seq, shelf
  ), p AS (
    INSERT INTO stream_recovery_parts (shelf, seq, kind, id, n, body)
    SELECT h.shelf, h.seq, 'r', '', 0, v.record FROM h JOIN v ON v.run_id = h.run_id WHERE h.shelf > 0
  )
  SELECT run_id, seq, shelf FROM h`;

/** The statement with which it changes a run. */
const updating = `UPDATE stream_recovery_runs SET version = version + 1, broken = 1, state = 'asking', record = $2, changed = $3
  WHERE run_id = $1`;

const putting = `INSERT INTO stream_recovery_parts (shelf, seq, kind, id, n, body) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (shelf, seq, kind, id) DO UPDATE SET body = excluded.body`;
