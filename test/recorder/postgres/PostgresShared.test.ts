import { assert, describe, it } from "@effect/vitest";
import { Context, Data, Effect, Layer, type Scope } from "effect";
import { BeginTransaction, SqlClient } from "effect/sql/SqlClient";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as E from "../Entries.ts";
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
  /** The client gives no rows of what this fits. */
  readonly rowless?: RegExp;
}

const shared = (change: Change = {}): Effect.Effect<Both, RecorderError, Scope.Scope> =>
  Effect.gen(function* () {
    const sql = yield* Databases.client(yield* Databases.empty, "program");
    const other = changing(sql, change);
    const built = yield* Layer.build(
      Layer.fresh(SqlRunRecorder.layer({ retention: false, lockWaitMs: 500 })).pipe(
        Layer.provide(Layer.succeed(SqlClient, other)),
      ),
    );
    return { recorder: Context.get(built, RunRecorder), sql };
  });

/** The client of another driver, which does something else than is asked of it. */
const changing = (sql: SqlClient, { client, rowless }: Change): SqlClient => {
  const call = (strings: TemplateStringsArray, ...values: Array<string>) => {
    const statement = sql(strings, ...values);
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
    "is not part of the program's transactions: what is undone there stays on record, and no write waits for it",
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

  it.live("refuses a client whose transactions are not those that it asks for", () =>
    Effect.gen(function* () {
      const plain = (sql: SqlClient) => ({
        // As a driver has it that knows one kind of BEGIN only.
        withTransaction: <R, E, A>(body: Effect.Effect<A, E, R>) =>
          sql
            .withTransaction(Effect.provideService(body, BeginTransaction, undefined))
            .pipe(Effect.provideService(BeginTransaction, undefined)),
      });
      const { recorder } = yield* shared({ client: plain });
      const error = yield* Effect.flip(recorder.write("r", [E.begun("r")]));
      assert.deepInclude(error, { reason: "bad_option" });
      assert.match(error.message, /read committed where serializable was asked for.*Use PgClient/);
    }).pipe(Effect.scoped),
  );

  it.live("refuses a client that does not say what a statement has changed", () =>
    Effect.gen(function* () {
      const { recorder } = yield* shared({ rowless: /\bRETURNING\b/ });
      const error = yield* Effect.flip(recorder.write("r", [E.begun("r")]));
      assert.deepInclude(error, { reason: "bad_option" });
      assert.match(error.message, /gives no rows of a statement with RETURNING/);
      assert.isUndefined(yield* recorder.run("r"));
    }).pipe(Effect.scoped),
  );
});
