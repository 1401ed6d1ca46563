/**
 * Lets processes of two neighbouring versions work over one store, real ones, and judges what is on record afterwards.
 */
import { isDeepStrictEqual } from "node:util";
import { assert } from "@effect/vitest";
import { Effect, type Scope } from "effect";
import * as E from "../Entries.ts";
import { type Outcome, SqlProcess } from "../sql/SqlProcess.ts";
import { type Recorder, record } from "./Bench.ts";

/** Lease of these processes, in milliseconds: one of them dies. */
const leaseMs = 1_500;

/** Commits that each storm goes on for. */
const commits = 60;

/** Asks again while somebody may still drive the run. */
const claimed = (by: SqlProcess, runId: string): Effect.Effect<Outcome> =>
  Effect.filterOrElse(
    by.call("claim", runId),
    ({ failed }) => failed !== "owned",
    () => claimed(by, runId),
  );

/** A process of the version before, or of this one. */
export const start = (store: string, version: "previous" | "now"): Effect.Effect<SqlProcess, never, Scope.Scope> =>
  SqlProcess.start(store, leaseMs, 0, version);

/** Every entry that was acknowledged is there, and none that was never written; the last one may not have been told. */
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
 * Two processes of the version before write, and go on while two of this version open the store and change its tables. Then each
 * takes over what one of the other version leaves behind.
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

/** What a process of either version leaves behind is taken over by one of the other. */
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
    assert.deepStrictEqual((yield* claimed(living, runId)).value, E.folded([E.begun(runId), E.attempt(1)]), runId);
    assert.notProperty(yield* living.call("write", runId, [{ _tag: "RunResumed" }, E.ended()]), "failed");
  }
});
