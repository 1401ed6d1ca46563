import { readFileSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Scope } from "effect";
import { TestClock } from "effect/testing";
import { defaultFile } from "../../src/recorder/SqlFile.ts";
import { schemaVersion } from "../../src/recorder/SqlSchema.ts";
import * as E from "./Entries.ts";
import { record } from "./RecorderBench.ts";
import * as Folder from "./SqlFolder.ts";

const change = (file: string, sql: string): void => {
  const database = new DatabaseSync(file);
  database.exec(sql);
  database.close();
};

describe("the file of the SQL recorder", () => {
  it("stands where it is named, else in the user's state folder", () => {
    const at = (env: Record<string, string>, platform: NodeJS.Platform = "linux") => defaultFile(env, platform);
    assert.strictEqual(at({ STREAM_RECOVERY_DB: "/data/x.db", XDG_STATE_HOME: "/state" }), "/data/x.db");
    assert.strictEqual(at({ XDG_STATE_HOME: "/state" }), "/state/stream-recovery/runs.db");
    const fallback = join(homedir(), ".local", "state", "stream-recovery", "runs.db");
    assert.strictEqual(at({}), fallback);
    assert.strictEqual(at({ XDG_STATE_HOME: "", STREAM_RECOVERY_DB: "" }, "darwin"), fallback);
    assert.include(at({ LOCALAPPDATA: "C:\\Local", XDG_STATE_HOME: "/state" }, "win32"), "C:\\Local");
  });

  it.effect("is readable by its owner only, with its journal and its folder", () =>
    Effect.gen(function* () {
      const file = join(yield* Folder.folder, "state", "deep", "runs.db");
      const recorder = yield* Folder.open({ file });
      yield* recorder.write("r", [E.begun("r")]);
      const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
      assert.strictEqual(mode(join(file, "..")), "700");
      for (const more of ["", "-wal", "-shm"]) assert.strictEqual(mode(`${file}${more}`), "600", more);
    }),
  );

  it.effect("keeps everything when it is opened again, its key for digests too", () =>
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

  it.effect("of a newer schema is refused with both versions, and not touched", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      yield* Effect.scoped(Folder.open({ file }));
      change(file, "UPDATE meta SET value = '99' WHERE name = 'schema_version'; PRAGMA wal_checkpoint(TRUNCATE)");
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

  it.effect("may be an empty one that was there before", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      writeFileSync(file, "");
      const recorder = yield* Folder.open({ file });
      yield* recorder.write("r", [E.begun("r")]);
      assert.strictEqual((yield* recorder.runs()).length, 1);
    }),
  );
});

describe("what is old is forgotten by itself", () => {
  it.effect("by age and by number, at the start and every hour, in small transactions", () =>
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
      const kept = yield* Folder.open({ file, retention: { runs: 50, ageMs: 5_400_000 } });
      yield* until(kept.runs({ limit: 1_000 }), 51);
      yield* TestClock.adjust("1 hour");
      assert.strictEqual((yield* kept.runs({ limit: 1_000 })).length, 51);
      yield* TestClock.adjust("1 hour");
      yield* until(kept.runs({ limit: 1_000 }), 1);
      assert.strictEqual(rows(file, "incidents"), 0);
    }),
  );
});

const rows = (file: string, table: string): number => {
  const database = new DatabaseSync(file);
  const [row] = database.prepare(`SELECT count(*) AS n FROM ${table}`).all();
  database.close();
  return Number(row?.n);
};

/** Lets other fibers run until so many are left; a test that waits in vain runs into its time limit. */
const until = <E>(list: Effect.Effect<ReadonlyArray<unknown>, E>, left: number): Effect.Effect<void, E> =>
  Effect.flatMap(list, ({ length }) =>
    length === left ? Effect.void : Effect.andThen(Effect.yieldNow, until(list, left)),
  );
