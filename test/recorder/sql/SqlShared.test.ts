import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Context, Data, Effect, Layer, type Scope, Stream } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import * as SqlClients from "effect/sql/SqlClient";
import * as Observation from "../../../src/domain/Observation.ts";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder, type SqlRunRecorderOptions } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as SqlNodeSqlite from "../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import { suite } from "../suite/Suite.ts";
import * as Folder from "./SqlFolder.ts";

/** A program's own database: tables with our names and another meaning, its migrations, its versions. */
const program = `PRAGMA user_version = 7; PRAGMA application_id = 42;
  CREATE TABLE runs (id INTEGER PRIMARY KEY, distance REAL);
  CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
  CREATE TABLE effect_sql_migrations (migration_id INTEGER PRIMARY KEY, name TEXT);
  CREATE INDEX runs_open ON runs (distance);
  INSERT INTO runs (distance) VALUES (42.2);
  INSERT INTO meta VALUES ('schema_version', '12');
  INSERT INTO effect_sql_migrations VALUES (1, 'init');`;

const programFile: Effect.Effect<string, never, Scope.Scope> = Effect.map(Folder.emptyPath, (file) => {
  const database = new DatabaseSync(file);
  database.exec(program);
  database.close();
  return file;
});

/** Everything in a database that is not the recorder's, read from its file. */
const ofProgram = (file: string, prefix = "stream_recovery_") => {
  const database = new DatabaseSync(file, { readOnly: true });
  const of = (sql: string) => database.prepare(sql).all();
  const found = [
    of(`SELECT name, sql FROM sqlite_master WHERE substr(tbl_name, 1, ${prefix.length}) <> '${prefix}'
      AND name NOT LIKE 'sqlite_%' ORDER BY name`),
    of("PRAGMA user_version"),
    of("PRAGMA application_id"),
    ...["runs", "meta", "effect_sql_migrations"].map((table) => of(`SELECT * FROM ${table}`)),
  ];
  database.close();
  return found;
};

class Undo extends Data.TaggedError("Undo") {}

interface Both {
  readonly recorder: Recorder;
  readonly sql: SqlClient;
}

const shared = (
  options: SqlRunRecorderOptions & { readonly file: string },
): Effect.Effect<Both, RecorderError, Scope.Scope> =>
  Effect.gen(function* () {
    const client = SqlNodeSqlite.layer({ file: options.file, synchronous: "normal" });
    const layer = Layer.provideMerge(SqlRunRecorder.layer({ retention: false, ...options }), client);
    const both = yield* Layer.build(Layer.fresh(layer));
    return { recorder: Context.get(both, RunRecorder), sql: Context.get(both, SqlClients.SqlClient) };
  });

const inProgram = (options: SqlRunRecorderOptions) =>
  Layer.unwrap(
    Effect.map(programFile, (file) =>
      Layer.provide(SqlRunRecorder.layer(options), SqlNodeSqlite.layer({ file, synchronous: "normal" })),
    ),
  );

suite("SqlRunRecorder.layer beside a program's tables", inProgram({ prefix: "agent_1_" }));

describe("SqlRunRecorder.layer in a program's own database", () => {
  it.effect("leaves tables, indexes, migrations and versions of the program unchanged", () =>
    Effect.gen(function* () {
      const file = yield* programFile;
      const before = ofProgram(file);
      const { recorder } = yield* shared({ file });
      yield* recorder.write("r", E.life("r"));
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded(E.life("r")));
      assert.strictEqual(yield* recorder.prune({ keep: 0 }), 1);
      assert.deepStrictEqual(ofProgram(file), before);
      // The command line finds it, too, because it looks for the default prefix.
      yield* recorder.write("r2", E.life("r2"));
      const other = yield* Folder.open({ file });
      assert.deepStrictEqual(yield* record(other, "r2"), E.folded(E.life("r2")));
    }),
  );

  it.effect("separates stores with different prefixes", () =>
    Effect.gen(function* () {
      const file = yield* programFile;
      const [one, two] = [yield* shared({ file, prefix: "a_" }), yield* shared({ file, prefix: "b_" })];
      yield* one.recorder.write("r", [E.begun("r")]);
      yield* two.recorder.write("r", [E.begun("r"), E.attempt(1)]);
      assert.strictEqual((yield* record(one.recorder, "r")).attempts.length, 0);
      assert.strictEqual((yield* record(two.recorder, "r")).attempts.length, 1);
      assert.notStrictEqual(yield* one.recorder.digest("x"), yield* two.recorder.digest("x"));
    }),
  );

  it.effect("a prefix that cannot be part of a name is refused, and nothing is created", () =>
    Effect.gen(function* () {
      const file = yield* programFile;
      const names = ["", "A_", "1a", "a-b", "a b", "a;DROP TABLE runs;--", "é_", "sqlite_x_", "pg_", "a".repeat(41)];
      for (const prefix of names) {
        const error = yield* Effect.flip(Effect.scoped(shared({ file, prefix })));
        assert.strictEqual(error.reason, "bad_option", prefix);
        assert.match(error.message, /^prefix: expected 1 to 40 of a-z, 0-9 and _/);
      }
      const longest = "a".repeat(40);
      const { recorder } = yield* shared({ file, prefix: longest });
      yield* recorder.write("r", [E.begun("r")]);
    }),
  );

  it.effect("its client need not enforce foreign keys", () =>
    Effect.gen(function* () {
      const { recorder, sql } = yield* shared({ file: yield* programFile });
      yield* sql`PRAGMA foreign_keys = OFF`;
      yield* recorder.write("r", E.life("r"));
      yield* recorder.prune({ keep: 0 });
      // A run with the same id finds nothing of the previous one.
      yield* recorder.write("r", [E.begun("r")]);
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded([E.begun("r")]));
    }),
  );
});

describe("SqlRunRecorder.layer and transactions of its program (L11)", () => {
  it.live("a write inside of one fails at once with a message; reads work, and writes after it do", () =>
    Effect.gen(function* () {
      const { recorder, sql } = yield* shared({ file: yield* programFile, lockWaitMs: 600_000 });
      yield* recorder.write("old", [E.begun("old"), { _tag: "RunParked", reason: "interrupted" }]);
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`INSERT INTO runs (distance) VALUES (1)`;
          const writes = {
            write: recorder.write("r", [E.begun("r")]),
            claim: recorder.claim("old"),
            orphans: recorder.orphans(),
            answer: recorder.answer({ run_id: "old", revision: 1, choice: "stop", by: "person" }),
          };
          for (const [name, write] of Object.entries(writes)) {
            const error = yield* Effect.flip(write as Effect.Effect<unknown, RecorderError>);
            assert.deepInclude(error, { reason: "locked" }, name);
            assert.match(error.message, /inside a transaction of this program.*Run the stream outside/, name);
          }
          assert.strictEqual((yield* record(recorder, "old")).state, "parked");
          assert.strictEqual((yield* recorder.runs()).length, 1);
          assert.strictEqual((yield* recorder.orphans(1, { waits: false })).length, 1);
        }),
      );
      yield* recorder.write("r", [E.begun("r")]);
      yield* recorder.claim("old");
    }).pipe(Effect.scoped),
  );

  it.live("a write beside one waits for its end, is independent of it, and fails if it lasts", () =>
    Effect.gen(function* () {
      const { recorder, sql } = yield* shared({ file: yield* programFile, lockWaitMs: 200 });
      const apart = (effect: Effect.Effect<void, RecorderError>) =>
        Effect.updateContext(effect, (it: Context.Context<never>) => Context.omit(sql.transactionService)(it));
      const write = (id: string) => apart(recorder.write(id, [E.begun(id)]));
      const undone = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`INSERT INTO runs (distance) VALUES (1)`;
          const error = yield* Effect.flip(write("r"));
          assert.strictEqual(error.reason, "locked");
          return yield* new Undo();
        }),
      );
      assert.instanceOf(yield* Effect.flip(undone), Undo);
      yield* write("r");
      assert.strictEqual((yield* recorder.runs()).length, 1);
      assert.strictEqual((yield* sql`SELECT * FROM runs`).length, 1);
    }).pipe(Effect.scoped),
  );

  it.live("a fiber that outlives the transaction in which it was forked writes after that", () =>
    Effect.gen(function* () {
      const { recorder, sql } = yield* shared({ file: yield* programFile });
      const late = yield* sql.withTransaction(
        Effect.map(Effect.context<never>(), (inside) =>
          Effect.provideContext(Effect.andThen(recorder.write("r", [E.begun("r")]), recorder.claim("r")), inside),
        ),
      );
      assert.strictEqual((yield* Effect.flip(late)).reason, "owned");
      assert.strictEqual((yield* record(recorder, "r")).state, "live");
    }).pipe(Effect.scoped),
  );

  it.live("a whole run inside one returns, unrecorded, and can be left at any moment", () =>
    Effect.gen(function* () {
      const layer = StreamProcessor.layer.pipe(
        Layer.provideMerge(UserDecisions.layerHeadless()),
        Layer.provideMerge(SqlRunRecorder.layer({ retention: false, lockWaitMs: 600_000 })),
        Layer.provideMerge(SqlNodeSqlite.layer({ file: yield* programFile })),
      );
      yield* Effect.gen(function* () {
        const sql = yield* SqlClients.SqlClient;
        const processor = yield* StreamProcessor;
        const run = processor.run({
          runId: "r",
          provider: { id: "scripted" },
          tools: [],
          attempt: () => Stream.make(Observation.text(1), Observation.terminal("stop")),
          observe: (part: Observation.Observation) => part,
        });
        yield* Effect.exit(sql.withTransaction(Effect.timeout(Stream.runDrain(run), "5 seconds")));
      }).pipe(Effect.provide(Layer.fresh(layer)));
    }).pipe(Effect.scoped),
  );
});
