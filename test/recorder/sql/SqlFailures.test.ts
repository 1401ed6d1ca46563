import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Metric } from "effect";
import * as SqlFailure from "../../../src/recorder/sql/SqlFailure.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const counted = (reason: string) =>
  Effect.map(Metric.value(Metric.withAttributes(SqlFailure.failures, [["error.type", reason]])), ({ count }) =>
    Number(count),
  );

/** Many entries, more than fit into a few pages. */
const large = (runId: string) => [E.begun(runId), ...Array.from({ length: 30 }, (_, n) => E.opened(runId, n + 1))];

describe("SqlRunRecorder reports problems of its file, and continues after them", () => {
  it.effect("a full disk: nothing of the write is stored, and the same write succeeds when there is room", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const { recorder, sql } = yield* Folder.openWithClient({ file });
      yield* recorder.write("kept", [E.begun("kept")]);
      const before = yield* counted("disk_full");
      yield* sql`PRAGMA max_page_count = 1`;
      const error = yield* Effect.flip(recorder.write("r", large("r")));
      assert.deepInclude(error, { _tag: "RecorderError", reason: "disk_full" });
      assert.include(error.message, file);
      assert.match(error.message, /Free some space/);
      assert.strictEqual(yield* counted("disk_full"), before + 1);
      assert.isUndefined(yield* recorder.run("r"));
      assert.strictEqual((yield* record(recorder, "kept")).state, "live");
      yield* sql`PRAGMA max_page_count = 1000000`;
      yield* recorder.write("r", large("r"));
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded(large("r")));
    }),
  );

  it.live("another program's lock: it is waited for, and reported if it lasts", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const recorder = yield* Folder.open({ file, lockWaitMs: 100 });
      yield* recorder.write("r", [E.begun("r"), E.attempt(1)]);
      const other = new DatabaseSync(file);
      other.exec("BEGIN EXCLUSIVE");
      const error = yield* Effect.flip(recorder.write("r", [E.raised(1, { shown: "text" })]));
      assert.deepInclude(error, { reason: "locked" });
      assert.match(error.message, /is locked by another program/);
      // Readers wait for no lock.
      assert.strictEqual((yield* record(recorder, "r")).attempts[0]?.facts.shown, "nothing");
      const waiting = yield* Effect.forkChild(recorder.write("r", [E.raised(1, { shown: "reasoning" })]));
      yield* Effect.yieldNow;
      yield* Effect.yieldNow;
      other.exec("COMMIT");
      yield* Fiber.join(waiting);
      assert.strictEqual((yield* record(recorder, "r")).attempts[0]?.facts.shown, "reasoning");
      other.close();
    }),
  );

  it.live("a lasting lock is waited for once: later writes fail at once, and the first one after it succeeds", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const recorder = yield* Folder.open({ file, lockWaitMs: 1_500 });
      yield* recorder.write("r", [E.begun("r")]);
      const other = new DatabaseSync(file);
      other.exec("BEGIN EXCLUSIVE");
      // If each waited again, they would take as long as thirty waits, but a process must end within one.
      for (let n = 0; n < 30; n += 1) {
        assert.strictEqual((yield* Effect.flip(recorder.write("r", [E.attempt(1)]))).reason, "locked");
      }
      other.exec("COMMIT");
      yield* recorder.write("r", [E.attempt(1)]);
      other.exec("BEGIN EXCLUSIVE");
      // Another lock is waited for like the first one.
      const waiting = yield* Effect.forkChild(recorder.write("r", [E.attempt(2)]), { startImmediately: true });
      yield* Effect.yieldNow;
      yield* Effect.yieldNow;
      other.exec("COMMIT");
      yield* Fiber.join(waiting);
      assert.strictEqual((yield* record(recorder, "r")).attempts.length, 2);
      other.close();
    }),
  );

  it.live("a process that only reads waits for no lock, even when it ends", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      yield* Effect.flatMap(Folder.open({ file }), (recorder) => recorder.write("r", [E.begun("r")])).pipe(
        Effect.scoped,
      );
      const other = new DatabaseSync(file);
      other.exec("BEGIN EXCLUSIVE");
      const read = Effect.flatMap(Folder.open({ file, lockWaitMs: 600_000, retention: false }), (it) => it.runs());
      assert.strictEqual((yield* Effect.scoped(read)).length, 1);
      other.close();
    }),
  );

  it.live("a lock that is held at the start is waited for, too", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const other = new DatabaseSync(file);
      other.exec("BEGIN EXCLUSIVE; CREATE TABLE stream_recovery_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)");
      assert.strictEqual((yield* Effect.flip(Folder.open({ file, lockWaitMs: 100 }))).reason, "locked");
      const waiting = yield* Effect.forkChild(Folder.open({ file }), { startImmediately: true });
      yield* Effect.yieldNow;
      other.exec("ROLLBACK");
      const recorder = yield* Fiber.join(waiting);
      yield* recorder.write("r", [E.begun("r")]);
      other.close();
    }).pipe(Effect.scoped),
  );

  it.live("a disk that is really full, if this system lets us create one", () =>
    Effect.gen(function* () {
      const disk = yield* smallDisk;
      if (disk === undefined) return;
      const recorder = yield* Folder.open({ file: join(disk, "runs.db") });
      let reason: string | undefined;
      let taken = 0;
      while (reason === undefined) {
        const wrote = yield* Effect.result(recorder.write(`r${taken}`, large(`r${taken}`)));
        if (wrote._tag === "Failure") reason = wrote.failure.reason;
        else taken += 1;
      }
      assert.strictEqual(reason, "disk_full");
      assert.isAbove(taken, 0);
      // Earlier data is whole, and the refused write has left nothing.
      assert.deepStrictEqual(yield* record(recorder, "r0"), E.folded(large("r0")));
      assert.isUndefined(yield* recorder.run(`r${taken}`));
      grow(disk);
      yield* recorder.write(`r${taken}`, large(`r${taken}`));
      assert.deepStrictEqual(yield* record(recorder, `r${taken}`), E.folded(large(`r${taken}`)));
    }).pipe(Effect.scoped),
  );

  it.effect("a read-only file can be read, and a write says why it is refused", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const writer = yield* Folder.open({ file });
      yield* writer.write("r", E.life("r"));
      const reader = yield* Folder.open({ file: `file:${file}?mode=ro` });
      assert.deepStrictEqual(yield* record(reader, "r"), E.folded(E.life("r")));
      assert.strictEqual((yield* reader.runs()).length, 1);
      const error = yield* Effect.flip(reader.write("new", [E.begun("new")]));
      assert.deepInclude(error, { reason: "read_only" });
      assert.match(error.message, /Make it writable/);
    }),
  );

  it.effect("a file that becomes read-only and writable again", () =>
    Effect.gen(function* () {
      const { recorder, sql } = yield* Folder.openWithClient({ file: yield* Folder.emptyPath });
      yield* recorder.write("r", [E.begun("r")]);
      yield* sql`PRAGMA query_only = 1`;
      // The connection counts as unusable after it, and the next one can write again.
      assert.strictEqual((yield* Effect.flip(recorder.write("r", [E.attempt(1)]))).reason, "read_only");
      yield* recorder.write("r", [E.attempt(1)]);
      assert.deepStrictEqual(yield* record(recorder, "r"), E.folded([E.begun("r"), E.attempt(1)]));
    }),
  );

  it.effect("a deleted file is reported once, and then a new one is used", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const recorder = yield* Folder.open({ file });
      yield* recorder.write("old", [E.begun("old")]);
      const digest = yield* recorder.digest("x");
      for (const more of ["", "-wal", "-shm"]) rmSync(`${file}${more}`, { force: true });
      const error = yield* Effect.flip(recorder.write("old", [E.attempt(1)]));
      assert.deepInclude(error, { reason: "unavailable" });
      assert.match(error.message, /was deleted, moved or replaced/);
      assert.strictEqual((yield* Effect.flip(recorder.write("old", [E.attempt(1)]))).reason, "unknown_run");
      yield* recorder.write("new", [E.begun("new"), E.attempt(1)]);
      assert.deepStrictEqual(yield* record(recorder, "new"), E.folded([E.begun("new"), E.attempt(1)]));
      assert.notStrictEqual(yield* recorder.digest("x"), digest);
      assert.strictEqual((yield* recorder.runs()).length, 1);
    }),
  );

  it.effect("overwritten bytes are reported as damage, until a backup is restored", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const { recorder, sql } = yield* Folder.openWithClient({ file });
      for (let n = 0; n < 20; n += 1) yield* recorder.write(`r${n}`, large(`r${n}`));
      yield* sql`PRAGMA wal_checkpoint(TRUNCATE)`;
      const whole = readFileSync(file);
      overwrite(file, Buffer.alloc(statSync(file).size - 4096, 0xa5), 4096);
      const other = yield* Folder.open({ file }).pipe(Effect.flip);
      assert.deepInclude(other, { reason: "corrupt" });
      assert.include(other.message, file);
      overwrite(file, whole, 0);
      const again = yield* Folder.open({ file });
      assert.strictEqual((yield* again.runs()).length, 20);
      yield* again.write("new", [E.begun("new")]);
      yield* recorder.write("r0", [E.attempt(1)]);
    }),
  );

  it.effect("a file that is no database is refused and not changed", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      writeFileSync(file, "These are my notes, and they are longer than a header.\n".repeat(200));
      const before = readFileSync(file);
      const error = yield* Effect.flip(Folder.open({ file }));
      assert.deepInclude(error, { reason: "corrupt" });
      assert.match(error.message, /is not a database of stream-recovery/);
      assert.deepStrictEqual(readFileSync(file), before);
    }),
  );

  it.effect("a folder that cannot be created is named", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      writeFileSync(file, "");
      const error = yield* Effect.flip(Folder.open({ file: `${file}/state/runs.db` }));
      assert.deepInclude(error, { reason: "unavailable" });
      assert.include(error.message, "state/runs.db");
    }),
  );
});

describe("a failure of the system has a reason and a message", () => {
  for (const [code, reason] of [
    ["EACCES", "read_only"],
    ["EPERM", "read_only"],
    ["EROFS", "read_only"],
    ["ENOSPC", "disk_full"],
    ["ENOTDIR", "unavailable"],
  ] as const) {
    it(`${code} is ${reason}`, () => {
      const error = SqlFailure.explain(Object.assign(new Error("no"), { code }), "runs.db");
      assert.deepInclude(error, { reason, run_id: "" });
      assert.match(error.message, /^runs\.db \w+/);
    });
  }
});

describe("SqlRunRecorder loses only damaged data", () => {
  it.effect("a damaged row names its run, and every other run is read, listed and recovered", () =>
    Effect.gen(function* () {
      const { recorder, sql } = yield* Folder.openWithClient({ file: yield* Folder.emptyPath });
      const left = { _tag: "RunParked", reason: "interrupted" } as const;
      for (const id of ["a", "b", "c", "d"]) yield* recorder.write(id, [E.begun(id), E.opened(id, 1), left]);
      yield* sql`UPDATE stream_recovery_runs SET record = '{"run_id":' WHERE run_id = 'b'`;
      yield* sql`UPDATE stream_recovery_incidents SET incident = '{"id":"c.1"}' WHERE run_id = 'c'`;
      for (const id of ["b", "c"]) {
        const before = yield* counted("corrupt");
        const error = yield* Effect.flip(recorder.run(id));
        assert.deepInclude(error, { reason: "corrupt", run_id: id });
        assert.match(error.message, /no other run is affected/);
        assert.deepInclude(yield* Effect.flip(recorder.claim(id)), { reason: "corrupt", run_id: id });
        assert.deepInclude(yield* Effect.flip(recorder.write(id, [E.noted(1)])), { reason: "corrupt", run_id: id });
        assert.strictEqual(yield* counted("corrupt"), before + 3);
      }
      const ids = (yield* recorder.runs()).map((run) => run.run_id);
      assert.deepStrictEqual(ids, ["d", "a"]);
      assert.deepStrictEqual((yield* recorder.runs({ limit: 2 })).length, 2);
      assert.deepStrictEqual(
        (yield* recorder.orphans(2)).map((run) => run.run_id),
        ["a", "d"],
      );
      yield* recorder.write("a", [E.noted(1)]);
    }),
  );

  it.effect("an entry that the database refuses fails alone in a group of writes", () =>
    Effect.gen(function* () {
      const { recorder, sql } = yield* Folder.openWithClient({ file: yield* Folder.emptyPath });
      yield* sql`CREATE TRIGGER no BEFORE INSERT ON stream_recovery_runs WHEN NEW.run_id = 'b' BEGIN SELECT RAISE(ABORT, 'no'); END`;
      const results = yield* Effect.forEach(["a", "b", "c"], (id) => Effect.result(recorder.write(id, [E.begun(id)])), {
        concurrency: "unbounded",
      });
      assert.deepStrictEqual(
        results.map((it) => (it._tag === "Success" ? "committed" : it.failure.reason)),
        ["committed", "unavailable", "committed"],
      );
      assert.strictEqual((yield* recorder.runs()).length, 2);
    }),
  );

  it.effect("a damaged run in a group of writes fails alone", () =>
    Effect.gen(function* () {
      const { recorder, sql } = yield* Folder.openWithClient({ file: yield* Folder.emptyPath });
      const left = { _tag: "RunParked", reason: "interrupted" } as const;
      for (const id of ["a", "b", "c"]) yield* recorder.write(id, [E.begun(id), left]);
      yield* sql`UPDATE stream_recovery_runs SET record = 'nonsense' WHERE run_id = 'b'`;
      const results = yield* Effect.forEach(
        ["a", "b", "c", "new"],
        (id) => Effect.result(recorder.write(id, id === "new" ? [E.begun(id)] : [E.noted(1)])),
        { concurrency: "unbounded" },
      );
      assert.deepStrictEqual(
        results.map((it) => it._tag),
        ["Success", "Failure", "Success", "Success"],
      );
    }),
  );
});

const [mount, unmount] = ["mount", "umount"];

/** A file system of 1 MiB; undefined if this user may not mount one. */
const smallDisk = Effect.acquireRelease(
  Effect.map(Folder.folder, (path) => {
    const mounted = spawnSync(mount, ["-t", "tmpfs", "-o", "size=1m", "tmpfs", path]);
    return mounted.status === 0 ? path : undefined;
  }),
  (path) => Effect.sync(() => path !== undefined && spawnSync(unmount, ["-l", path])),
);

const grow = (path: string): void => {
  assert.strictEqual(spawnSync(mount, ["-o", "remount,size=16m", path]).status, 0);
};

const overwrite = (file: string, bytes: Uint8Array, at: number): void => {
  const fd = openSync(file, "r+");
  writeSync(fd, bytes, 0, bytes.length, at);
  closeSync(fd);
};
