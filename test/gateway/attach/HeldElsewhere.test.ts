import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import { runsMax } from "../../../src/gateway/attach/AttachRegistry.ts";
import { gatherMs, HeldElsewhere, held } from "../../../src/gateway/attach/HeldElsewhere.ts";
import type { BusEnvelope } from "../../../src/gateway/workers/BusEnvelope.ts";
import { members } from "../workers/Members.ts";

const key = (n: number): string => n.toString(16).padStart(64, "0");

/** Workers, what each has heard of the others, and the messages that were sent. */
const workers = Effect.fnUntraced(function* (count: number) {
  const { ends, router } = yield* members(count);
  const sent: Array<{ readonly held: ReadonlyArray<string>; readonly over: ReadonlyArray<string> }> = [];
  yield* ends[1]?.bus.on(held, (told) => sent.push(told)) ?? Effect.void;
  const all = yield* Effect.forEach(ends, ({ bus }) => HeldElsewhere.make(bus));
  const [first, second, third] = all;
  if (first === undefined || second === undefined || third === undefined) return yield* Effect.die("too few");
  return { first, second, third, sent, router, ends };
});

describe("what a worker knows of runs that others hold", () => {
  it.effect(
    "is told at once of a run that its reader has left, and of what has begun within a moment in one message",
    () =>
      Effect.gen(function* () {
        const { first, second, sent, third } = yield* workers(3);
        assert.isTrue(second.isEmpty);
        first.holds(key(1), "now");
        assert.deepStrictEqual([second.ownersOf(key(1)), third.ownersOf(key(1))], [[1], [1]]);
        assert.deepStrictEqual(first.ownersOf(key(1)), [], "its own runs it knows without");
        for (const n of [2, 3, 4]) first.holds(key(n), "soon");
        first.over(key(4));
        assert.isTrue(second.ownersOf(key(2)).length === 0);
        yield* TestClock.adjust(gatherMs);
        assert.deepStrictEqual(sent, [
          { held: [key(1)], over: [] },
          { held: [key(2), key(3)], over: [] },
        ]);
        first.holds(key(5), "soon");
        first.hurry();
        assert.deepStrictEqual(second.ownersOf(key(5)), [1]);
      }),
  );

  it.effect("holds a key until the last run of it is over, at each of its workers", () =>
    Effect.gen(function* () {
      const { first, second, third } = yield* workers(3);
      first.holds(key(1), "now");
      first.holds(key(1), "now");
      third.holds(key(1), "now");
      assert.deepStrictEqual(second.ownersOf(key(1)), [1, 3]);
      first.over(key(1));
      yield* TestClock.adjust(gatherMs);
      assert.deepStrictEqual(second.ownersOf(key(1)), [1, 3]);
      first.over(key(1));
      assert.deepStrictEqual(second.ownersOf(key(1)), [1, 3]);
      yield* TestClock.adjust(gatherMs);
      assert.deepStrictEqual(second.ownersOf(key(1)), [3]);
      third.over(key(1));
      third.holds(key(1), "soon");
      third.over(key(1));
      yield* TestClock.adjust(gatherMs);
      assert.isTrue(second.isEmpty);
    }),
  );

  it.effect("forgets a worker that has died, and tells one that comes later what there is", () =>
    Effect.gen(function* () {
      const { ends, first, router, second, third } = yield* workers(3);
      first.holds(key(1), "now");
      third.holds(key(2), "now");
      router.leave(1);
      assert.deepStrictEqual([second.ownersOf(key(1)), second.ownersOf(key(2))], [[], [3]]);
      // Its pipe may still hold what it said: nobody would take that back.
      router.route(1, { _tag: "Notice", topic: "runs_held", from: 1, to: 2, body: { held: [key(1)], over: [] } });
      assert.deepStrictEqual(second.ownersOf(key(1)), []);
      router.leave(2);
      assert.isUndefined(third.ownersOf(key(9))[0]);
      const later = yield* HeldElsewhere.make(ends[1]?.bus ?? (yield* Effect.die("none")));
      router.join(2, ends[1]?.port ?? (yield* Effect.die("none")));
      assert.deepStrictEqual(later.ownersOf(key(2)), [3]);
    }),
  );

  it.effect("keeps no more of a worker than that may hold, and takes no word that is none (L11)", () =>
    Effect.gen(function* () {
      const { first, router, second } = yield* workers(3);
      const tell = (body: unknown): BusEnvelope => ({ _tag: "Notice", topic: "runs_held", from: 1, to: 2, body });
      const many = Array.from({ length: runsMax }, (_, n) => key(n));
      for (const wrong of [
        null,
        [],
        { held: [key(1)] },
        { held: ["sk-one"], over: [] },
        { held: [key(1).toUpperCase().replace("1", "F")], over: [] },
        { held: [...many, key(runsMax)], over: [] },
        { held: [1], over: [] },
      ])
        router.route(1, tell(wrong));
      assert.isTrue(second.isEmpty);
      router.route(1, tell({ held: many, over: [], later: "a version that says more" }));
      assert.isFalse(second.isEmpty);
      // The word that one of them is over may be lost: what is told later counts more than what was told first.
      router.route(1, tell({ held: [key(0)], over: [] }));
      first.holds(key(runsMax + 1), "now");
      assert.deepStrictEqual(second.ownersOf(key(runsMax + 1)), [1]);
      assert.deepStrictEqual([second.ownersOf(key(0)), second.ownersOf(key(1))], [[1], []]);
      router.route(1, tell({ held: [], over: many }));
      assert.isFalse(second.isEmpty);
      router.route(1, tell({ held: [], over: [key(runsMax + 1)] }));
      assert.isTrue(second.isEmpty);
      first.holds(key(runsMax + 2), "now");
      assert.deepStrictEqual(second.ownersOf(key(runsMax + 2)), [1]);
    }),
  );
});
