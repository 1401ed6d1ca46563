/**
 * Entries that wait for the store are written until none is left, even if new ones arrive meanwhile.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import { Backlog, backlogPauseMs, type Unwritten, waiting } from "../../../src/runtime/run/Backlog.ts";
import * as E from "../../recorder/Entries.ts";

describe("a run that waits for the store", () => {
  it.effect("keeps waiting if its next write failed after the waiting entries were written (L7)", () =>
    Effect.gen(function* () {
      const backlog = yield* Backlog.make;
      let flushed = 0;
      const run: Unwritten = {
        runId: "run",
        // The store accepts the waiting entries, and is away again for the end of the run, which is written after them.
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

  it.effect("no longer waits if it was flushed and has no new entries", () =>
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

describe("the entries of a run that are kept for later", () => {
  const many = Array.from({ length: 200 }, (_, at) => [E.attempt(at + 1), E.noted(at)]).flat();

  it("lose their evidence before any other entry", () => {
    const kept = waiting(many);
    assert.deepStrictEqual(
      kept,
      many.filter(({ _tag }) => _tag !== "EvidenceNoted"),
    );
    assert.deepStrictEqual(waiting(many.slice(0, 256)), many.slice(0, 256));
  });

  it("are the first and the last ones if more than 256 carry facts", () => {
    const attempts = Array.from({ length: 300 }, (_, at) => E.attempt(at + 1));
    assert.deepStrictEqual(waiting(attempts), [...attempts.slice(0, 128), ...attempts.slice(-128)]);
  });
});
