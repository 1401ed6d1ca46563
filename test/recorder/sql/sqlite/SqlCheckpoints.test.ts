/**
 * Checkpoints of a file in a separate thread: committed data reaches the file while its connection works, and the thread closes the
 * file before the connection does.
 */
import { type ChildProcess, fork } from "node:child_process";
import { existsSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { Effect, type Scope } from "effect";
import { SqlClient } from "effect/sql/SqlClient";
import { journalPagesMax, rowsBetween, SqlCheckpoints } from "../../../../src/recorder/sql/sqlite/SqlCheckpoints.ts";
import * as SqlNodeSqlite from "../../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts";
import { filled, smallDisk } from "../../../SmallDisk.ts";
import * as Folder from "../SqlFolder.ts";

/** Waits for an effect of a thread, however busy the machine is. */
const until = (isSo: () => boolean) =>
  Effect.promise(async () => {
    for (let times = 0; !isSo() && times < 6_000; times += 1) await pause(10);
    assert.isTrue(isSo());
  });

/** Size of each row in bytes, at least a page. */
const rowBytes = 5_000;

/** A file with a journal, like that of a store. */
const journaled = (file: string): DatabaseSync => {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (process TEXT, n INTEGER, body TEXT)");
  return database;
};

const ended = (checkpoints: SqlCheckpoints): Effect.Effect<void> => Effect.promise(async () => checkpoints.end());

const bytesOf = (length: number): string => "x".repeat(length * rowBytes);

const insert = (body: string): string => `INSERT INTO t VALUES ('test', 0, '${body}')`;

interface Committing {
  readonly process: ChildProcess;
  /** Rows that it has reported, all of which are on record. */
  rows: number;
  readonly over: Promise<string | number | null>;
}

/** Starts a process that commits rows until it must close. */
const committing = (
  file: string,
  name: string,
  options: { readonly execArgv?: ReadonlyArray<string>; readonly env?: NodeJS.ProcessEnv } = {},
): Effect.Effect<Committing, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const program = fileURLToPath(new URL("./CheckpointChild.ts", import.meta.url));
      const { env, execArgv = [] } = options;
      const child = fork(program, [file, name], {
        execArgv: ["--no-warnings", ...execArgv],
        env: { ...process.env, ...env },
      });
      const over = new Promise<string | number | null>((resolve) =>
        child.once("close", (code, signal) => resolve(signal ?? code)),
      );
      const it: Committing = { process: child, rows: 0, over };
      child.on("message", (told) => {
        if (typeof told === "object" && "rows" in told) it.rows = Number(told.rows);
      });
      return it;
    }),
    ({ over, process: child }) =>
      Effect.promise(() => {
        child.kill("SIGKILL");
        return over;
      }),
  );

const closed = (it: Committing): Effect.Effect<string | number | null> =>
  Effect.promise(() => {
    it.process.send("close");
    return it.over;
  });

describe("checkpoints in a thread", () => {
  it.live("bring what was committed into the file, and the thread has ended when the connection is closed", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const written = Effect.gen(function* () {
        const sql = yield* SqlClient;
        yield* sql`CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)`;
        const step = SqlNodeSqlite.stepOf(sql);
        // Fewer pages than a commit copies by itself, so only a thread does.
        for (let row = 0; row < rowsBetween; row += 1)
          step?.([["INSERT INTO t VALUES (?, ?)", [row, "x".repeat(rowBytes)]]]);
        yield* until(() => statSync(file).size > (rowsBetween * rowBytes) / 2);
        const pages = sql<{ readonly wal_autocheckpoint: number }>`PRAGMA wal_autocheckpoint`;
        yield* Effect.repeat(
          Effect.map(pages, ([row]) => row?.wal_autocheckpoint === journalPagesMax),
          { until: (isSet) => isSet },
        );
      });
      const layer = SqlNodeSqlite.layerOfStore({ file, synchronous: "normal" });
      yield* Effect.scoped(Effect.provide(written, layer));
      assert.deepStrictEqual(readdirSync(dirname(file)), ["runs.db"]);
      const other = new DatabaseSync(file, { readOnly: true });
      assert.deepStrictEqual({ ...other.prepare("SELECT count(*) AS rows FROM t").get() }, { rows: rowsBetween });
      other.close();
    }),
  );

  it.live("that no thread can make are left to the connection, and a file that is gone is not created again", () =>
    Effect.gen(function* () {
      const file = join(yield* Folder.folder, "gone.db");
      const copied: Array<number> = [];
      const checkpoints = new SqlCheckpoints({ file, synchronous: "full" }, (pages) => copied.push(pages));
      checkpoints.countRows(rowsBetween);
      yield* until(() => copied.length > 0);
      checkpoints.countRows(rowsBetween);
      assert.isUndefined(checkpoints.end());
      assert.deepStrictEqual(copied, [1_000]);
      assert.isFalse(existsSync(file));
    }),
  );

  it.live("end after a connection that closes while its thread starts", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const database = journaled(file);
      const checkpoints = new SqlCheckpoints({ file, synchronous: "normal" }, () => undefined);
      checkpoints.countRows(rowsBetween);
      database.close();
      yield* ended(checkpoints);
      checkpoints.countRows(rowsBetween);
      assert.isUndefined(checkpoints.end());
      assert.deepStrictEqual(readdirSync(dirname(file)), ["runs.db"]);
    }),
  );

  it.live("that a full disk refuses are left to the connection, and are repeated once there is room", () =>
    Effect.gen(function* () {
      const disk = yield* smallDisk;
      if (disk === undefined) return;
      const file = join(disk, "runs.db");
      const database = journaled(file);
      database.exec(`PRAGMA wal_autocheckpoint = 0; ${insert(bytesOf(100))}`);
      const copied: Array<number> = [];
      const checkpoints = new SqlCheckpoints({ file, synchronous: "normal" }, (pages) => copied.push(pages));
      checkpoints.countRows(rowsBetween);
      yield* until(() => copied.length === 1);
      const room = filled(join(disk, "filler"));
      // The journal restarts, because all of it is in the file: new rows have room in the journal, and none in the file.
      database.exec(insert(bytesOf(50)));
      checkpoints.countRows(rowsBetween);
      yield* until(() => copied.length === 2);
      room();
      checkpoints.countRows(rowsBetween);
      yield* until(() => copied.length === 3);
      assert.deepStrictEqual(copied, [journalPagesMax, 1_000, journalPagesMax]);
      database.close();
      yield* ended(checkpoints);
      assert.deepStrictEqual(readdirSync(disk).toSorted(), ["filler", "runs.db"]);
    }),
  );

  it.live("of a file that was moved away do not affect the file that replaces it", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const written = Effect.gen(function* () {
        const sql = yield* SqlClient;
        yield* sql`CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)`;
        const step = SqlNodeSqlite.stepOf(sql);
        for (let row = 0; row < rowsBetween; row += 1) step?.([["INSERT INTO t VALUES (?, ?)", [row, bytesOf(1)]]]);
        yield* until(() => statSync(file).size > (rowsBetween * rowBytes) / 2);
        for (const end of ["", "-wal", "-shm"]) renameSync(file + end, `${file}.old${end}`);
        const other = journaled(file);
        other.exec(insert("of the other"));
        assert.include(String((yield* Effect.flip(sql`SELECT 1`)).cause), "moved");
        return other;
      });
      const layer = SqlNodeSqlite.layerOfStore({ file, synchronous: "normal" });
      const other = yield* Effect.provide(written, layer);
      assert.isAbove(statSync(`${file}-wal`).size, 0);
      const third = new DatabaseSync(file);
      assert.deepInclude(third.prepare("SELECT body FROM t").get(), { body: "of the other" });
      third.close();
      other.close();
      const old = new DatabaseSync(`${file}.old`);
      assert.deepInclude(old.prepare("SELECT count(*) AS rows FROM t").get(), { rows: rowsBetween });
      assert.deepInclude(old.prepare("PRAGMA integrity_check").get(), { integrity_check: "ok" });
      old.close();
    }),
  );
});

describe("processes with checkpoints in threads", () => {
  it.live("commit to one file side by side, and commits that one has reported are kept when it is killed", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      journaled(file).close();
      const names = ["a", "b", "c"];
      const all = yield* Effect.forEach(names, (name) => committing(file, name));
      yield* until(() => all.every(({ rows }) => rows > 4 * rowsBetween));
      const [killed, ...others] = all;
      killed?.process.kill("SIGKILL");
      yield* Effect.promise(async () => killed?.over);
      const before = others.map(({ rows }) => rows);
      yield* until(() => others.every(({ rows }, index) => rows > (before[index] ?? 0) + rowsBetween));
      for (const it of others) assert.strictEqual(yield* closed(it), 0);
      assert.deepStrictEqual(readdirSync(dirname(file)), ["runs.db"]);
      const database = new DatabaseSync(file);
      assert.deepInclude(database.prepare("PRAGMA integrity_check").get(), { integrity_check: "ok" });
      const rowsOf = database.prepare("SELECT count(*) AS rows, max(n) + 1 AS next FROM t WHERE process = ?");
      for (const [index, name] of names.entries()) {
        const { next, rows } = rowsOf.get(name) ?? {};
        assert.strictEqual(rows, next);
        assert.isAtLeast(Number(rows), all[index]?.rows ?? 0);
      }
      database.close();
    }),
  );

  it.live("have nothing of the process run a second time in a thread", () =>
    Effect.gen(function* () {
      const folder = yield* Folder.folder;
      const [file, preload, log] = [join(folder, "runs.db"), join(folder, "preload.cjs"), join(folder, "log")];
      journaled(file).close();
      writeFileSync(preload, `require("node:fs").appendFileSync(${JSON.stringify(log)}, "loaded ");`);
      const it = yield* committing(file, "a", { env: { NODE_OPTIONS: `--require ${JSON.stringify(preload)}` } });
      yield* until(() => statSync(file).size > (rowsBetween * rowBytes) / 2);
      assert.strictEqual(yield* closed(it), 0);
      assert.strictEqual(readFileSync(log, "utf8"), "loaded ");
      assert.deepStrictEqual(readdirSync(folder).toSorted(), ["log", "preload.cjs", "runs.db"]);
    }),
  );

  it.live("work without a thread if the process may have none", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      journaled(file).close();
      const permitted = ["--permission", "--allow-fs-read=*", "--allow-fs-write=*"];
      const it = yield* committing(file, "a", { execArgv: permitted });
      yield* until(() => it.rows > 8 * rowsBetween);
      // SQLite's own checkpoints keep it as short as before.
      assert.isBelow(statSync(`${file}-wal`).size, 2 * 1_000 * 4_120);
      assert.strictEqual(yield* closed(it), 0);
      assert.deepStrictEqual(readdirSync(dirname(file)), ["runs.db"]);
    }),
  );
});
