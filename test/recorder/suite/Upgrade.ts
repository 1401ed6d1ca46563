/**
 * Lets real processes of two consecutive versions work over one store, and judges the record afterwards.
 */
import { isDeepStrictEqual } from "node:util";
import { assert } from "@effect/vitest";
import { Effect, type Scope } from "effect";
import * as E from "../Entries.ts";
import { claimWhenOver, SqlProcess } from "../sql/SqlProcess.ts";
import { type Recorder, record } from "./Bench.ts";

/** Lease of these processes, in milliseconds, one of which dies. */
const leaseMs = 1_500;

/** Commits of each storm. */
const commits = 60;

/** Starts a process of the previous version, or of this one. */
export const start = (store: string, version: "previous" | "now"): Effect.Effect<SqlProcess, never, Scope.Scope> =>
  SqlProcess.start(store, leaseMs, 0, version);

/** Checks that every acknowledged entry is present, and none that was never written. The last one may not have been acknowledged. */
export const nothingLost = Effect.fnUntraced(function* (here: Recorder, processes: ReadonlyArray<SqlProcess>) {
  let runs = 0;
  for (const { committed } of processes) {
    for (const [runId, entries] of committed) {
      const life = E.life(runId);
      const found = yield* record(here, runId);
      const more = isDeepStrictEqual(found, E.folded(life.slice(0, entries + 1))) ? 1 : 0;
      assert.deepStrictEqual(found, E.folded(life.slice(0, entries + more)), runId);
      runs += 1;
    }
  }
  return runs;
});

/**
 * Two processes of the previous version write while two of this version open the store and change its tables. Then each version
 * takes over a run of the other.
 */
export const sideBySide = Effect.fnUntraced(function* (store: string) {
  const [old, oldToo] = [yield* start(store, "previous"), yield* start(store, "previous")];
  yield* Effect.all([old.storm("old", commits), oldToo.storm("too", commits)], { concurrency: 2 });
  const opening = Effect.all([start(store, "now"), start(store, "now")], { concurrency: 2 });
  const [[next, nextToo]] = yield* Effect.all([opening, old.more(commits)], { concurrency: 2 });
  yield* Effect.all(
    [old.more(commits), oldToo.more(commits), next.storm("next", commits), nextToo.storm("nextToo", commits)],
    { concurrency: 4 },
  );
  return { old, oldToo, next, nextToo };
});

/** Lets a process of either version die, and one of the other version take over its run. */
export const takenOver = Effect.fnUntraced(function* (store: string) {
  for (const [dies, lives] of [
    ["previous", "now"],
    ["now", "previous"],
  ] as const) {
    const [dying, living] = [yield* start(store, dies), yield* start(store, lives)];
    const runId = `left by ${dies}`;
    assert.notProperty(yield* dying.call("write", runId, [E.begun(runId), E.attempt(1)]), "failed");
    assert.deepInclude(yield* living.call("claim", runId), { failed: "owned" });
    yield* dying.kill;
    assert.deepStrictEqual(
      (yield* claimWhenOver(living, runId)).value,
      E.folded([E.begun(runId), E.attempt(1)]),
      runId,
    );
    assert.notProperty(yield* living.call("write", runId, [{ _tag: "RunResumed" }, E.ended()]), "failed");
  }
});
