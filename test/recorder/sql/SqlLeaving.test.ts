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
  lease.addOwned("r", "a");
  const as = lease.beginRelease("r");
  if (as === undefined) throw new Error("it is driven");
  return { as, lease };
});

describe("a run that its process releases", () => {
  it.effect("is no longer driven, even if an earlier write is reported meanwhile", () =>
    Effect.gen(function* () {
      for (const isWritten of [false, true]) {
        const { as, lease } = yield* parting;
        if (isWritten) lease.addOwned("r", "a");
        assert.isTrue(lease.isReleasing("r"));
        assert.isTrue(lease.isNeeded);
        lease.completeRelease("r", as, true);
        assert.deepStrictEqual(
          [lease.isReleasing("r"), lease.isNeeded, lease.findOwned("r")],
          [false, false, undefined],
        );
      }
    }).pipe(Effect.scoped),
  );

  it.effect("is released by one statement at a time, and again if that has failed", () =>
    Effect.gen(function* () {
      const { as, lease } = yield* parting;
      assert.isUndefined(lease.beginRelease("r"), "one is under way");
      lease.failRelease("r", as);
      assert.deepStrictEqual([lease.pendingReleases, lease.isReleasing("r")], [["r"], true]);
      const again = lease.beginRelease("r");
      assert.strictEqual(again, as);
      lease.completeRelease("r", as, true);
      assert.deepStrictEqual(lease.pendingReleases, []);
    }).pipe(Effect.scoped),
  );

  it.effect("stays driven if its process has claimed it after the write that had parked it", () =>
    Effect.gen(function* () {
      const { as, lease } = yield* parting;
      lease.addOwned("r", "a");
      lease.disown("r", as);
      assert.isDefined(lease.findOwned("r"));
      // No row belonged to this process: another write had released it before.
      lease.completeRelease("r", as, false);
      assert.isDefined(lease.findOwned("r"));
      assert.isTrue(lease.isNeeded);
    }).pipe(Effect.scoped),
  );

  it.effect("is not kept if it was left for another reason and its statement fails", () =>
    Effect.gen(function* () {
      const { as, lease } = yield* parting;
      lease.disown("r", as);
      assert.isTrue(lease.isReleasing("r"), "the statement may still take effect");
      lease.failRelease("r", as);
      assert.deepStrictEqual([lease.isReleasing("r"), lease.isNeeded], [false, false]);
    }).pipe(Effect.scoped),
  );

  it.effect("under a new lease is not affected by statements sent under the previous one", () =>
    Effect.gen(function* () {
      const { as, lease } = yield* parting;
      lease.adopt({ id: "b", beatAt: 0 });
      assert.isFalse(lease.isReleasing("r"));
      lease.addOwned("r", "b");
      const next = lease.beginRelease("r");
      lease.completeRelease("r", as, false);
      assert.isTrue(lease.isReleasing("r"));
      assert.strictEqual(lease.findOwned("r"), next);
      if (next !== undefined) lease.failRelease("r", next);
      assert.deepStrictEqual(lease.pendingReleases, ["r"], "it is given back later");
    }).pipe(Effect.scoped),
  );
});
