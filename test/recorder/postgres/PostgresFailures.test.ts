import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import * as SqlFailure from "../../../src/recorder/sql/SqlFailure.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";

/** Codes of the server, the reason for programs, and a phrase of the message for people. */
const codes: ReadonlyArray<readonly [code: string, reason: RecorderError["reason"], words: RegExp]> = [
  ["40001", "locked", /every try of this write was rolled back/],
  ["40P01", "locked", /every try of this write was rolled back/],
  ["40000", "locked", /every try of this write was rolled back/],
  ["72000", "locked", /every try of this write was rolled back/],
  ["40003", "unavailable", /lost a statement and rolled its transaction back; nothing was written/],
  ["55P03", "locked", /locked by another program/],
  ["53100", "disk_full", /no room left on its server's disk/],
  ["25006", "read_only", /a standby or is set to read-only/],
  ["42501", "read_only", /a right on the tables is missing/],
  ["XX001", "corrupt", /damaged files/],
  ["XX002", "corrupt", /damaged files/],
  ["28000", "unavailable", /role, password or certificate/],
  ["28P01", "unavailable", /role, password or certificate/],
  ["3D000", "unavailable", /no such database or schema/],
  ["3F000", "unavailable", /no such database or schema/],
  ["57P04", "unavailable", /no such database or schema/],
  ["53200", "unavailable", /no connection or no memory/],
  ["53300", "unavailable", /max_connections/],
  ["53400", "unavailable", /no connection or no memory/],
  ["57000", "unavailable", /an operator cancelled its statement/],
  ["57014", "unavailable", /statement_timeout/],
  ["58000", "unavailable", /a system error, for example a disk/],
  ["58030", "unavailable", /a system error, for example a disk/],
  ["58P01", "unavailable", /a system error, for example a disk/],
  ["25P04", "unavailable", /shutting down or starting/],
  ["25P03", "unavailable", /shutting down or starting/],
  ["57P01", "unavailable", /shutting down or starting/],
  ["57P02", "unavailable", /shutting down or starting/],
  ["57P03", "unavailable", /shutting down or starting/],
  ["57P05", "unavailable", /shutting down or starting/],
  ["08006", "unavailable", /shutting down or starting/],
  ["08007", "unavailable", /shutting down or starting/],
  ["54000", "unavailable", /could not be used; nothing was written/],
  ["22012", "unavailable", /could not be used; nothing was written/],
];

/** The first uses after a failure may meet a dropped connection, and this recorder's timeout for that is over. */
const continued = <A>(use: Effect.Effect<A, RecorderError>): Effect.Effect<A, RecorderError> =>
  Effect.retry(use, { times: 5, while: ({ reason }) => reason === "unavailable" });

describe("PostgresRunRecorder reports problems of its server, and continues after them", () => {
  it.live("each code of the server has its reason and its message, and nothing of the write is stored", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      const meet = Effect.fnUntraced(function* ([code, reason, words]: (typeof codes)[number]) {
        // Each code has a recorder of its own: after some of them a client drops its connection, which the next code must not meet.
        const recorder = yield* Databases.open({ address, lockWaitMs: 40 });
        yield* recorder.write(code, [E.begun(code)]);
        yield* admin.unsafe(`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'a value of the row' USING ERRCODE = '${code}'; END $$`);
        yield* admin`CREATE TRIGGER refuse BEFORE UPDATE ON stream_recovery_runs EXECUTE FUNCTION refuse()`;
        const error = yield* Effect.flip(recorder.write(code, [E.attempt(1)]));
        yield* admin`DROP TRIGGER refuse ON stream_recovery_runs`;
        assert.strictEqual(error.reason, reason, code);
        assert.match(error.message, words, code);
        assert.match(error.message, /^postgres:\/\/\S+ \S/, "the database is named");
        assert.notInclude(error.message, "a value of the row", code);
        assert.strictEqual((yield* continued(record(recorder, code))).attempts.length, 0, code);
        yield* continued(recorder.write(code, [E.attempt(1)]));
        assert.strictEqual((yield* record(recorder, code)).attempts.length, 1, code);
      }, Effect.scoped);
      yield* Effect.forEach(codes, meet);
    }).pipe(Effect.scoped),
  );

  it("a server without transaction ids is recognised by the position at which it refuses them", () => {
    for (const routine of ["GetNewTransactionId", "GetNewMultiXactId"]) {
      const cause = Object.assign(new Error("database is not accepting commands"), {
        ...{ severity: "ERROR", code: "54000", routine },
      });
      const { message, reason } = SqlFailure.explain(cause, "the database");
      assert.strictEqual(reason, "read_only");
      assert.match(message, /^the database accepts no writes: its server has no transaction ids left/);
    }
  });

  it.live(
    "a disk that was full has room once a probing row as long as a run's fits, and the probe is rolled back",
    () =>
      Effect.gen(function* () {
        const address = yield* Databases.empty;
        const admin = yield* Databases.client(address, "operator");
        const recorder = yield* Databases.open({ address });
        const probe = recorder.probe ?? Effect.void;
        yield* recorder.write("r", [E.begun("r")]);
        yield* admin.unsafe(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$`);
        yield* admin`CREATE TRIGGER refuse BEFORE INSERT ON stream_recovery_runs EXECUTE FUNCTION refuse()`;
        assert.strictEqual((yield* Effect.flip(recorder.write("s", [E.begun("s")]))).reason, "disk_full");
        // A change of existing rows has room, and proves nothing about new rows.
        yield* recorder.write("r", [E.attempt(1)]);
        assert.strictEqual((yield* Effect.flip(probe)).reason, "disk_full");
        yield* admin`DROP TRIGGER refuse ON stream_recovery_runs`;
        yield* probe;
        assert.deepStrictEqual(yield* admin`SELECT run_id FROM stream_recovery_runs`, [{ run_id: "r" }]);
        yield* recorder.write("s", [E.begun("s")]);
      }).pipe(Effect.scoped),
  );

  it.live("a group of writes that took too long fails as one, because each alone would take as long again", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      const recorder = yield* Databases.open({ address });
      yield* admin`CREATE SEQUENCE tried`;
      yield* admin.unsafe(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM nextval('tried'); RAISE EXCEPTION 'too long' USING ERRCODE = '57014'; END $$`);
      yield* admin`CREATE TRIGGER refuse BEFORE INSERT ON stream_recovery_runs EXECUTE FUNCTION refuse()`;
      const ids = Array.from({ length: 50 }, (_, index) => `r${index}`);
      yield* Effect.forEach(ids, (id) => Effect.flip(recorder.write(id, [E.begun(id)])), { concurrency: "unbounded" });
      const [tried] = yield* admin<{ readonly times: string }>`SELECT last_value AS times FROM tried`;
      assert.isBelow(Number(tried?.times), 10);
    }).pipe(Effect.scoped),
  );

  it.live("a read-only role reads, and a write reports the right that it lacks", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      yield* Effect.flatMap(Databases.open({ address }), (it) => it.write("r", [E.begun("r")])).pipe(Effect.scoped);
      const role = `reader_${process.pid}`;
      yield* admin.unsafe(`CREATE ROLE ${role} LOGIN`);
      yield* admin.unsafe(`GRANT USAGE ON SCHEMA ${Databases.schemaOf(address)} TO ${role}`);
      yield* admin.unsafe(`GRANT SELECT ON ALL TABLES IN SCHEMA ${Databases.schemaOf(address)} TO ${role}`);
      const recorder = yield* Databases.open({ address: address.replace("user=postgres", `user=${role}`) });
      assert.strictEqual((yield* record(recorder, "r")).state, "live");
      const error = yield* Effect.flip(recorder.write("s", [E.begun("s")]));
      assert.deepInclude(error, { reason: "read_only" });
      assert.match(error.message, /docs\/postgres\.md lists the rights/);
    }).pipe(Effect.scoped),
  );

  it.live("a role with the rights of docs/postgres.md can do everything that a gateway does", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      yield* Effect.scoped(Databases.open({ address }));
      const [role, schema] = [`least_${process.pid}`, Databases.schemaOf(address)];
      yield* admin.unsafe(`CREATE ROLE ${role} LOGIN`);
      yield* admin.unsafe(`GRANT USAGE ON SCHEMA ${schema} TO ${role}`);
      yield* admin.unsafe(`GRANT SELECT, INSERT, UPDATE, DELETE ON stream_recovery_leases, stream_recovery_runs,
        stream_recovery_incidents, stream_recovery_questions, stream_recovery_parts TO ${role}`);
      yield* admin.unsafe(`GRANT SELECT ON stream_recovery_shelves TO ${role}`);
      yield* admin.unsafe(`GRANT SELECT, UPDATE ON stream_recovery_meta TO ${role}`);
      const recorder = yield* Databases.open({ address: address.replace("user=postgres", `user=${role}`) });
      yield* recorder.write("r", E.life("r"));
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded(E.life("r")));
      yield* recorder.probe ?? Effect.void;
      yield* recorder.write("s", [E.begun("s"), { _tag: "RunParked", reason: "interrupted" }]);
      yield* recorder.claim("s");
      yield* recorder.release("s");
      assert.strictEqual((yield* recorder.orphans()).length, 1);
      assert.strictEqual(yield* recorder.prune({ keep: 0 }), 1);
    }).pipe(Effect.scoped),
  );

  it.live("a missing or inaccessible database is reported when it is opened, without any part of the password", () =>
    Effect.gen(function* () {
      const address = yield* Databases.empty;
      const admin = yield* Databases.client(address, "operator");
      const role = `full_${process.pid}`;
      yield* admin.unsafe(`CREATE ROLE ${role} LOGIN CONNECTION LIMIT 0`);
      const cases = [
        [address.replace("/postgres?", "/nothing?"), /has no such database or schema/],
        [address.replace("user=postgres", "user=nobody"), /refuses this program's role/],
        [address.replace("user=postgres", `user=${role}`), /max_connections/],
        [address.replace("/postgres?", "/postgres?port=1&"), /cannot be reached/],
        [`${address}&sslmode=verify-full`, /its server does not support TLS/],
        [`${address}&sslmode=verify-full&sslrootcert=/none/there.pem`, /ENOENT.*there\.pem/],
      ] as const;
      for (const [wrong, words] of cases) {
        const error = yield* Effect.flip(Effect.scoped(Databases.open({ address: wrong, lockWaitMs: 40 })));
        assert.match(error.message, words, wrong);
        assert.notInclude(error.message, "secret");
      }
    }).pipe(Effect.scoped),
  );
});
