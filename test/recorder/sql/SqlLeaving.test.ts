/**
 * A process's knowledge of a run that it releases, for each order in which the replies to its statements can arrive.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { SqlLease } from "../../../src/recorder/sql/SqlLease.ts";
import * as SqlTables from "../../../src/recorder/sql/SqlTables.ts";
import * as Folder from "./SqlFolder.ts";

/** A lease that drives one run, and that run during its release. */
const parting = Effect.gen(function* () {
  const { sql } = yield* Folder.openWithClient({ file: yield* Folder.emptyPath });
  const tables = SqlTables.make(sql, SqlTables.prefixDefault);
  const lease = new SqlLease(tables, { leaseMs: 1_000, label: "1@here", now: () => 0, elapsed: () => 0 });
  lease.adopt({ id: "a", beatAt: 0 });
  lease.drive("r", "a");
  const as = lease.part("r");
  if (as === undefined) throw new Error("it is driven");
  return { as, lease };
});

describe("a run that its process releases", () => {
  it.effect("is no longer driven, even if an earlier write is reported meanwhile", () =>
    Effect.gen(function* () {
      for (const isWritten of [false, true]) {
        const { as, lease } = yield* parting;
        if (isWritten) lease.drive("r", "a");
        assert.isTrue(lease.isLeaving("r"));
        assert.isTrue(lease.isNeeded);
        lease.completeRelease("r", as, true);
        assert.deepStrictEqual(
          [lease.isLeaving("r"), lease.isNeeded, lease.findDriven("r")],
          [false, false, undefined],
        );
      }
    }).pipe(Effect.scoped),
  );

  it.effect("is released by one statement at a time, and again if that has failed", () =>
    Effect.gen(function* () {
      const { as, lease } = yield* parting;
      assert.isUndefined(lease.part("r"), "one is under way");
      lease.failRelease("r", as);
      assert.deepStrictEqual([lease.leaving, lease.isLeaving("r")], [["r"], true]);
      const again = lease.part("r");
      assert.strictEqual(again, as);
      lease.completeRelease("r", as, true);
      assert.deepStrictEqual(lease.leaving, []);
    }).pipe(Effect.scoped),
  );

  it.effect("stays driven if its process has claimed it after the write that had parked it", () =>
    Effect.gen(function* () {
      const { as, lease } = yield* parting;
      lease.drive("r", "a");
      lease.leave("r", as);
      assert.isDefined(lease.findDriven("r"));
      // No row belonged to this process: another write had released it before.
      lease.completeRelease("r", as, false);
      assert.isDefined(lease.findDriven("r"));
      assert.isTrue(lease.isNeeded);
    }).pipe(Effect.scoped),
  );

  it.effect("is not kept if it was left for another reason and its statement fails", () =>
    Effect.gen(function* () {
      const { as, lease } = yield* parting;
      lease.leave("r", as);
      assert.isTrue(lease.isLeaving("r"), "the statement may still take effect");
      lease.failRelease("r", as);
      assert.deepStrictEqual([lease.isLeaving("r"), lease.isNeeded], [false, false]);
    }).pipe(Effect.scoped),
  );

  it.effect("under a new lease is not affected by statements sent under the previous one", () =>
    Effect.gen(function* () {
      const { as, lease } = yield* parting;
      lease.adopt({ id: "b", beatAt: 0 });
      assert.isFalse(lease.isLeaving("r"));
      lease.drive("r", "b");
      const next = lease.part("r");
      lease.completeRelease("r", as, false);
      assert.isTrue(lease.isLeaving("r"));
      assert.strictEqual(lease.findDriven("r"), next);
      if (next !== undefined) lease.failRelease("r", next);
      assert.deepStrictEqual(lease.leaving, ["r"], "it is given back later");
    }).pipe(Effect.scoped),
  );
});
