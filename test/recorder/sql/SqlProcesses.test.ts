import { DatabaseSync } from "node:sqlite";
import { isDeepStrictEqual } from "node:util";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { polled } from "../../Polling.ts";
import { seeded } from "../../Seeded.ts";
import * as E from "../Entries.ts";
import { record } from "../suite/Bench.ts";
import * as Folder from "./SqlFolder.ts";
import { claimWhenOver, type Outcome, SqlProcess } from "./SqlProcess.ts";

const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_122);
const begun = [E.begun("r"), E.attempt(1)];

/** Freezes a process outside a commit: inside one it would keep the lock, and no other process could write until it wakes. */
const freeze = (file: string, it: SqlProcess): Effect.Effect<void> =>
  Effect.suspend(() => {
    it.stop();
    const database = new DatabaseSync(file, { timeout: 200 });
    try {
      database.exec("BEGIN IMMEDIATE; COMMIT");
      return Effect.void;
    } catch {
      it.go();
      return Effect.andThen(Effect.yieldNow, freeze(file, it));
    } finally {
      database.close();
    }
  });

/** Polls until a run's owner has been silent for its lease, by the wall clock. */
const untilSilent = (by: SqlProcess | undefined, runId: string): Effect.Effect<void> =>
  Effect.asVoid(
    polled(
      Effect.map(by?.call("orphans", 100, { waits: false }) ?? Effect.die("no process"), ({ value }) =>
        JSON.stringify(value).includes(`"run_id":"${runId}"`) ? true : undefined,
      ),
    ),
  );

/** Repeats the claims until one of them succeeds. */
const untilOne = (claims: Effect.Effect<ReadonlyArray<Outcome>>): Effect.Effect<ReadonlyArray<Outcome>> =>
  polled(Effect.map(claims, (outcomes) => (outcomes.some(({ failed }) => failed !== "owned") ? outcomes : undefined)));

const integrity = (file: string): unknown => {
  const database = new DatabaseSync(file);
  const [row] = database.prepare("PRAGMA integrity_check").all();
  database.close();
  return row?.integrity_check;
};

describe("processes that share a file", () => {
  it.live("three start at once without a file, repeatedly, and all of them write", () =>
    Effect.gen(function* () {
      for (let round = 0; round < 3; round += 1) {
        const file = yield* Folder.emptyPath;
        const names = ["a", "b", "c"];
        const all = yield* Effect.forEach(names, () => SqlProcess.start(file), { concurrency: "unbounded" });
        const outcomes = yield* Effect.forEach(
          all.flatMap((it, index) => Array.from({ length: 20 }, (_, n) => ({ it, runId: `${names[index]}${n}` }))),
          ({ it, runId }) => it.call("write", runId, E.life(runId)),
          { concurrency: "unbounded" },
        );
        assert.deepStrictEqual(
          outcomes.filter(({ failed }) => failed !== undefined),
          [],
        );
        const here = yield* Folder.open({ file });
        assert.strictEqual((yield* here.runs({ limit: 1_000 })).length, 60);
        assert.deepStrictEqual(yield* record(here, "c19"), E.folded(E.life("c19")));
      }
    }).pipe(Effect.scoped),
  );

  it.live("one is killed: its run is taken over when its lease is over, not before", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [first, second] = [yield* SqlProcess.start(file, 400), yield* SqlProcess.start(file, 400)];
      yield* first.call("write", "r", begun);
      assert.deepInclude(yield* second.call("claim", "r"), { failed: "owned" });
      yield* first.kill;
      assert.deepInclude(yield* second.call("orphans"), { value: [] });
      const claimed = yield* claimWhenOver(second, "r");
      assert.deepStrictEqual(claimed.value, E.folded(begun));
      assert.notProperty(yield* second.call("write", "r", [{ _tag: "RunResumed" }]), "failed");
    }).pipe(Effect.scoped),
  );

  it.live("a frozen one that was fenced writes nothing when it wakes", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const all = yield* Effect.forEach([1, 2, 3], () => SqlProcess.start(file, 400), { concurrency: "unbounded" });
      const [frozen, second, third] = all;
      if (frozen === undefined || second === undefined || third === undefined) throw new Error("three were started");
      yield* frozen.call("write", "r", begun);
      yield* freeze(file, frozen);
      const claims = Effect.forEach([second, third], (it) => it.call("claim", "r"), { concurrency: "unbounded" });
      const [one, other] = yield* untilOne(claims);
      assert.deepStrictEqual([one?.failed, other?.failed].toSorted(), ["owned", undefined]);
      const here = yield* Folder.open({ file });
      const before = yield* record(here, "r");
      frozen.go();
      const writes = [E.raised(1, { shown: "text" }), E.noted(1), E.asked("r", 1), E.ended(), E.attempt(2)];
      for (const entry of writes) assert.deepInclude(yield* frozen.call("write", "r", [entry]), { failed: "fenced" });
      assert.deepStrictEqual(yield* record(here, "r"), before);
      assert.notProperty(yield* frozen.call("write", "new", [E.begun("new")]), "failed");
    }).pipe(Effect.scoped),
  );

  it.live("a frozen one that wakes before its lease was taken keeps its run, for any length of the freeze", () =>
    Effect.gen(function* () {
      const file = yield* Folder.emptyPath;
      const [frozen, second] = [yield* SqlProcess.start(file, 1_500), yield* SqlProcess.start(file, 1_500)];
      yield* frozen.call("write", "r", begun);
      yield* freeze(file, frozen);
      yield* untilSilent(second, "r");
      // The second one has begun its watch, but not watched for a lease.
      const claim = yield* Effect.forkChild(second.call("claim", "r"));
      yield* second.call("run", "r");
      frozen.go();
      assert.deepInclude(yield* Fiber.join(claim), { failed: "owned" });
      assert.notProperty(yield* frozen.call("write", "r", [E.noted(1)]), "failed");
    }).pipe(Effect.scoped),
  );

  for (const aheadMs of [60_000, -60_000]) {
    it.live(`one whose clock is ${aheadMs / 1_000} s off takes no run from one with a heartbeat`, () =>
      Effect.gen(function* () {
        const file = yield* Folder.emptyPath;
        const [owner, other] = [yield* SqlProcess.start(file, 900), yield* SqlProcess.start(file, 900, aheadMs)];
        yield* owner.call("write", "r", begun);
        for (let look = 0; look < 3; look += 1) {
          assert.deepInclude(yield* other.call("claim", "r"), { failed: "owned" });
          assert.deepInclude(yield* other.call("orphans"), { value: [] });
        }
        assert.notProperty(yield* owner.call("write", "r", [E.noted(1)]), "failed");
        yield* owner.kill;
        assert.notProperty(yield* claimWhenOver(other, "r"), "failed");
      }).pipe(Effect.scoped),
    );
  }

  for (const count of [2, 3]) {
    it.live(`a lock that is held for longer than the lease takes no run from ${count} live ones`, () =>
      Effect.gen(function* () {
        const file = yield* Folder.emptyPath;
        const numbers = Array.from({ length: count }, (_, n) => n);
        const all = yield* Effect.forEach(numbers, () => SqlProcess.start(file, 900), { concurrency: "unbounded" });
        for (const [n, it] of all.entries()) yield* it.call("write", `r${n}`, [E.begun(`r${n}`), E.attempt(1)]);
        for (let outage = 0; outage < 2; outage += 1) {
          const lock = new DatabaseSync(file, { timeout: 5_000 });
          lock.exec("BEGIN EXCLUSIVE");
          // All of them want to look while the store is away, and the first one to return looks first.
          const looks = yield* Effect.forEach(all, (it) => Effect.forkChild(it.call("orphans")));
          yield* untilSilent(all[0], "r1");
          lock.exec("COMMIT");
          lock.close();
          for (const look of looks) assert.deepInclude(yield* Fiber.join(look), { value: [] });
          for (const [n, it] of all.entries()) {
            assert.deepInclude(yield* it.call("claim", `r${(n + 1) % count}`), { failed: "owned" });
            assert.notProperty(yield* it.call("write", `r${n}`, [E.noted(outage)]), "failed");
          }
        }
      }).pipe(Effect.scoped),
    );
  }

  it.live(`kill -9 during writes loses nothing committed and damages nothing; seed ${seed}`, () =>
    Effect.gen(function* () {
      const random = seeded(seed);
      const file = yield* Folder.emptyPath;
      for (let round = 0; round < 6; round += 1) {
        const [one, two] = yield* Effect.all([SqlProcess.start(file), SqlProcess.start(file)], {
          concurrency: "unbounded",
        });
        const commits = 1 + Math.floor(random() * 120);
        yield* Effect.all([one.storm(`a${round}-`, commits), two.storm(`b${round}-`, 60)], {
          concurrency: "unbounded",
        });
        yield* Effect.all([one.kill, two.kill], { concurrency: "unbounded" });
        assert.strictEqual(integrity(file), "ok", `seed ${seed}, round ${round}`);
        const here = yield* Folder.open({ file });
        for (const [runId, committed] of [...one.committed, ...two.committed]) {
          const life = E.life(runId);
          const found = yield* record(here, runId);
          // The last commit before the kill may not have been reported.
          const more = isDeepStrictEqual(found, E.folded(life.slice(0, committed + 1))) ? 1 : 0;
          assert.deepStrictEqual(found, E.folded(life.slice(0, committed + more)), `seed ${seed}, ${runId}`);
        }
      }
    }).pipe(Effect.scoped),
  );
});
