/**
 * Forgets what is old by dropping the partition that it lies on. How old a shelf is stands in a row, which the tests set back.
 */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Exit, Fiber, Logger, Queue, Random, References } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import { type Looked, type Retaining, type Retention, retainingOf } from "../../../src/recorder/retention/Retention.ts";
import * as SqlShelves from "../../../src/recorder/sql/postgres/SqlShelves.ts";
import { schemaVersion, shelvesVersion } from "../../../src/recorder/sql/SqlSchema.ts";
import * as SqlTables from "../../../src/recorder/sql/SqlTables.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

const dayMs = 24 * 60 * 60 * 1_000;

/** One look of a process at what is to be forgotten, which it takes when it starts. */
const look = (address: string, retention: Retention = {}) =>
  Effect.gen(function* () {
    const proxy = yield* StatementProxy.make(address);
    const last = proxy.hold(/^SELECT id FROM .*leases WHERE expires_at/);
    yield* Databases.open({ address: proxy.address, retention });
    yield* last.reached;
    yield* last.release;
  }).pipe(Effect.scoped);

/** Lets all shelves be older. */
const age = (admin: SqlClient, days: number) =>
  admin`UPDATE stream_recovery_shelves SET opened_at = opened_at - ${days * dayMs}`;

const shelves = (admin: SqlClient) =>
  Effect.map(admin<{ readonly id: number }>`SELECT id FROM stream_recovery_shelves ORDER BY id`, (rows) =>
    rows.map(({ id }) => id),
  );

const partitions = (admin: SqlClient, address: string) =>
  Effect.map(
    admin<{ readonly name: string }>`SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = ${`${Databases.schemaOf(address)}.stream_recovery_parts`}::regclass ORDER BY 1`,
    (rows) => rows.map(({ name }) => name),
  );

const shelfOf = (admin: SqlClient, runId: string) =>
  Effect.map(
    admin<{ readonly shelf: number }>`SELECT shelf FROM stream_recovery_runs WHERE run_id = ${runId}`,
    ([row]) => row?.shelf,
  );

/** A database whose tables are there. */
const tended = Effect.gen(function* () {
  const address = yield* Databases.empty;
  const admin = yield* Databases.client(address, "operator");
  yield* Effect.scoped(Databases.open({ address }));
  return { address, admin };
});

/** The address for a role with the rights of docs/postgres.md. */
const leastRights = Effect.fnUntraced(function* (address: string, admin: SqlClient) {
  const schema = Databases.schemaOf(address);
  const role = `keeper_${schema}`;
  yield* admin.unsafe(`CREATE ROLE ${role} LOGIN`);
  yield* admin.unsafe(`GRANT USAGE ON SCHEMA ${schema} TO ${role}`);
  const tables = ["leases", "runs", "incidents", "questions", "parts", "facts", "groups"];
  const granted = tables.map((name) => `stream_recovery_${name}`).join(", ");
  yield* admin.unsafe(`GRANT SELECT, INSERT, UPDATE, DELETE ON ${granted} TO ${role}`);
  yield* admin.unsafe(`GRANT SELECT ON stream_recovery_shelves TO ${role}`);
  yield* admin.unsafe(`GRANT SELECT, UPDATE ON stream_recovery_meta TO ${role}`);
  return address.replace("user=postgres", `user=${role}`);
});

/** What a recorder of its own does for `runs retain`. */
const retainingBy = (address: string) =>
  Effect.map(Databases.open({ address }), (recorder) => {
    const retaining = retainingOf(recorder);
    return retaining ?? assert.fail("a store forgets what is old");
  });

/** Tables as the version before shelves has left them. */
const beforeShelves = Effect.gen(function* () {
  const address = yield* Databases.empty;
  const admin = yield* Databases.client(address, "operator");
  yield* Effect.scoped(Databases.open({ address }));
  yield* admin`DROP TABLE stream_recovery_parts, stream_recovery_shelves`;
  yield* admin`DROP INDEX stream_recovery_runs_aged, stream_recovery_runs_waiting`;
  yield* admin`ALTER TABLE stream_recovery_runs DROP COLUMN shelf, DROP COLUMN changed, ALTER COLUMN record SET NOT NULL`;
  yield* admin`ALTER TABLE stream_recovery_leases DROP COLUMN knows`;
  yield* admin`CREATE INDEX stream_recovery_runs_ended ON stream_recovery_runs (ended_at) WHERE ended_at IS NOT NULL`;
  yield* admin`UPDATE stream_recovery_meta SET value = ${String(shelvesVersion - 1)} WHERE name = 'schema_version'`;
  yield* admin`UPDATE stream_recovery_meta SET value = '2' WHERE name IN ('min_reader', 'min_writer')`;
  return { address, admin };
});

describe("the parts of runs in PostgreSQL", () => {
  it.live("are forgotten with their shelf, and a run that is to stay is moved off it first", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      const recorder = yield* Databases.open({ address });
      const now = yield* Clock.currentTimeMillis;
      for (let n = 0; n < 30; n += 1) {
        yield* recorder.write(`old${n}`, [E.begun(`old${n}`), E.attempt(1)]);
        yield* recorder.write(`old${n}`, [E.ended({ at: now - 40 * dayMs })]);
      }
      const life = E.life("live").filter(({ _tag }) => _tag !== "RunEnded");
      for (const entry of life) yield* recorder.write("live", [entry]);
      yield* recorder.write("recent", [E.begun("recent"), E.attempt(1)]);
      yield* recorder.write("recent", [E.ended({ at: now - dayMs })]);
      const before = [yield* record(recorder, "live"), yield* record(recorder, "recent")];
      assert.deepStrictEqual(before[0], E.folded(life));
      assert.strictEqual(yield* shelfOf(admin, "live"), 1);
      yield* age(admin, 2);
      yield* look(address);
      assert.deepStrictEqual(yield* shelves(admin), [1, 2], "a shelf of a day is closed");
      yield* recorder.write("next", [E.begun("next")]);
      yield* age(admin, 29);
      yield* look(address);
      assert.isDefined(yield* recorder.run("old0"), "it was closed 29 days ago");
      yield* age(admin, 2);
      yield* look(address);
      assert.isUndefined(yield* recorder.run("old0"));
      assert.include(yield* partitions(admin, address), "stream_recovery_parts_1", "a reader may have seen its runs");
      yield* look(address);
      assert.notInclude(yield* partitions(admin, address), "stream_recovery_parts_1");
      assert.notInclude(yield* shelves(admin), 1);
      assert.deepStrictEqual([yield* record(recorder, "live"), yield* record(recorder, "recent")], before);
      assert.strictEqual(yield* shelfOf(admin, "live"), 0);
      yield* recorder.write("live", [E.noted(7), E.ended({ at: now })]);
      assert.deepStrictEqual(yield* record(recorder, "live"), E.folded([...life, E.noted(7), E.ended({ at: now })]));
      const [left] = yield* admin`SELECT COUNT(*)::integer AS n FROM stream_recovery_runs`;
      assert.deepStrictEqual(left, { n: 3 });
      assert.strictEqual((yield* record(recorder, "next")).state, "live");
    }).pipe(Effect.scoped),
  );

  it.live("are forgotten with their shelf where there are enough newer runs", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      const recorder = yield* Databases.open({ address });
      const ended = (id: string) =>
        Effect.andThen(recorder.write(id, [E.begun(id)]), recorder.write(id, [E.ended({ at: Date.now() })]));
      yield* Effect.forEach(
        Array.from({ length: 1_001 }, (_, n) => `a${n}`),
        ended,
        { concurrency: 100 },
      );
      yield* recorder.write("long", [E.begun("long"), E.attempt(1)]);
      yield* look(address, { runs: 10 });
      assert.deepStrictEqual(yield* shelves(admin), [1, 2], "a shelf of so many is closed");
      yield* Effect.forEach(
        Array.from({ length: 11 }, (_, n) => `b${n}`),
        ended,
        { concurrency: 100 },
      );
      yield* recorder.write("long", [E.ended({ at: Date.now() })]);
      yield* admin`UPDATE stream_recovery_shelves SET opened_at = opened_at - 120000`;
      const kept = Effect.map(recorder.runs({ limit: 2_000 }), ({ length }) => length);
      for (let n = 0; n < 2; n += 1) yield* look(address, { runs: 10 });
      assert.strictEqual(yield* kept, 1_013, "all of them ended less than a minute ago");
      yield* admin`UPDATE stream_recovery_runs SET ended_at = ended_at - 120000`;
      for (let n = 0; n < 2; n += 1) yield* look(address, { runs: 10 });
      assert.deepStrictEqual(yield* partitions(admin, address), ["stream_recovery_parts_2"]);
      assert.strictEqual(yield* kept, 12);
      assert.strictEqual((yield* record(recorder, "long")).state, "ended", "it has ended last");
    }).pipe(Effect.scoped),
  );

  it.live("are counted once where two processes forget them at the same time", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* tended;
      const proxy = yield* StatementProxy.make(address);
      const [first, second] = [yield* retainingBy(proxy.address), yield* retainingBy(address)];
      const recorder = yield* Databases.open({ address });
      const at = (yield* Clock.currentTimeMillis) - 40 * dayMs;
      for (const id of ["a", "b", "c"]) {
        yield* recorder.write(id, [E.begun(id)]);
        yield* recorder.write(id, [E.ended({ at })]);
      }
      yield* age(admin, 2);
      yield* second.look({});
      yield* age(admin, 32);
      const deletes = proxy.hold(/^DELETE FROM \S*runs\W/);
      const looking = yield* Effect.forkChild(first.look({}), { startImmediately: true });
      yield* deletes.reached;
      const faster = yield* second.look({});
      yield* deletes.release;
      const late = yield* Fiber.join(looking);
      assert.deepStrictEqual([faster.runs, faster.emptied, late.runs, late.emptied], [3, 1, 0, 0]);
    }).pipe(Effect.scoped),
  );

  it.live("are read whole, or as none, by one who reads while their shelf is dropped", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* tended;
      const proxy = yield* StatementProxy.make(address);
      const reader = yield* Databases.open({ address: proxy.address });
      const recorder = yield* Databases.open({ address });
      for (const id of ["gone", "live"]) yield* recorder.write(id, [E.begun(id), E.attempt(1)]);
      yield* recorder.write("gone", [E.ended({ at: (yield* Clock.currentTimeMillis) - 40 * dayMs })]);
      yield* age(admin, 2);
      yield* look(address);
      yield* age(admin, 32);
      yield* look(address, { ageMs: 400 * dayMs });
      const before = yield* record(recorder, "live");
      const ways = [Effect.map(reader.run("gone"), (it) => [it]), Effect.map(reader.runs(), (all) => [...all])];
      const reads = yield* Effect.forEach(ways, (read) =>
        Effect.gen(function* () {
          const parts = proxy.hold(/^SELECT seq, kind, body FROM/);
          const reading = yield* Effect.forkChild(Effect.exit(read), { startImmediately: true });
          yield* parts.reached;
          return { parts, reading };
        }),
      );
      yield* look(yield* leastRights(address, admin));
      yield* look(address);
      assert.notInclude(yield* shelves(admin), 1);
      for (const { parts } of reads) yield* parts.release;
      const [one, all] = yield* Effect.forEach(reads, ({ reading }) => Fiber.join(reading));
      assert.deepStrictEqual(one, Exit.succeed([undefined]));
      assert.deepStrictEqual(all, Exit.succeed([before]));
    }).pipe(Effect.scoped),
  );

  it.live("are damaged where somebody has dropped their table by hand, and keep no other run from being read", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* tended;
      const recorder = yield* Databases.open({ address });
      yield* recorder.write("gone", [E.begun("gone"), E.attempt(1)]);
      yield* age(admin, 2);
      yield* look(address);
      yield* recorder.write("there", [E.begun("there"), E.attempt(1)]);
      assert.deepStrictEqual([yield* shelfOf(admin, "gone"), yield* shelfOf(admin, "there")], [1, 2]);
      yield* admin`DROP TABLE stream_recovery_parts_1`;
      // It writes all the time: a write that got through lets a lock be waited for anew.
      const writes = yield* Effect.forkScoped(
        Effect.forever(Effect.flatMap(Random.nextInt, (n) => recorder.write(`w${n}`, [E.begun(`w${n}`)]))),
      );
      const reader = yield* Databases.open({ address });
      const found = yield* reader.runs({ text: "there" });
      assert.deepStrictEqual(
        found.map(({ run_id }) => run_id),
        ["there"],
      );
      const read = yield* Effect.flip(reader.run("gone"));
      assert.strictEqual(read.reason, "corrupt");
      yield* Fiber.interrupt(writes);
      const all = yield* reader.runs({ limit: 10_000 });
      assert.include(
        all.map(({ run_id }) => run_id),
        "there",
      );
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  );

  it.live("are kept for a damaged record, which cannot be moved, and those of all others are not kept with it", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* tended;
      const owner = yield* retainingBy(address);
      const recorder = yield* Databases.open({ address });
      for (const id of ["damaged", "live", "old"]) yield* recorder.write(id, [E.begun(id), E.attempt(1)]);
      yield* recorder.write("old", [E.ended({ at: (yield* Clock.currentTimeMillis) - 40 * dayMs })]);
      yield* age(admin, 2);
      yield* owner.look({});
      yield* age(admin, 32);
      yield* owner.look({ ageMs: 400 * dayMs });
      yield* admin`UPDATE stream_recovery_parts SET body = 'no JSON' WHERE seq =
        (SELECT seq FROM stream_recovery_runs WHERE run_id = 'damaged')`;
      const emptied = { runs: 1, dropped: 0, emptied: 0, opened: false, lacksRight: "no" } as const;
      assert.deepStrictEqual([yield* owner.due({}), yield* owner.look({})], [emptied, emptied]);
      for (let n = 0; n < 2; n += 1) {
        const then = { ...emptied, runs: 0 };
        assert.deepStrictEqual([yield* owner.due({}), yield* owner.look({})], [then, then], "nor is it said for ever");
      }
      const left = yield* admin<{ readonly body: string }>`SELECT body FROM stream_recovery_parts WHERE shelf = 1`;
      assert.deepStrictEqual(left, [{ body: "no JSON" }]);
      assert.strictEqual((yield* record(recorder, "live")).state, "live");
    }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None")),
  );

  it.live("are not dropped while a run has its own there, however that came", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const recorder = yield* Databases.open({ address });
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      const tables = SqlTables.make(yield* Databases.client(address, "operator"), SqlTables.prefixDefault);
      assert.isFalse(yield* SqlShelves.drop(tables, 1));
      assert.strictEqual((yield* record(recorder, "r")).state, "live");
    }).pipe(Effect.scoped),
  );

  it.live("stay where they are when a run ends: its end is written into its row alone", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      const recorder = yield* Databases.open({ address });
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      const part = admin`SELECT ctid::text AS at, xmin::text AS by, body FROM stream_recovery_parts`;
      const first = yield* part;
      yield* recorder.write("r", [E.raised(1, { shown: "text" })]);
      yield* recorder.write("r", [E.raised(1, { shown: "text", terminal_seen: true }), E.ended()]);
      assert.deepStrictEqual(yield* part, first);
      assert.strictEqual((yield* record(recorder, "r")).state, "ended");
      const [row] = yield* admin`SELECT record, changed FROM stream_recovery_runs`;
      assert.isNull(row?.record);
      assert.match(String(row?.changed), /"ended"/);
      // A process that has not written it reads the same.
      const other = yield* Databases.open({ address });
      assert.deepStrictEqual(yield* record(other, "r"), yield* record(recorder, "r"));
    }).pipe(Effect.scoped),
  );

  it.live("stand in rows while a process of an older version drives runs, and lie on a shelf when none does", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* beforeShelves;
      yield* admin`INSERT INTO stream_recovery_runs (run_id, version, owner, state, provider, model, started_at, broken, record)
        VALUES ('older', 1, 'older-process', 'live', 'p', 'm', 1000, 0, ${JSON.stringify(E.folded([E.begun("older")]))})`;
      yield* admin`INSERT INTO stream_recovery_leases (id, label, started_at, expires_at, fenced, beats, lease_ms)
        VALUES ('older-process', 'x', 0, extract(epoch FROM clock_timestamp()) * 1000 + 15000, 0, 1, 15000)`;
      const recorder = yield* Databases.open({ address });
      yield* recorder.write("new", [E.begun("new")]);
      yield* look(address);
      assert.deepStrictEqual(yield* shelves(admin), []);
      assert.strictEqual(yield* shelfOf(admin, "new"), 0);
      const says = admin`SELECT value FROM stream_recovery_meta WHERE name = 'min_reader'`;
      assert.deepStrictEqual(yield* says, [{ value: "2" }]);
      const [row] = yield* admin`SELECT record FROM stream_recovery_runs WHERE run_id = 'new'`;
      assert.isString(row?.record, "the older one reads it");
      yield* admin`UPDATE stream_recovery_leases SET fenced = 1 WHERE id = 'older-process'`;
      yield* look(address);
      assert.deepStrictEqual(yield* shelves(admin), [1]);
      assert.deepStrictEqual(yield* says, [{ value: String(shelvesVersion) }]);
      yield* recorder.write("next", [E.begun("next")]);
      assert.strictEqual(yield* shelfOf(admin, "next"), 1);
      yield* recorder.write("new", [E.attempt(1), E.ended()]);
      const states = (yield* recorder.runs({ limit: 10 })).map(({ run_id, state }) => [run_id, state]);
      assert.deepStrictEqual(states, [
        ["next", "live"],
        ["new", "ended"],
        ["older", "live"],
      ]);
      assert.isAtLeast(schemaVersion, shelvesVersion);
    }).pipe(Effect.scoped),
  );

  it.live("are forgotten one run after the other where the role may not drop tables", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* tended;
      const least = yield* leastRights(address, admin);
      const recorder = yield* Databases.open({ address: least });
      yield* recorder.write("old", [E.begun("old"), E.attempt(1)]);
      yield* recorder.write("old", [E.ended({ at: (yield* Clock.currentTimeMillis) - 40 * dayMs })]);
      yield* recorder.write("live", [E.begun("live")]);
      yield* age(admin, 40);
      yield* look(least);
      assert.isUndefined(yield* recorder.run("old"));
      assert.strictEqual((yield* record(recorder, "live")).state, "live");
      assert.deepStrictEqual(yield* shelves(admin), [1]);
      assert.deepStrictEqual(yield* admin`SELECT COUNT(*)::integer AS n FROM stream_recovery_parts`, [{ n: 1 }]);
    }).pipe(Effect.scoped),
  );

  it.live("are forgotten by a role that may not drop tables, whose owner drops them beside it", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* tended;
      const least = yield* leastRights(address, admin);
      const recorder = yield* Databases.open({ address: least });
      const at = (yield* Clock.currentTimeMillis) - 40 * dayMs;
      yield* recorder.write("old", [E.begun("old"), E.attempt(1)]);
      yield* recorder.write("old", [E.ended({ at })]);
      yield* recorder.write("live", [E.begun("live"), E.attempt(1)]);
      yield* recorder.write("moved", [E.begun("moved")]);
      yield* age(admin, 2);
      yield* look(address);
      assert.deepStrictEqual(yield* shelves(admin), [1, 2], "the owner closes it");
      yield* age(admin, 32);
      yield* look(address, { ageMs: 400 * dayMs });
      assert.deepStrictEqual(yield* shelves(admin), [1, 2, 3], "the first one was closed 32 days ago");
      yield* look(least);
      assert.isUndefined(yield* recorder.run("old"), "its row is gone");
      assert.include(yield* partitions(admin, address), "stream_recovery_parts_1", "what lay on it is the owner's");
      assert.strictEqual(yield* shelfOf(admin, "live"), 0);
      yield* recorder.write("moved", [E.attempt(1), E.ended({ at })]);
      yield* look(least);
      assert.isUndefined(yield* recorder.run("moved"), "nothing that it may not do keeps it from the rest");
      yield* look(address);
      assert.notInclude(yield* partitions(admin, address), "stream_recovery_parts_1");
      assert.strictEqual((yield* record(recorder, "live")).state, "live");
    }).pipe(Effect.scoped),
  );

  it.live("belong to the owner of the tables, whoever has opened them", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* tended;
      const keeper = `keeper "of runs" ${yield* Random.nextIntBetween(1, 1_000_000_000)}`;
      const name = admin(keeper);
      yield* admin`CREATE ROLE ${name}`;
      yield* admin`ALTER TABLE stream_recovery_parts OWNER TO ${name}`;
      yield* age(admin, 2);
      yield* look(address);
      const owners = admin`SELECT relname, pg_get_userbyid(relowner) AS owner FROM pg_class
        WHERE relname = 'stream_recovery_parts_2' AND relkind = 'r'`;
      assert.deepStrictEqual(yield* owners, [{ relname: "stream_recovery_parts_2", owner: keeper }]);
      yield* admin`REASSIGN OWNED BY ${name} TO CURRENT_USER`;
      yield* admin`DROP ROLE ${name}`;
    }).pipe(Effect.scoped),
  );

  it.live("are told of by a look that changes nothing, which says of each role what it may", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* tended;
      const owner = yield* retainingBy(address);
      const least = yield* retainingBy(yield* leastRights(address, admin));
      const recorder = yield* Databases.open({ address });
      const [asks, parked] = [
        E.life("asks").filter(({ _tag }) => _tag !== "RunEnded"),
        [E.begun("p"), E.parked("interrupted")],
      ];
      for (const entry of asks) yield* recorder.write("asks", [entry]);
      yield* recorder.write("p", parked);
      yield* recorder.write("live", [E.begun("live")]);
      for (const id of ["a", "b"]) {
        yield* recorder.write(id, [E.begun(id)]);
        yield* recorder.write(id, [E.ended({ at: (yield* Clock.currentTimeMillis) - 40 * dayMs })]);
      }
      const none = { runs: 0, dropped: 0, emptied: 0, opened: false, lacksRight: "no" } as const;
      const both = Effect.fnUntraced(function* (it: Retaining, expected: Looked) {
        assert.deepStrictEqual([yield* it.due({}), yield* it.due({})], [expected, expected]);
        assert.deepStrictEqual(yield* it.look({}), expected);
      });
      yield* age(admin, 1);
      yield* both(least, { ...none, lacksRight: "tended" });
      yield* both(owner, { ...none, opened: true });
      yield* age(admin, 32);
      assert.deepStrictEqual(yield* least.due({}), { ...none, runs: 2, lacksRight: "untended" });
      // The shelf is closed by then; nothing else is forgotten by itself.
      assert.deepStrictEqual(yield* owner.look({ ageMs: 400 * dayMs }), { ...none, opened: true });
      yield* both(owner, { ...none, runs: 2, emptied: 1 });
      yield* both(least, { ...none, lacksRight: "tended" });
      yield* both(owner, { ...none, dropped: 1 });
      yield* both(owner, none);
      for (const id of ["asks", "p", "live"]) assert.notStrictEqual((yield* record(recorder, id)).state, "ended", id);
    }).pipe(Effect.scoped),
  );

  it.live("are left to the owner by a process that says so, once, and louder where the owner does not come", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* tended;
      const least = yield* leastRights(address, admin);
      const said = yield* Queue.unbounded<string>();
      const logger = Logger.make(({ logLevel, message }) => void Queue.offerUnsafe(said, `${logLevel} ${message}`));
      const opened = (by: string) =>
        Effect.provide(Databases.open({ address: by, retention: { everyMs: 1 } }), Logger.layer([logger]));
      yield* opened(least);
      assert.match(
        yield* Queue.take(said),
        /^Info this role may neither .* `stream-recovery runs retain` as the owner/,
      );
      yield* age(admin, 3);
      assert.match(yield* Queue.take(said), /^Warn .* row by row, .* `stream-recovery runs retain` as the owner/);
      yield* look(address);
      assert.match(yield* Queue.take(said), /^Info /, "what it says of a thousand looks stands in three lines");
    }).pipe(Effect.scoped),
  );
});
