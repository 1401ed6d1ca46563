/**
 * Deletes ended runs by age and by number, a bounded number per transaction, beside processes that write and read.
 */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Exit, Fiber, type Scope } from "effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { retainingOf } from "../../../src/recorder/retention/Retention.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import * as Databases from "./Databases.ts";
import * as StatementProxy from "./StatementProxy.ts";

const dayMs = 24 * 60 * 60 * 1_000;

const made: Effect.Effect<
  { readonly address: string; readonly admin: SqlClient; readonly recorder: Recorder },
  RecorderError,
  Scope.Scope
> = Effect.gen(function* () {
  const address = yield* Databases.empty;
  const admin = yield* Databases.client(address, "operator");
  return { address, admin, recorder: yield* Databases.open({ address }) };
});

/** A separate recorder, and its retention for `runs retain`. */
const retainingBy = (address: string) =>
  Effect.map(Databases.open({ address }), (it) => retainingOf(it) ?? assert.fail("a store forgets what is old"));

/** A run that broke, asked, and ended some days ago. */
const ended = Effect.fnUntraced(function* (recorder: Recorder, id: string, days: number) {
  yield* recorder.write(id, [E.begun(id), E.attempt(1)]);
  yield* recorder.write(id, [E.raised(1, { shown: "text" }), E.opened(id, 1), E.asked(id, 1)]);
  yield* recorder.write(id, [E.ended({ at: (yield* Clock.currentTimeMillis) - days * dayMs })]);
});

/** The rows of a run in all tables. */
const rows = (admin: SqlClient) =>
  Effect.forEach(["runs", "parts", "incidents", "questions"], (name) =>
    Effect.map(
      admin.unsafe<{ readonly n: number }>(`SELECT count(*)::integer AS n FROM stream_recovery_${name}`),
      ([row]) => row?.n ?? 0,
    ),
  );

describe("ended runs in PostgreSQL", () => {
  it.live("are deleted by age and by number with all of their rows, and a run that has not ended is kept", () =>
    Effect.gen(function* () {
      const { address, admin, recorder } = yield* made;
      for (const [id, days] of [
        ["old", 40],
        ["b", 20],
        ["c", 10],
      ] as const)
        yield* ended(recorder, id, days);
      const life = E.life("live").filter(({ _tag }) => _tag !== "RunEnded");
      for (const entry of life) yield* recorder.write("live", [entry]);
      const before = yield* record(recorder, "live");
      const retaining = yield* retainingBy(address);
      assert.strictEqual(yield* retaining.countOld({}), 1);
      assert.strictEqual(yield* retaining.deleteOld({}), 1);
      assert.isUndefined(yield* recorder.run("old"));
      assert.strictEqual(yield* retaining.countOld({ runs: 1 }), 1);
      assert.strictEqual(yield* retaining.deleteOld({ runs: 1 }), 1);
      assert.isUndefined(yield* recorder.run("b"));
      assert.strictEqual(yield* retaining.deleteOld({ runs: 1 }), 0);
      assert.strictEqual(yield* retaining.deleteOld({ runs: 0 }), 1);
      assert.deepStrictEqual(yield* record(recorder, "live"), before);
      assert.deepStrictEqual(yield* rows(admin), [1, 1 + before.incidents.length + before.questions.length, 0, 0]);
    }).pipe(Effect.scoped),
  );

  it.live("are deleted a hundred per transaction, those of one moment too, and each is counted", () =>
    Effect.gen(function* () {
      const { address, admin, recorder } = yield* made;
      const at = (yield* Clock.currentTimeMillis) - 40 * dayMs;
      const ids = Array.from({ length: 250 }, (_, n) => `r${n}`);
      yield* Effect.forEach(ids, (id) => recorder.write(id, [E.begun(id), E.ended({ at })]), { concurrency: 50 });
      const proxy = yield* StatementProxy.make(address);
      const retaining = yield* retainingBy(proxy.address);
      const told: Array<number> = [];
      assert.strictEqual(yield* retaining.deleteOld({}, (runs) => told.push(runs)), 250);
      assert.deepStrictEqual(told, [100, 200, 250]);
      const deletes = proxy.statements.filter((sql) => /^DELETE FROM \S*runs\b/.test(sql));
      assert.strictEqual(deletes.length, 3);
      assert.deepStrictEqual(yield* rows(admin), [0, 0, 0, 0]);
    }).pipe(Effect.scoped),
  );

  it.live("are counted once if two processes delete them at the same time", () =>
    Effect.gen(function* () {
      const { address, recorder } = yield* made;
      for (const id of ["a", "b", "c"]) yield* ended(recorder, id, 40);
      const proxies = [yield* StatementProxy.make(address), yield* StatementProxy.make(address)];
      // Both have found the runs before either deletes one.
      const looks = yield* Effect.forEach(proxies, (proxy) =>
        Effect.gen(function* () {
          const retaining = yield* retainingBy(proxy.address);
          const deletes = proxy.hold(/^DELETE FROM \S*parts\b/);
          const looking = yield* Effect.forkChild(retaining.deleteOld({}), { startImmediately: true });
          yield* deletes.reached;
          return { deletes, looking };
        }),
      );
      const counts = yield* Effect.forEach(looks, ({ deletes, looking }) =>
        Effect.andThen(deletes.release, Fiber.join(looking)),
      );
      assert.deepStrictEqual(counts, [3, 0]);
    }).pipe(Effect.scoped),
  );

  it.live("leave no row behind if one of them is written late during its deletion", () =>
    Effect.gen(function* () {
      const { address, admin, recorder } = yield* made;
      yield* ended(recorder, "late", 40);
      const proxy = yield* StatementProxy.make(address);
      const retaining = yield* retainingBy(proxy.address);
      const deletes = proxy.hold(/^DELETE FROM \S*parts\b/);
      const looking = yield* Effect.forkChild(retaining.deleteOld({}), { startImmediately: true });
      yield* deletes.reached;
      yield* recorder.write("late", [E.noted(60_000, "late_settle"), E.opened("late", 2)]);
      yield* deletes.release;
      assert.strictEqual(yield* Fiber.join(looking), 1);
      assert.deepStrictEqual(yield* rows(admin), [0, 0, 0, 0]);
      assert.strictEqual((yield* Effect.flip(recorder.write("late", [E.noted(61_000)]))).reason, "unknown_run");
    }).pipe(Effect.scoped),
  );

  it.live("are read whole or not at all by a process that reads during their deletion", () =>
    Effect.gen(function* () {
      const { address, recorder } = yield* made;
      yield* ended(recorder, "gone", 40);
      yield* recorder.write("live", [E.begun("live"), E.attempt(1)]);
      const before = [yield* record(recorder, "gone"), yield* record(recorder, "live")];
      const proxy = yield* StatementProxy.make(address);
      const reader = yield* Databases.open({ address: proxy.address });
      const parts = proxy.hold(/^SELECT seq, kind, body FROM/);
      const reading = yield* Effect.forkChild(Effect.exit(reader.runs()), { startImmediately: true });
      yield* parts.reached;
      const retaining = yield* retainingBy(address);
      assert.strictEqual(yield* retaining.deleteOld({}), 1);
      yield* parts.release;
      assert.deepStrictEqual(yield* Fiber.join(reading), Exit.succeed(before.toReversed()));
      assert.isUndefined(yield* reader.run("gone"));
    }).pipe(Effect.scoped),
  );
});
