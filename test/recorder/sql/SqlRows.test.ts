import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { RowChanged } from "../../../src/recorder/sql/SqlFailure.ts";
import { SqlLease } from "../../../src/recorder/sql/SqlLease.ts";
import * as SqlOwnership from "../../../src/recorder/sql/SqlOwnership.ts";
import * as SqlStore from "../../../src/recorder/sql/SqlStore.ts";
import * as SqlTables from "../../../src/recorder/sql/SqlTables.ts";
import * as E from "../Entries.ts";
import * as Folder from "./SqlFolder.ts";

const opened = Effect.gen(function* () {
  const { recorder, sql } = yield* Folder.openWithClient({ file: yield* Folder.emptyPath });
  return { recorder, tables: SqlTables.make(sql, SqlTables.prefixDefault) };
});

describe("a statement changes only what its transaction has read", () => {
  it.effect("a run of another version is neither overwritten nor claimed", () =>
    Effect.gen(function* () {
      const { recorder, tables } = yield* opened;
      yield* recorder.write("r", [E.begun("r"), { _tag: "RunParked", reason: "interrupted" }]);
      const read = yield* SqlStore.load(tables, "r");
      if (read === undefined) throw new Error("it is there");
      yield* recorder.write("r", [E.noted(1)]);
      const late = SqlStore.update(tables, "r", read, E.folded([E.begun("r")]), undefined);
      assert.instanceOf(yield* Effect.flip(late), RowChanged);
      const taken = SqlOwnership.assignOwner(tables, [{ runId: "r", version: read.version }], "lease");
      assert.instanceOf(yield* Effect.flip(taken), RowChanged);
      assert.strictEqual((yield* recorder.run("r"))?.evidence.first.length, 1);
    }),
  );

  it.effect("a lease that has sent a heartbeat since, or was fenced, is not fenced", () =>
    Effect.gen(function* () {
      const { tables } = yield* opened;
      const { leases, sql } = tables;
      const options = { leaseMs: 1_000, label: "1@here", now: () => 0, elapsed: () => 0 };
      const [mine, other] = [new SqlLease(tables, options), new SqlLease(tables, options)];
      const { id } = yield* mine.hold;
      mine.adopt({ id, beatAt: 0 });
      const seen = { id, beats: 1, leaseMs: 1_000, seemsOver: true };
      assert.strictEqual((yield* mine.beat())?.id, id);
      assert.instanceOf(yield* Effect.flip(other.fence(seen)), RowChanged);
      yield* other.fence({ ...seen, beats: 2 });
      assert.instanceOf(yield* Effect.flip(other.fence({ ...seen, beats: 2 })), RowChanged);
      assert.isUndefined((yield* mine.beat())?.held, "a fenced lease is not renewed");
      assert.deepStrictEqual(yield* sql`SELECT beats, fenced FROM ${leases}`, [{ beats: 2, fenced: 1 }]);
    }),
  );
});
