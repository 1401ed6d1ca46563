/**
 * Log lines while the store accepts no runs: one warning for all of them, at most one per minute, and a line when it is back.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Deferred, Effect, Layer } from "effect";
import { TestClock } from "effect/testing";
import { toBounded } from "../../../src/recorder/BoundedRecorder.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder, withCommit } from "../../../src/recorder/RunRecorder.ts";
import { Backlog, backlogRunsMax, type Unwritten } from "../../../src/runtime/run/Backlog.ts";
import { RunWriter } from "../../../src/runtime/run/RunWriter.ts";
import { heard } from "../../recorder/shared/Heard.ts";

/** Writers of one processor over a store that the test can make unavailable. */
const writing = Effect.fnUntraced(function* (atOnce: boolean) {
  const memory = Context.get(yield* Layer.build(RunRecorder.layerMemory()), RunRecorder);
  const store = { away: true };
  const failed = () => new RecorderError({ reason: "unavailable", run_id: "", message: "the store is away" });
  const write = () => Effect.suspend(() => (store.away ? Effect.fail(failed()) : Effect.void));
  const recorder = atOnce
    ? {
        ...memory,
        write: withCommit(write, "at_once", (_id, _entries, onDone) => onDone(store.away ? failed() : "recorded")),
      }
    : { ...memory, write };
  const backlog = yield* Backlog.make;
  const services = yield* Effect.context<never>();
  const writer = (runId: string) => {
    const owner = {
      ...{ runId, elapsedMs: 0, services, stopped: Deferred.makeUnsafe<void>() },
      ...{ onLost: () => undefined, onUnrecorded: () => undefined },
    };
    return new RunWriter(owner, toBounded(recorder), backlog);
  };
  return { backlog, store, writer };
});

const parked = [{ _tag: "RunParked", reason: "question" }] as const;

describe("a store that is away", () => {
  for (const atOnce of [false, true])
    it.effect(
      `is said once for all its runs, ${atOnce ? "even if it commits in the same step" : "and so is its return"}`,
      () =>
        Effect.gen(function* () {
          const { log, said } = heard();
          yield* Effect.gen(function* () {
            const { store, writer } = yield* writing(atOnce);
            const runs = Array.from({ length: 100 }, (_, index) => writer(`r${index}`));
            for (const run of runs) assert.strictEqual(yield* run.write([...parked], true), "away");
            for (const run of runs) yield* run.write([...parked], true);
            yield* TestClock.adjust("150 seconds");
            store.away = false;
            yield* TestClock.adjust("1 minute");
            assert.strictEqual(yield* writer("later").write([...parked], true), "recorded");
          }).pipe(Effect.scoped, Effect.provide(log));
          const levels = said.map((line) => line.replace(/ (?:away_ms|failures)=\d+/g, ""));
          const away = "WARN cannot record runs; entries are kept until the store accepts them: unavailable";
          assert.deepStrictEqual(levels, [away, away, away, "INFO runs are recorded again"]);
        }),
    );

  it.effect("that makes a run give up its entries says how often, and not each time", () =>
    Effect.gen(function* () {
      const { log, said } = heard();
      yield* Effect.gen(function* () {
        const backlog = yield* Backlog.make;
        const flush: Unwritten["flush"] = Effect.succeed("away");
        for (let run = 0; run < backlogRunsMax + 500; run += 1)
          yield* backlog.add({ runId: `r${run}`, flush, giveUp: () => 2 });
        yield* TestClock.adjust("1 minute");
        yield* backlog.add({ runId: "later", flush, giveUp: () => 2 });
      }).pipe(Effect.scoped, Effect.provide(log));
      const lost = said.filter((line) => line.startsWith("ERROR"));
      assert.lengthOf(lost, 2);
      assert.match(lost[0] ?? "", /they are lost.* why=overflow runs=1 entries=2/);
      assert.match(lost[1] ?? "", /they are lost.* why=overflow runs=500 entries=1000/);
    }),
  );

  it.effect("reports the abandoned entries within a minute once nothing waits any more", () =>
    Effect.gen(function* () {
      const { log, said } = heard();
      yield* Effect.gen(function* () {
        const backlog = yield* Backlog.make;
        let written: "away" | "recorded" = "away";
        const flush: Unwritten["flush"] = Effect.sync(() => written);
        for (let run = 0; run < backlogRunsMax + 3; run += 1)
          yield* backlog.add({ runId: `r${run}`, flush, giveUp: () => 1 });
        written = "recorded";
        yield* TestClock.adjust("10 seconds");
        assert.strictEqual(backlog.size, 0);
      }).pipe(Effect.scoped, Effect.provide(log));
      assert.deepStrictEqual(
        said.map((line) => line.replace(/^.*why=/, "")),
        ["overflow runs=1 entries=1 run_id=r0", "overflow runs=2 entries=2 run_id=r2"],
      );
    }),
  );
});
