import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { ConfigProvider, Effect, Exit, Fiber, Layer, Schema, Scope } from "effect";
import { TestClock } from "effect/testing";
import { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import { schemaVersion } from "../../../src/recorder/sql/SqlSchema.ts";
import { defaultFile } from "../../../src/recorder/sql/sqlite/SqlFile.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const change = (file: string, sql: string): void => {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
};

describe("the file of the SQL recorder", () => {
  it("has the configured path, or is in the user's state folder", () => {
    const at = (env: Record<string, string>, platform: NodeJS.Platform = "linux") => defaultFile(env, platform);
    assert.strictEqual(at({ STREAM_RECOVERY_DB: "/data/x.db", XDG_STATE_HOME: "/state" }), "/data/x.db");
    assert.strictEqual(at({ XDG_STATE_HOME: "/state" }), "/state/stream-recovery/runs.db");
    const fallback = join(homedir(), ".local", "state", "stream-recovery", "runs.db");
    assert.strictEqual(at({}), fallback);
    assert.strictEqual(at({ XDG_STATE_HOME: "", STREAM_RECOVERY_DB: "" }, "darwin"), fallback);
    assert.include(at({ LOCALAPPDATA: "C:\\Local", XDG_STATE_HOME: "/state" }, "win32"), "C:\\Local");
  });

  it.effect("is read from the program's ConfigProvider", () =>
    Effect.gen(function* () {
      const file = join(yield* Folder.folder, "runs.db");
      const open = (name: string) =>
        Layer.build(SqlRunRecorder.layerFile()).pipe(
          Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ STREAM_RECOVERY_DB: name }))),
        );
      yield* open(file);
      assert.isTrue(existsSync(file));
      const error = yield* Effect.flip(open("postgres://server/runs"));
      assert.match(error.message, /^\$STREAM_RECOVERY_DB: expected a file/);
    }),
  );

  it.effect("is readable only by its owner, with its journal and its folder", () =>
    Effect.gen(function* () {
      const file = join(yield* Folder.folder, "state", "deep", "runs.db");
      const recorder = yield* Folder.open({ file });
      yield* recorder.write("r", [E.begun("r")]);
      const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
      assert.strictEqual(mode(join(file, "..")), "700");
      for (const more of ["", "-wal", "-shm"]) assert.strictEqual(mode(`${file}${more}`), "600", more);
    }),
  );

  it.effect("keeps everything when it is opened again, including its key for digests", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const scope = yield* Scope.make();
      const first = yield* Scope.provide(Folder.open({ file }), scope);
      yield* first.write("r", E.life("r"));
      const digest = yield* first.digest("x");
      yield* Scope.close(scope, Exit.void);
      const second = yield* Folder.open({ file });
      assert.deepStrictEqual(yield* record(second, "r"), E.folded(E.life("r")));
      assert.strictEqual(yield* second.digest("x"), digest);
      assert.notStrictEqual(yield* (yield* Folder.open({ file: yield* Folder.emptyPath })).digest("x"), digest);
    }),
  );

  it.effect("of a newer schema is refused with both versions, and not changed", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      yield* Effect.scoped(Folder.open({ file }));
      change(
        file,
        "UPDATE stream_recovery_meta SET value = '99' WHERE name = 'schema_version'; PRAGMA wal_checkpoint(TRUNCATE)",
      );
      const before = readFileSync(file);
      const error = yield* Effect.flip(Effect.scoped(Folder.open({ file })));
      assert.deepInclude(error, { _tag: "RecorderError", reason: "newer_schema" });
      assert.match(error.message, new RegExp(`schema version 99.*version ${schemaVersion}.*Update this program`));
      assert.include(error.message, file);
      assert.deepStrictEqual(readFileSync(file), before);
    }),
  );

  it.effect("that belongs to another program is refused, and nothing is added to it", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      change(file, "CREATE TABLE bookmarks (url TEXT)");
      const error = yield* Effect.flip(Folder.open({ file }));
      assert.deepInclude(error, { reason: "corrupt" });
      assert.match(error.message, /another program.*bookmarks/);
      const database = new DatabaseSync(file);
      assert.deepStrictEqual(
        database
          .prepare("SELECT name FROM sqlite_master")
          .all()
          .map((row) => row.name),
        ["bookmarks"],
      );
      database.close();
    }),
  );

  it.effect("may be an existing empty one", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      writeFileSync(file, "");
      const recorder = yield* Folder.open({ file });
      yield* recorder.write("r", [E.begun("r")]);
      assert.strictEqual((yield* recorder.runs()).length, 1);
    }),
  );
});

/** A file of the first version: its tables have no prefix, and its process was killed. */
const firstFile = Effect.map(Folder.emptyPath, (file) => {
  change(file, readFileSync(new URL("../../fixtures/sql-first-schema.sql", import.meta.url), "utf8"));
  return file;
});

/** A run as the first version has stored it, with its parts in separate rows. */
const inFirst = (file: string, runId: string): RunRecord => {
  const database = new DatabaseSync(file, { readOnly: true });
  const parts = (sql: string) =>
    database
      .prepare(sql)
      .all(runId)
      .map(({ part }): unknown => JSON.parse(String(part)));
  const [stored] = parts("SELECT record AS part FROM runs WHERE run_id = ?");
  const incidents = parts("SELECT incident AS part FROM incidents WHERE run_id = ? ORDER BY n");
  const questions = parts("SELECT question AS part FROM questions WHERE run_id = ? ORDER BY n");
  database.close();
  return Schema.decodeUnknownSync(RunRecord)(Object.assign({}, stored, { incidents, questions }));
};

const tablesOf = (file: string): ReadonlyArray<unknown> => {
  const database = new DatabaseSync(file);
  const names = database.prepare("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name").all();
  database.close();
  return names.map((row) => row.name);
};

describe("a file of the first version", () => {
  it.effect("is upgraded in place, with every run, its parts and the key for digests", () =>
    Effect.gen(function* () {
      const file = yield* firstFile;
      const before = ["whole", "driven", "asks", "left"].map((runId) => inFirst(file, runId));
      const recorder = yield* Folder.open({ file });
      for (const it of before) assert.deepStrictEqual(yield* record(recorder, it.run_id), it);
      const all = (yield* recorder.runs()).map(({ run_id }) => run_id);
      assert.deepStrictEqual(all, ["left", "asks", "driven", "whole"]);
      assert.strictEqual(
        yield* recorder.digest("x"),
        "448ac2da526acf70a4082b997aac1021aed9931fb6be51d40dc2e4b879c36f31",
      );
      assert.deepStrictEqual(tablesOf(file), tablesOf(yield* opened));
      assert.strictEqual(rows(file, "stream_recovery_runs"), 4);
      yield* recorder.answer({ run_id: "asks", revision: 1, choice: "retry", by: "person" });
      yield* recorder.claim("asks");
      yield* recorder.write("new", [E.begun("new"), E.ended()]);
      assert.strictEqual(yield* recorder.prune({ keep: 0 }), 2);
      assert.strictEqual(rows(file, "stream_recovery_incidents"), 1);
    }),
  );

  it.effect("abandons the runs of its dead process after a watch of one lease", () =>
    Effect.gen(function* () {
      const recorder = yield* Folder.open({ file: yield* firstFile });
      const orphans = yield* Effect.forkChild(recorder.orphans(), { startImmediately: true });
      yield* TestClock.adjust("14 seconds");
      assert.isUndefined(orphans.pollUnsafe());
      yield* TestClock.adjust("4 seconds");
      assert.deepStrictEqual(
        (yield* Fiber.join(orphans)).map(({ run_id }) => run_id),
        ["driven", "left"],
      );
      yield* recorder.claim("driven");
    }),
  );

  it.live("is upgraded once, however many processes open it at once, and with any prefix", () =>
    Effect.gen(function* () {
      const file = yield* firstFile;
      const all = yield* Effect.forEach([1, 2, 3, 4], () => Folder.open({ file, prefix: "x_" }), {
        concurrency: "unbounded",
      });
      for (const recorder of all) assert.strictEqual((yield* recorder.runs()).length, 4);
      assert.include(tablesOf(file), "x_runs");
      assert.notInclude(tablesOf(file), "runs");
    }).pipe(Effect.scoped),
  );

  it.effect("is kept unchanged if it is read-only, and upgraded when it is writable", () =>
    Effect.gen(function* () {
      const file = yield* firstFile;
      const before = tablesOf(file);
      const other = new DatabaseSync(file);
      other.exec("BEGIN EXCLUSIVE");
      assert.strictEqual((yield* Effect.flip(Effect.scoped(Folder.open({ file, lockWaitMs: 0 })))).reason, "locked");
      other.exec("COMMIT");
      other.close();
      assert.deepStrictEqual(tablesOf(file), before);
      assert.strictEqual((yield* (yield* Folder.open({ file })).runs()).length, 4);
    }),
  );
});

const opened = Effect.gen(function* () {
  const file = yield* Folder.emptyPath;
  yield* Effect.scoped(Folder.open({ file }));
  return file;
});

describe("the automatic deletion of old runs", () => {
  it.effect("works by age and by number, at the start and every hour, in small transactions", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const scope = yield* Scope.make();
      const first = yield* Scope.provide(Folder.open({ file }), scope);
      yield* Effect.forEach(
        Array.from({ length: 600 }, (_, n) => `r${n}`),
        (id) => first.write(id, [E.begun(id), E.opened(id, 1), E.ended({ at: 1_000 })]),
        { concurrency: "unbounded" },
      );
      yield* first.write("live", [E.begun("live")]);
      yield* Scope.close(scope, Exit.void);
      // Within a minute no run is deleted by number.
      yield* TestClock.adjust(61_001);
      const kept = yield* Folder.open({ file, retention: { runs: 50, ageMs: 5_400_000 } });
      yield* until(kept.runs({ limit: 1_000 }), 51);
      yield* TestClock.adjust("1 hour");
      assert.strictEqual((yield* kept.runs({ limit: 1_000 })).length, 51);
      yield* TestClock.adjust("1 hour");
      yield* until(kept.runs({ limit: 1_000 }), 1);
      assert.strictEqual(rows(file, "stream_recovery_incidents"), 0);
    }),
  );
});

const rows = (file: string, table: string): number => {
  const database = new DatabaseSync(file);
  const [row] = database.prepare(`SELECT count(*) AS n FROM ${table}`).all();
  database.close();
  return Number(row?.n);
};

/** Lets other fibers run until `left` remain, or the test's time limit ends. */
const until = <E>(list: Effect.Effect<ReadonlyArray<unknown>, E>, left: number): Effect.Effect<void, E> =>
  Effect.flatMap(list, ({ length }) =>
    length === left ? Effect.void : Effect.andThen(Effect.yieldNow, until(list, left)),
  );
