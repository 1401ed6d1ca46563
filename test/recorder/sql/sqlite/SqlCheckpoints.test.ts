/**
 * Checkpoints of a file in a thread of its own: what was committed reaches the file while its connection goes on, and the thread lets go of
 * the file before the connection does.
 */
import { existsSync, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as pause } from "node:timers/promises";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { SqlClient } from "effect/sql/SqlClient";
import { journalPagesMax, rowsBetween, SqlCheckpoints } from "../../../../src/recorder/sql/sqlite/SqlCheckpoints.ts";
import * as SqlNodeSqlite from "../../../../src/recorder/sql/sqlite/SqlNodeSqlite.ts";
import * as Folder from "../SqlFolder.ts";

/** Waits for what a thread brings about, however busy the machine is. */
const until = (isSo: () => boolean) =>
  Effect.promise(async () => {
    for (let times = 0; !isSo() && times < 6_000; times += 1) await pause(10);
    assert.isTrue(isSo());
  });

/** Bytes of each row: a row is a page at least. */
const rowBytes = 5_000;

describe("checkpoints in a thread", () => {
  it.live(
    "bring what was committed into the file, and nothing of the thread is left when the connection is closed",
    () =>
      Effect.gen(function* () {
        const file = yield* Folder.emptyPath;
        const written = Effect.gen(function* () {
          const sql = yield* SqlClient;
          yield* sql`CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)`;
          const step = SqlNodeSqlite.stepOf(sql);
          // Fewer pages than a commit copies by itself: only a thread does it.
          for (let row = 0; row < rowsBetween; row += 1)
            step?.((now) => ({ changes: now.changes("INSERT INTO t VALUES (?, ?)", [row, "x".repeat(rowBytes)]) }));
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

  it.live("that no thread can make are left to the connection, and a file that is gone is not made anew", () =>
    Effect.gen(function* () {
      const file = join(yield* Folder.folder, "gone.db");
      const copied: Array<number> = [];
      const checkpoints = new SqlCheckpoints({ file, synchronous: "full" }, (pages) => copied.push(pages));
      checkpoints.committed(rowsBetween);
      yield* until(() => copied.length > 0);
      checkpoints.committed(rowsBetween);
      checkpoints.close();
      assert.deepStrictEqual(copied, [1_000]);
      assert.isFalse(existsSync(file));
    }),
  );

  it.live("end with a connection that closes while its thread begins", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const database = new DatabaseSync(file);
      database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (a)");
      const checkpoints = new SqlCheckpoints({ file, synchronous: "normal" }, () => undefined);
      checkpoints.committed(rowsBetween);
      checkpoints.close();
      checkpoints.committed(rowsBetween);
      database.close();
      assert.deepStrictEqual(readdirSync(dirname(file)), ["runs.db"]);
    }),
  );
});
