import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

/**
 * Cuts the connections of this test's recorders, as an operator or a failing server would. The server is shared with other test files, so
 * the test has a role of its own.
 */
const cut = (admin: SqlClient) =>
  Effect.map(
    admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name LIKE 'stream-recovery%' AND usename = current_user`,
    ({ length }) => length,
  );

const role = `lost_${process.pid}`;

interface Opened {
  readonly recorder: Recorder;
  readonly admin: SqlClient;
  readonly address: string;
}

const opened: Effect.Effect<Opened, RecorderError, Scope.Scope> = Effect.gen(function* () {
  const given = yield* Databases.empty;
  const operator = yield* Databases.client(given, "operator");
  yield* Effect.orDie(
    operator.unsafe(`DO $$ BEGIN CREATE ROLE ${role} SUPERUSER LOGIN; EXCEPTION WHEN duplicate_object THEN END $$`),
  );
  const address = given.replace("user=postgres", `user=${role}`);
  const admin = yield* Databases.client(address, "operator");
  return { recorder: yield* Databases.open({ address }), admin, address };
});

describe("PostgresRunRecorder and lost connections", () => {
  it.live("an idle connection that was cut is opened again, and no write fails because of it", () =>
    Effect.gen(function* () {
      const { admin, recorder } = yield* opened;
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      assert.isAbove(yield* cut(admin), 0);
      yield* recorder.write("r", [E.raised(1, { shown: "text" })]);
      assert.isAbove(yield* cut(admin), 0);
      assert.strictEqual((yield* record(recorder, "r")).attempts[0]?.facts.shown, "text");
    }).pipe(Effect.scoped),
  );

  // A pool whose scope is closing opens no connection any more, and a caller that waits for one would wait forever.
  it.live("a recorder whose connections were cut closes, and its runs wait for no lease", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* opened;
      const scope = yield* Scope.make();
      const closing = yield* Scope.provide(Databases.open({ address, process: "closing" }), scope);
      yield* closing.write("r", [E.begun("r"), E.attempt(1)]);
      assert.isAbove(yield* cut(admin), 0);
      yield* Scope.close(scope, Exit.void);
      const next = yield* Databases.open({ address, process: "next" });
      assert.deepStrictEqual(
        (yield* next.orphans(10, { waits: false })).map(({ run_id }) => run_id),
        ["r"],
      );
    }).pipe(Effect.scoped),
  );

  it.live(
    "twenty writers whose connections are cut again and again lose nothing acknowledged, and store nothing twice",
    () =>
      Effect.gen(function* () {
        const { admin, recorder } = yield* opened;
        const ids = Array.from({ length: 20 }, (_, index) => `r${index}`);
        let [cuts, acknowledged] = [0, 0];
        // One writer cuts them while the writes of the others are in flight.
        const noted = Effect.suspend(() => {
          acknowledged += 1;
          if (acknowledged % 25 > 0) return Effect.void;
          return Effect.map(cut(admin), (found) => {
            cuts += found;
          });
        });
        const writer = (id: string) =>
          Effect.gen(function* () {
            yield* recorder.write(id, [E.begun(id), E.attempt(1)]);
            for (let n = 1; n <= 20; n += 1) yield* Effect.andThen(recorder.write(id, [E.opened(id, n)]), noted);
          });
        yield* Effect.forEach(ids, writer, { concurrency: "unbounded" });
        assert.isAbove(cuts, 2, "connections were cut");
        for (const id of ids) assert.strictEqual((yield* record(recorder, id)).incidents.length, 20, id);
      }).pipe(Effect.scoped),
  );

  for (const where of ["request", "reply"] as const) {
    it.live(`a commit whose ${where} is lost is on record once, and its writer is told so`, () =>
      Effect.gen(function* () {
        const proxy = yield* StatementProxy.make(yield* Databases.empty);
        const recorder = yield* Databases.open({ address: proxy.address });
        for (const [id, entries] of [["r", [E.begun("r")]] as const, ["s", E.life("s")] as const]) {
          proxy.breaks = where;
          yield* recorder.write(id, entries);
          assert.deepStrictEqual(yield* record(recorder, id), E.folded(entries));
        }
        proxy.breaks = where;
        yield* recorder.write("r", [E.attempt(1)]);
        assert.strictEqual((yield* record(recorder, "r")).attempts.length, 1);
        assert.strictEqual(proxy.broken, 3);
      }).pipe(Effect.scoped),
    );
  }

  for (const where of ["undecided", "ailing"] as const) {
    it.live(
      `a commit whose reply is an error that says nothing of it (${where}) is looked up, and is on record once`,
      () =>
        Effect.gen(function* () {
          const proxy = yield* StatementProxy.make(yield* Databases.empty);
          const recorder = yield* Databases.open({ address: proxy.address });
          proxy.breaks = where;
          yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
          proxy.breaks = where;
          yield* recorder.write("r", [E.noted(1)]);
          assert.strictEqual(proxy.broken, 2);
          assert.deepStrictEqual(yield* record(recorder, "r"), E.folded([E.begun("r"), E.attempt(1), E.noted(1)]));
        }).pipe(Effect.scoped),
    );
  }

  it.live("a statement outside a transaction, of which its server has lost track, fails with an unknown outcome", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      const recorder = yield* Databases.open({ address });
      yield* recorder.write("r", [E.begun("r")]);
      yield* admin.unsafe(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'result is ambiguous' USING ERRCODE = '40003'; END $$`);
      yield* admin`CREATE TRIGGER refuse BEFORE INSERT ON stream_recovery_groups EXECUTE FUNCTION refuse()`;
      const { shared } = recorder;
      if (shared === undefined) return assert.fail("a server is shared");
      const error = yield* Effect.flip(shared.spend("g", { retries: 1, tokens: 0 }, 60_000));
      assert.match(error.message, /we cannot tell whether this write is on record$/);
    }).pipe(Effect.scoped),
  );

  it.live("an answer whose commit is lost counts once, and a claim is kept", () =>
    Effect.gen(function* () {
      const proxy = yield* StatementProxy.make(yield* Databases.empty);
      const recorder = yield* Databases.open({ address: proxy.address });
      const parked = { _tag: "RunParked", reason: "question" } as const;
      yield* recorder.write("r", [E.begun("r"), E.attempt(1), E.opened("r", 1), E.asked("r", 1), parked]);
      const fresh = yield* Databases.open({ address: proxy.address });
      proxy.breaks = "reply";
      yield* fresh.answer({ run_id: "r", revision: 1, choice: "stop", by: "person" });
      assert.strictEqual(proxy.broken, 1);
      assert.strictEqual((yield* record(recorder, "r")).questions[0]?.answer, "stop");
      proxy.breaks = "reply";
      yield* fresh.claim("r");
      assert.strictEqual((yield* Effect.flip(recorder.claim("r"))).reason, "owned");
      yield* fresh.write("r", [{ _tag: "RunResumed" }, E.attempt(2)]);
    }).pipe(Effect.scoped),
  );

  it.live(
    "if the server cannot be asked after it, the write fails with an unknown outcome, and nothing else is written for it",
    () =>
      Effect.gen(function* () {
        const address = yield* Databases.empty;
        const direct = yield* Databases.open({ address });
        const proxy = yield* StatementProxy.make(address);
        const recorder = yield* Databases.open({ address: proxy.address, lockWaitMs: 100 });
        proxy.breaks = "for_good";
        const error = yield* Effect.flip(recorder.write("r", [E.begun("r")]));
        assert.strictEqual(error.reason, "unavailable");
        assert.match(error.message, /we cannot tell whether this write is on record$/);
        assert.deepStrictEqual(yield* record(direct, "r"), E.folded([E.begun("r")]));
        // When the server is back, the run still belongs to its process.
        proxy.isDown = false;
        yield* recorder.write("r", [E.attempt(1)]);
        assert.strictEqual((yield* record(direct, "r")).attempts.length, 1);
      }).pipe(Effect.scoped),
  );

  it.live("a group of writes without a server fails as one: the writes are not tried one after the other", () =>
    Effect.gen(function* () {
      const { address, admin } = yield* opened;
      const proxy = yield* StatementProxy.make(address);
      const recorder = yield* Databases.open({ address: proxy.address, lockWaitMs: 40 });
      yield* recorder.write("r", [E.begun("r")]);
      proxy.isDown = true;
      yield* cut(admin);
      assert.strictEqual((yield* Effect.flip(recorder.write("r", [E.attempt(1)]))).reason, "unavailable");
      const before = proxy.refused;
      const ids = Array.from({ length: 100 }, (_, index) => `r${index}`);
      const all = yield* Effect.forEach(ids, (id) => Effect.flip(recorder.write(id, [E.begun(id)])), {
        concurrency: "unbounded",
      });
      assert.isTrue(all.every(({ reason }) => reason === "unavailable"));
      assert.isBelow(proxy.refused - before, 20);
      proxy.isDown = false;
      yield* recorder.write("r", [E.attempt(1)]);
    }).pipe(Effect.scoped),
  );

  it.live("a server that answers nothing counts as away after two tries, even if each of them takes long", () =>
    Effect.gen(function* () {
      const proxy = yield* StatementProxy.make(yield* Databases.empty);
      proxy.silent = 3;
      const error = yield* Effect.flip(Databases.open({ address: proxy.address, lockWaitMs: 100 }));
      assert.strictEqual(error.reason, "unavailable");
      assert.match(error.message, /cannot be reached/);
      assert.strictEqual(proxy.refused, 2);
    }).pipe(Effect.scoped),
  );

  it.live("a commit is asked after for a while, and not fifty times if each query takes that long", () =>
    Effect.gen(function* () {
      const proxy = yield* StatementProxy.make(yield* Databases.empty);
      const recorder = yield* Databases.open({ address: proxy.address, lockWaitMs: 100 });
      proxy.breaks = "in_silence";
      const error = yield* Effect.flip(recorder.write("r", [E.begun("r")]));
      assert.match(error.message, /we cannot tell whether this write is on record$/);
      // One or two queries, and the recorder's other connection, which checks its lease meanwhile.
      assert.isBelow(proxy.refused, 10);
    }).pipe(Effect.scoped),
  );
});
