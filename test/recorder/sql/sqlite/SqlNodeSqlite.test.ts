import { spawnSync } from "node:child_process";
import { assert, describe, it } from "@effect/vitest";
import { Data, Deferred, Effect, Exit, Fiber, Stream } from "effect";
import { SqlClient } from "effect/sql/SqlClient";
import * as SqlNodeSqlite from "../../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts";

class Undo extends Data.TaggedError("Undo") {}

const provided = <A, E>(effect: Effect.Effect<A, E, SqlClient>) =>
  Effect.provide(effect, SqlNodeSqlite.layer({ file: ":memory:" }));

describe("the driver over node:sqlite", () => {
  it.effect("returns rows, values, raw results and streams", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient;
      yield* sql`CREATE TABLE t (a TEXT, b INTEGER)`;
      yield* sql`INSERT INTO t ${sql.insert([
        { a: "x", b: 1 },
        { a: "y", b: 2 },
      ])}`;
      const rows = yield* sql<{ a: string; b: number }>`SELECT a, b FROM t ORDER BY b`;
      assert.deepStrictEqual(
        rows.map((row) => ({ ...row })),
        [
          { a: "x", b: 1 },
          { a: "y", b: 2 },
        ],
      );
      assert.deepStrictEqual(yield* sql`SELECT a, b FROM t ORDER BY b`.values, [
        ["x", 1],
        ["y", 2],
      ]);
      assert.strictEqual((yield* Stream.runCollect(sql`SELECT a FROM t`.stream)).length, 2);
      assert.deepInclude(yield* sql`DELETE FROM t`.raw, { changes: 2 });
    }).pipe(provided),
  );

  it.effect("rolls a failed transaction back and keeps the savepoint of a nested one", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient;
      yield* sql`CREATE TABLE t (a INTEGER PRIMARY KEY)`;
      const failed = sql.withTransaction(Effect.andThen(sql`INSERT INTO t VALUES (1)`, Effect.fail("no" as const)));
      assert.deepStrictEqual(yield* Effect.exit(failed), Exit.fail("no" as const));
      yield* sql.withTransaction(
        Effect.andThen(
          sql`INSERT INTO t VALUES (2)`,
          Effect.exit(sql.withTransaction(Effect.andThen(sql`INSERT INTO t VALUES (3)`, Effect.fail("no")))),
        ),
      );
      assert.deepStrictEqual(yield* sql`SELECT a FROM t`.values, [[2]]);
    }).pipe(provided),
  );

  it.effect("classifies SQLite's errors like Effect", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient;
      yield* sql`CREATE TABLE t (a TEXT UNIQUE)`;
      yield* sql`INSERT INTO t VALUES ('x')`;
      const error = yield* Effect.flip(sql`INSERT INTO t VALUES ('x')`);
      assert.strictEqual(error.reason._tag, "UniqueViolation");
    }).pipe(provided),
  );

  it.effect("a transaction in one step is undone if its body fails or dies, or its commit is refused", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient;
      const transact = SqlNodeSqlite.transactionOf(sql);
      yield* sql`CREATE TABLE t (a INTEGER PRIMARY KEY)`;
      yield* sql`CREATE TABLE u (a INTEGER REFERENCES t (a) DEFERRABLE INITIALLY DEFERRED)`;
      const insert = sql`INSERT INTO t VALUES (1)`;
      assert.instanceOf(yield* Effect.flip(transact(Effect.andThen(insert, Effect.fail(new Undo())))), Undo);
      assert.isTrue(Exit.hasDies(yield* Effect.exit(transact(Effect.andThen(insert, Effect.die("no"))))));
      const refused = yield* Effect.flip(transact(Effect.andThen(sql`INSERT INTO u VALUES (9)`, insert)));
      assert.strictEqual(refused.reason._tag, "ConstraintError");
      assert.strictEqual(yield* transact(Effect.as(sql`INSERT INTO t VALUES (2)`, "done")), "done");
      assert.deepStrictEqual(yield* sql`SELECT a FROM t`.values, [[2]]);
      assert.deepStrictEqual(yield* sql`SELECT a FROM u`.values, []);
    }).pipe(provided),
  );

  it.effect(
    "a lock blocks the thread briefly for a program's statement, and not at all for a store's, which waits asynchronously",
    () =>
      Effect.gen(function* () {
        const asked = Effect.flatMap(SqlClient, (sql) => sql<{ timeout: number }>`PRAGMA busy_timeout`);
        const timeout = (layer: typeof SqlNodeSqlite.layer) =>
          Effect.map(Effect.provide(asked, layer({ file: ":memory:" })), ([row]) => row?.timeout ?? Number.NaN);
        assert.isAbove(yield* timeout(SqlNodeSqlite.layer), 0);
        assert.strictEqual(yield* timeout(SqlNodeSqlite.layerOfStore), 0);
      }),
  );

  it.effect("a transaction in one step waits for the open transaction of another fiber and is independent of it", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient;
      yield* sql`CREATE TABLE t (a INTEGER PRIMARY KEY)`;
      const [begun, over] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()];
      const other = sql`INSERT INTO t VALUES (1)`.pipe(
        Effect.andThen(Deferred.succeed(begun, undefined)),
        Effect.andThen(Deferred.await(over)),
        Effect.andThen(Effect.fail(new Undo())),
        sql.withTransaction,
        Effect.flip,
      );
      const first = yield* Effect.forkChild(other);
      yield* Deferred.await(begun);
      const second = yield* Effect.forkChild(SqlNodeSqlite.transactionOf(sql)(sql`INSERT INTO t VALUES (2)`), {
        startImmediately: true,
      });
      assert.isUndefined(second.pollUnsafe());
      yield* Deferred.succeed(over, undefined);
      assert.instanceOf(yield* Fiber.join(first), Undo);
      yield* Fiber.join(second);
      assert.deepStrictEqual(yield* sql`SELECT a FROM t`.values, [[2]]);
    }).pipe(provided),
  );

  it("prints no warning in a Node in which SQLite is experimental, and lets other warnings through", () => {
    const driver = new URL("../../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts", import.meta.url).href;
    const program = `
      const load = process.getBuiltinModule;
      process.getBuiltinModule = (name) => {
        if (name === "node:sqlite") {
          process.emitWarning("SQLite is an experimental feature and might change at any time", "ExperimentalWarning");
          process.emitWarning("another feature is experimental", "ExperimentalWarning");
        }
        return load(name);
      };
      const { layer } = await import(${JSON.stringify(driver)});
      const { Effect } = await import("effect");
      const { SqlClient } = await import("effect/sql/SqlClient");
      const one = Effect.flatMap(SqlClient, (sql) => sql\`SELECT 1 AS one\`);
      console.log(JSON.stringify(await Effect.runPromise(Effect.provide(one, layer({ file: ":memory:" })))));
      process.emitWarning("SQLite of somebody else", "ExperimentalWarning");
    `;
    const cwd = new URL("../../../..", import.meta.url);
    const ran = spawnSync(process.execPath, ["--input-type=module", "-e", program], { cwd, encoding: "utf8" });
    assert.strictEqual(ran.stdout.trim(), '[{"one":1}]', ran.stderr);
    assert.notInclude(ran.stderr, "SQLite is an experimental feature");
    assert.include(ran.stderr, "another feature is experimental");
    assert.include(ran.stderr, "SQLite of somebody else");
  });
});
