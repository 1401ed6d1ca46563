/**
 * What waits for the store is written until nothing of it waits, also where it waits anew while it is written.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import { Backlog, backlogPauseMs, type Unwritten } from "../../../src/runtime/run/Backlog.ts";

describe("a run that waits for the store", () => {
  it.effect("waits on where its next write failed behind the one that took what waited (L7)", () =>
    Effect.gen(function* () {
      const backlog = yield* Backlog.make;
      let flushed = 0;
      const run: Unwritten = {
        runId: "run",
        // The store takes what waits, and is away again for the end of the run, which is written behind it.
        flush: Effect.suspend(() => {
          flushed += 1;
          backlog.remove(run);
          return Effect.as(flushed === 1 ? backlog.add(run) : Effect.void, "recorded" as const);
        }),
        giveUp: () => 1,
      };
      yield* backlog.add(run);
      yield* TestClock.adjust(backlogPauseMs);
      assert.deepStrictEqual([flushed, backlog.size], [1, 1]);
      yield* TestClock.adjust(backlogPauseMs);
      assert.deepStrictEqual([flushed, backlog.size], [2, 0]);
    }),
  );

  it.effect("waits no more where it was flushed and did not come again", () =>
    Effect.gen(function* () {
      const backlog = yield* Backlog.make;
      let flushed = 0;
      const run: Unwritten = {
        runId: "run",
        flush: Effect.sync(() => {
          flushed += 1;
          return "gone" as const;
        }),
        giveUp: () => 1,
      };
      yield* backlog.add(run);
      yield* TestClock.adjust(backlogPauseMs * 4);
      assert.deepStrictEqual([flushed, backlog.size], [1, 0]);
    }),
  );
});
