/**
 * Writes that one commit stores together in one step. Ordinary writes are on record then, and any other is left to the single
 * way as if nothing had happened.
 */
import { renameSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Metric, Scope } from "effect";
import { TestClock } from "effect/testing";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import * as SqlFailure from "../../../src/recorder/sql/SqlFailure.ts";
import { take } from "../Committing.ts";
import * as E from "../Entries.ts";
import { type Recorder, record } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";

const commits = Effect.map(Metric.value(SqlFailure.commits), ({ count }) => Number(count));
const began = (id: string): ReadonlyArray<Entry> => [E.begun(id), E.attempt(1)];
const names = (count: number) => Array.from({ length: count }, (_, n) => `r${n}`);

/** Writes several runs in one step, and returns which of them are on record then. */
const write = (recorder: Recorder, all: ReadonlyArray<readonly [runId: string, entries: ReadonlyArray<Entry>]>) =>
  Effect.forEach(all, ([runId, entries]) => Folder.together(recorder, runId, entries), { concurrency: "unbounded" });

/** Waits for some turns of the event loop; a group is committed within one. */
const turns = (count: number) =>
  Effect.promise(async () => {
    for (let turn = 0; turn < count; turn += 1) await new Promise((passed) => setImmediate(passed));
  });

/** A recorder over a file. Its first write is a single one, which creates the lease. */
const opened = Effect.gen(function* () {
  const file = yield* Folder.emptyPath;
  const recorder = yield* Folder.open({ file });
  yield* recorder.write("first", began("first"));
  return { file, recorder };
});

describe("writes of several runs in one step", () => {
  it.effect("share one commit, and are on record when they are reported", () =>
    Effect.gen(function* () {
      const { file, recorder } = yield* opened;
      const before = yield* commits;
      const ids = names(50);
      const all = yield* write(
        recorder,
        ids.map((id) => [id, began(id)]),
      );
      assert.deepStrictEqual(new Set(all), new Set([true]));
      assert.strictEqual((yield* commits) - before, 1);
      const other = new DatabaseSync(file, { readOnly: true });
      const rows = other.prepare("SELECT version, owner FROM stream_recovery_runs").all();
      assert.strictEqual(rows.length, 51);
      assert.strictEqual(new Set(rows.map(({ owner }) => owner)).size, 1);
      yield* write(recorder, [
        ["r0", [E.raised(1, { shown: "text" })]],
        ["r0", [E.noted(3)]],
        ["r1", [E.ended()]],
        ["first", [{ _tag: "RunParked", reason: "interrupted" }]],
      ]);
      assert.strictEqual((yield* commits) - before, 2);
      assert.deepStrictEqual(
        yield* record(recorder, "r0"),
        E.folded([...began("r0"), E.raised(1, { shown: "text" }), E.noted(3)]),
      );
      const owned = other.prepare("SELECT run_id FROM stream_recovery_runs WHERE owner IS NULL ORDER BY run_id").all();
      assert.deepStrictEqual(
        owned.map(({ run_id }) => run_id),
        ["first", "r1"],
      );
      other.close();
      assert.strictEqual((yield* recorder.claim("first")).run_id, "first");
    }),
  );

  it.effect("are reported in a separate step", () =>
    Effect.gen(function* () {
      const { recorder } = yield* opened;
      const told: Array<boolean> = [];
      assert.isTrue(take(recorder, "r", began("r"), (isOnRecord) => told.push(isOnRecord)));
      assert.deepStrictEqual(told, []);
      yield* Folder.together(recorder, "s", began("s"));
      assert.deepStrictEqual(told, [true]);
    }),
  );

  it.effect("leave one that does not fit to the other way, and commit the others", () =>
    Effect.gen(function* () {
      const { recorder } = yield* opened;
      yield* recorder.write("ended", [...began("ended"), E.ended()]);
      assert.deepStrictEqual(
        yield* write(recorder, [
          ["a", began("a")],
          ["nobody", [E.attempt(1)]],
          ["a", [E.begun("a")]],
          ["ended", [E.attempt(2)]],
          ["first", [E.opened("first", 1)]],
          ["a", [E.noted(1), E.asked("a", 1)]],
          ["a", [E.noted(2)]],
        ]),
        [true, false, false, false, false, false, true],
      );
      assert.deepStrictEqual(yield* record(recorder, "a"), E.folded([...began("a"), E.noted(2)]));
      assert.deepStrictEqual((yield* record(recorder, "first")).incidents, []);
      yield* recorder.write("first", [E.opened("first", 1)]);
      assert.deepStrictEqual(yield* write(recorder, [["first", [E.noted(5)]]]), [true]);
      assert.deepStrictEqual(
        yield* record(recorder, "first"),
        E.folded([...began("first"), E.opened("first", 1), E.noted(5)]),
      );
    }),
  );

  it.effect("are not accepted if they could not be read back, or before there is a lease", () =>
    Effect.gen(function* () {
      const { recorder } = yield* opened;
      assert.isUndefined(yield* Folder.together(recorder, "first", [E.noted(Number.NaN)]));
      const other = yield* Folder.open({ file: yield* Folder.emptyPath });
      assert.isUndefined(yield* Folder.together(other, "r", began("r")));
    }),
  );

  it.effect("are not accepted with an id that the file does not keep, which the other way refuses with its name", () =>
    Effect.gen(function* () {
      const { recorder } = yield* opened;
      for (const id of ["r\ud83d", "\ude00"]) {
        assert.isUndefined(yield* Folder.together(recorder, id, began(id)));
        const refused = yield* Effect.flip(recorder.write(id, began(id)));
        assert.strictEqual(refused.reason, "invalid");
        assert.match(refused.message, /run_id: expected a string without lone surrogates/);
      }
      for (const id of ["r\u{1F600}", "r\0", "r'; --"]) {
        assert.isTrue(yield* Folder.together(recorder, id, began(id)));
        assert.isTrue(yield* Folder.together(recorder, id, [E.noted(1)]));
        yield* recorder.write(id, [E.noted(2)]);
        assert.deepStrictEqual(yield* record(recorder, id), E.folded([...began(id), E.noted(1), E.noted(2)]));
      }
    }),
  );

  it.effect("are not accepted over a client of the program, which may be inside a transaction", () =>
    Effect.gen(function* () {
      const { recorder } = yield* Folder.openWithClient({ file: yield* Folder.emptyPath });
      yield* recorder.write("first", began("first"));
      assert.isUndefined(recorder.write.commit);
    }),
  );

  it.effect("share the commit of another run's write if they are the end of a run", () =>
    Effect.gen(function* () {
      const { file, recorder } = yield* opened;
      const rows = new DatabaseSync(file, { readOnly: true });
      const isEnded = rows.prepare("SELECT 1 FROM stream_recovery_runs WHERE run_id = ? AND ended_at IS NOT NULL");
      // On a busy machine the turn in between may exceed the wait of an end, so the test repeats it.
      let shared = 0;
      for (let n = 0; n < 50 && shared === 0; n += 1) {
        yield* write(recorder, [[`r${n}`, began(`r${n}`)]]);
        const before = yield* commits;
        const told: Array<boolean> = [];
        const tell = (isOnRecord: boolean) => {
          told.push(isOnRecord);
          assert.isDefined(isEnded.get(`r${n}`));
        };
        assert.isTrue(take(recorder, `r${n}`, [E.noted(1), E.ended()], tell));
        yield* turns(1);
        assert.isTrue(yield* Folder.together(recorder, `s${n}`, began(`s${n}`)));
        assert.deepStrictEqual(told, [true]);
        if ((yield* commits) - before === 1) shared += 1;
      }
      assert.strictEqual(shared, 1);
      // An end without a further write is on record, too.
      assert.isTrue(yield* Folder.together(recorder, "s0", [E.ended()]));
      assert.isDefined(isEnded.get("s0"));
      rows.close();
    }),
  );

  it.effect("wait for no other run if there is none, even at the end of a run", () =>
    Effect.gen(function* () {
      const { recorder } = yield* opened;
      yield* recorder.write("first", [E.ended()]);
      // One turn may exceed the wait of an end, but not all twenty.
      for (const id of names(20)) {
        yield* recorder.write(id, began(id));
        const told: Array<boolean> = [];
        assert.isTrue(take(recorder, id, [E.ended()], (it) => told.push(it)));
        yield* turns(1);
        assert.deepStrictEqual(told, [true]);
      }
    }),
  );

  it.effect("are on record when the recorder closes, even if an end waits for others", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const told: Array<boolean> = [];
      yield* Effect.gen(function* () {
        const recorder = yield* Folder.open({ file });
        yield* recorder.write("first", began("first"));
        yield* recorder.write("other", began("other"));
        assert.isTrue(take(recorder, "first", [E.ended()], (it) => told.push(it)));
      }).pipe(Effect.scoped);
      assert.deepStrictEqual(told, [true]);
      const other = new DatabaseSync(file, { readOnly: true });
      assert.lengthOf(other.prepare("SELECT run_id FROM stream_recovery_runs WHERE ended_at IS NOT NULL").all(), 1);
      other.close();
    }),
  );

  it.effect("wait for another process's commit, and share the next one with writes that arrive meanwhile", () =>
    Effect.gen(function* () {
      const { file, recorder } = yield* opened;
      const other = new DatabaseSync(file);
      yield* Effect.addFinalizer(() => Effect.sync(() => other.close()));
      const before = yield* commits;
      const told: Array<boolean> = [];
      const takes = (id: string) => take(recorder, id, began(id), (it) => told.push(it));
      other.exec("BEGIN IMMEDIATE");
      assert.isTrue(takes("r"));
      yield* turns(3);
      assert.deepStrictEqual(told, []);
      assert.isTrue(takes("s"));
      other.exec("ROLLBACK");
      assert.isTrue(yield* Folder.together(recorder, "t", began("t")));
      assert.deepStrictEqual(told, [true, true]);
      assert.strictEqual((yield* commits) - before, 1);
    }),
  );

  it.effect("that wait for another process's commit are left to the other way when the recorder closes", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const scope = yield* Scope.make();
      const recorder = yield* Scope.provide(Folder.open({ file, lockWaitMs: 1 }), scope);
      yield* recorder.write("first", began("first"));
      const other = new DatabaseSync(file);
      yield* Effect.addFinalizer(() => Effect.sync(() => other.close()));
      const told: Array<boolean> = [];
      other.exec("BEGIN IMMEDIATE");
      assert.isTrue(take(recorder, "r", began("r"), (it) => told.push(it)));
      yield* Scope.close(scope, Exit.void);
      assert.deepStrictEqual(told, [false]);
    }),
  );

  it.effect("that were accepted are committed when the recorder closes, and later ones are not accepted", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const scope = yield* Scope.make();
      const recorder = yield* Scope.provide(Folder.open({ file }), scope);
      yield* recorder.write("first", began("first"));
      const told: Array<boolean> = [];
      const takes = (id: string) => take(recorder, id, began(id), (it) => told.push(it));
      assert.isTrue(takes("r"));
      yield* Scope.close(scope, Exit.void);
      assert.deepStrictEqual(told, [true]);
      assert.isFalse(takes("s"));
      assert.strictEqual((yield* (yield* Folder.open({ file })).runs()).length, 2);
    }),
  );
});

describe("nothing of a step is on record", () => {
  /** Changes of the file by another process or an operator before the step, and the error of the single way afterwards. */
  const spoiled: Readonly<Record<string, readonly [spoil: (db: DatabaseSync, file: string) => void, then: string]>> = {
    "where another process has fenced the lease": [
      (db) => db.exec("UPDATE stream_recovery_leases SET fenced = 1"),
      "fenced",
    ],
    "where another process has written a row of it": [
      (db) => db.exec("UPDATE stream_recovery_runs SET version = version + 1 WHERE run_id = 'first'"),
      "taken",
    ],
    "where a run of it is forgotten": [
      (db) => db.exec("DELETE FROM stream_recovery_runs WHERE run_id = 'first'"),
      "unknown_run",
    ],
    "where an id of it is on record": [
      (db) =>
        db.exec(`INSERT INTO stream_recovery_runs (run_id, version, owner, state, provider, model, started_at, broken, record)
          SELECT 'new', version, owner, state, provider, model, started_at, broken, record FROM stream_recovery_runs`),
      "taken",
    ],
    "where another process holds the lock": [(db) => db.exec("BEGIN IMMEDIATE"), "taken"],
    "where the file is gone": [(_, file) => renameSync(file, `${file}.away`), "unavailable"],
  };
  const known = ["first", [E.noted(1)]] as const;
  const fresh = ["new", began("new")] as const;
  for (const [why, [spoil, then]] of Object.entries(spoiled)) {
    /** The write whose row is spoiled comes after another one, or alone, in which case its statement is a separate transaction. */
    const alone = why === "where an id of it is on record" ? fresh : known;
    for (const all of [[["beside", began("beside")], known, fresh], [alone]] as const) {
      it.effect(all.length === 1 ? `${why}, of one run` : why, () =>
        Effect.gen(function* () {
          const { file, recorder } = yield* opened;
          const other = new DatabaseSync(file);
          yield* Effect.addFinalizer(() => Effect.sync(() => other.close()));
          const [rows, count] = [
            other.prepare("SELECT run_id, record FROM stream_recovery_runs ORDER BY seq"),
            yield* commits,
          ];
          spoil(other, file);
          const before = rows.all();
          assert.deepStrictEqual(new Set(yield* write(recorder, all)), new Set([false]));
          assert.deepStrictEqual(rows.all(), before);
          assert.strictEqual(yield* commits, count);
          if (other.isTransaction) other.exec("ROLLBACK");
          const result = yield* Effect.result(recorder.write("first", [E.noted(1)]));
          assert.strictEqual(result._tag === "Success" ? "taken" : result.failure.reason, then);
        }),
      );
    }
  }

  const provider = (E.begun("bad") as { readonly provider: object }).provider;
  const cycle: Record<string, unknown> = { ...provider };
  cycle.self = cycle;
  const throws = {
    toJSON: () => {
      throw new Error("no data");
    },
  };
  const noData: Readonly<Record<string, object>> = {
    "a number that JSON does not know": { ...provider, extra: 1n },
    "a cycle": cycle,
    "what throws": { ...provider, ...throws },
  };
  for (const [what, value] of Object.entries(noData)) {
    it.effect(`where an entry of it holds ${what}; the next group is on record, and the scope closes`, () =>
      Effect.gen(function* () {
        const { file, recorder } = yield* opened;
        // An untyped program may pass this.
        const bad = [{ ...E.begun("bad"), provider: value } as Entry];
        const step = write(recorder, [
          ["beside", began("beside")],
          ["bad", bad],
        ]);
        assert.deepStrictEqual(yield* step, [false, false]);
        assert.isTrue(yield* Folder.together(recorder, "beside", began("beside")));
        const ends = write(recorder, [
          ["first", [E.ended()]],
          ["bad", bad],
        ]);
        assert.deepStrictEqual(yield* ends, [false, false]);
        const [fine, refused] = yield* Effect.all(
          [Effect.result(recorder.write("first", [E.ended()])), Effect.result(recorder.write("bad", bad))],
          { concurrency: "unbounded" },
        );
        assert.deepStrictEqual([fine._tag, refused._tag], ["Success", "Failure"]);
        assert.isTrue(yield* Folder.together(recorder, "next", began("next")));
        const rows = new DatabaseSync(file, { readOnly: true });
        const ids = rows.prepare("SELECT run_id FROM stream_recovery_runs ORDER BY seq").all();
        rows.close();
        assert.deepStrictEqual(
          ids.map(({ run_id }) => run_id),
          ["first", "beside", "next"],
        );
      }),
    );
  }

  it.effect("if the lease was not renewed in time, until a single write has renewed it", () =>
    Effect.gen(function* () {
      const frozen = { is: false };
      const recorder = yield* Folder.open(
        { file: yield* Folder.emptyPath, leaseMs: 3_000 },
        { stopped: () => frozen.is },
      );
      yield* recorder.write("first", began("first"));
      frozen.is = true;
      yield* TestClock.adjust(1_500);
      assert.isUndefined(yield* Folder.together(recorder, "first", [E.noted(1)]));
      yield* recorder.write("first", [E.noted(1)]);
      assert.isTrue(yield* Folder.together(recorder, "first", [E.noted(2)]));
    }),
  );

  it.effect("of a run that this process has lost, or has released", () =>
    Effect.gen(function* () {
      const { file, recorder } = yield* opened;
      yield* recorder.write("parked", [...began("parked"), { _tag: "RunParked", reason: "interrupted" }]);
      assert.isFalse(yield* Folder.together(recorder, "parked", [E.attempt(2)]));
      const other = new DatabaseSync(file);
      other.exec("UPDATE stream_recovery_leases SET fenced = 1");
      other.close();
      yield* recorder.write("second", began("second"));
      assert.isFalse(yield* Folder.together(recorder, "first", [E.noted(1)]));
      assert.isTrue(yield* Folder.together(recorder, "second", [E.noted(1)]));
    }),
  );
});
