import { assert, describe, it } from "@effect/vitest";
import { Context, Data, Effect, Layer, type Scope } from "effect";
import { BeginTransaction, SqlClient } from "effect/sql/SqlClient";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as E from "../Entries.ts";
import * as Heard from "../shared/Heard.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import { suite } from "../suite/Suite.ts";
import * as Databases from "./Databases.ts";

const clientLayer = (address: string) => Layer.effect(SqlClient, Databases.client(address, "program"));

suite(
  "SqlRunRecorder.layer over a program's own PgClient",
  Layer.unwrap(Effect.map(Databases.empty, (address) => Layer.provide(SqlRunRecorder.layer(), clientLayer(address)))),
);

interface Both {
  readonly recorder: Recorder;
  readonly sql: SqlClient;
}

interface Change {
  readonly client?: (sql: SqlClient) => Partial<SqlClient>;
  /** Statements for which the client returns no rows. */
  readonly rowless?: RegExp;
  /** Settings that its server reports. */
  readonly settings?: Readonly<Record<string, string>>;
}

const shared = (change: Change = {}, address?: string): Effect.Effect<Both, RecorderError, Scope.Scope> =>
  Effect.gen(function* () {
    const sql = yield* Databases.client(address ?? (yield* Databases.empty), "program");
    const other = changing(sql, change);
    const built = yield* Layer.build(
      Layer.fresh(SqlRunRecorder.layer({ retention: false, lockWaitMs: 500 })).pipe(
        Layer.provide(Layer.succeed(SqlClient, other)),
      ),
    );
    return { recorder: Context.get(built, RunRecorder), sql };
  });

/** The client of another driver, which deviates from the requested behaviour. */
const changing = (sql: SqlClient, { client, rowless, settings }: Change): SqlClient => {
  const call = (strings: TemplateStringsArray, ...values: Array<string>) => {
    const statement = sql(strings, ...values);
    if (settings !== undefined && /FROM pg_settings/.test(strings.join("?")))
      return Effect.succeed(Object.entries(settings).map(([name, setting]) => ({ name, setting })));
    return rowless?.test(strings.join("?")) === true ? Effect.as(statement, []) : statement;
  };
  // The declaration has overloads, which no single function can state.
  const other: SqlClient = Object.assign(call as unknown as SqlClient, sql, client?.(sql), {
    withoutTransforms: () => other,
  });
  return other;
};

class Undo extends Data.TaggedError("Undo") {}

describe("SqlRunRecorder.layer over a program's PgClient", () => {
  it.live(
    "is independent of the program's transactions: a rollback there undoes no record, and no write waits for it",
    () =>
      Effect.gen(function* () {
        const { recorder, sql } = yield* shared();
        yield* sql`CREATE TABLE distances (km INTEGER)`;
        const undone = sql.withTransaction(
          Effect.gen(function* () {
            yield* sql`INSERT INTO distances VALUES (42)`;
            yield* recorder.write("r", [E.begun("r")]);
            assert.strictEqual((yield* record(recorder, "r")).state, "live");
            return yield* new Undo();
          }),
        );
        assert.instanceOf(yield* Effect.flip(undone), Undo);
        assert.deepStrictEqual(yield* sql`SELECT * FROM distances`, []);
        assert.strictEqual((yield* record(recorder, "r")).state, "live");
      }).pipe(Effect.scoped),
  );

  it.live("refuses a client whose transactions are not those that it requests", () =>
    Effect.gen(function* () {
      const plain = (sql: SqlClient) => ({
        // Like a driver that knows only one kind of BEGIN.
        withTransaction: <R, E, A>(body: Effect.Effect<A, E, R>) =>
          sql
            .withTransaction(Effect.provideService(body, BeginTransaction, undefined))
            .pipe(Effect.provideService(BeginTransaction, undefined)),
      });
      const { recorder } = yield* shared({ client: plain });
      const error = yield* Effect.flip(recorder.write("r", [E.begun("r")]));
      assert.deepInclude(error, { reason: "bad_option" });
      assert.match(error.message, /read committed, but the recorder needs serializable.*Use PgClient/);
    }).pipe(Effect.scoped),
  );

  it.live("refuses a client that does not say what a statement has changed", () =>
    Effect.gen(function* () {
      const { recorder } = yield* shared({ rowless: /\bRETURNING\b/ });
      const error = yield* Effect.flip(recorder.write("r", [E.begun("r")]));
      assert.deepInclude(error, { reason: "bad_option" });
      assert.match(error.message, /returns no rows for a statement with RETURNING/);
      assert.isUndefined(yield* recorder.run("r"));
    }).pipe(Effect.scoped),
  );

  it.live(
    "refuses a server that is too old, or that does not report its version, before it creates a table there",
    () =>
      Effect.gen(function* () {
        for (const [settings, words] of [
          [{ server_version_num: "120022" }, /version 12, but the recorder needs PostgreSQL 13 or newer$/],
          [{}, /no known version, but the recorder needs PostgreSQL 13 or newer$/],
        ] as const) {
          const address = yield* Databases.empty;
          const error = yield* Effect.flip(Effect.scoped(shared({ settings }, address)));
          assert.deepInclude(error, { reason: "bad_option" });
          assert.match(error.message, words);
          const tables = yield* (yield* Databases.client(address))`SELECT 1 FROM pg_tables
          WHERE schemaname = ${Databases.schemaOf(address)}`;
          assert.lengthOf(tables, 0);
        }
        yield* shared({ settings: { server_version_num: "130000" } });
      }).pipe(Effect.scoped),
  );

  it.live(
    "reports that its server acknowledges what is not on its disk, and sets no limits on the program's connections",
    () =>
      Effect.gen(function* () {
        const { log, said } = Heard.heard();
        const opened = (settings: Readonly<Record<string, string>>) =>
          Effect.provide(shared({ settings: { server_version_num: "150000", ...settings } }), log);
        yield* opened({ synchronous_commit: "on", lock_timeout: "0" });
        yield* opened({ synchronous_commit: "local" });
        assert.deepStrictEqual(said, []);
        const { recorder } = yield* opened({ synchronous_commit: "off" });
        yield* recorder.write("r", E.life("r"));
        assert.lengthOf(said, 1);
        assert.match(
          said[0] ?? "",
          /the database of runs acknowledges writes before they are on disk \(synchronous_commit is off\)/,
        );
      }).pipe(Effect.scoped),
  );
});
