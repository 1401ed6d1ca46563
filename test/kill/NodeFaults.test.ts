/**
 * Says when a fault is played again, and that nothing that is wrong is played away.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { againMax, type Outcome, repeatUntilMet } from "../../scripts/kill/NodeFaults.ts";

/** Plays these outcomes, one after the other and the last one from then on; what came of it, and how often it was played. */
const played = (...outcomes: readonly [Outcome, ...ReadonlyArray<Outcome>]) =>
  Effect.gen(function* () {
    let plays = 0;
    const outcome = yield* repeatUntilMet((nth) =>
      Effect.sync(() => {
        plays += 1;
        return outcomes[nth] ?? outcomes.at(-1) ?? outcomes[0];
      }),
    );
    return { outcome, plays };
  });

/** Three runs on a quiet machine, of which all were met, or one was missed. */
const met: Outcome = { problems: [], missed: [], remains: [{ slowness: 1 }, { slowness: 1 }, { slowness: 1 }] };
const missed: Outcome = { ...met, missed: ["held was over"] };

describe("A fault that is played", () => {
  it.effect("is played once where it meets all", () =>
    Effect.map(played(met), (it) => assert.deepStrictEqual(it, { outcome: met, plays: 1 })),
  );

  it.effect("is played again where it misses something, and says what", () =>
    Effect.map(played(missed, missed, met), (it) =>
      assert.deepStrictEqual(it, { outcome: { ...met, missed: ["held was over", "held was over"] }, plays: 3 }),
    ),
  );

  it.effect("is wrong where it misses something to the last", () =>
    Effect.map(played(missed), ({ outcome, plays }) => {
      assert.deepStrictEqual(outcome.problems, ["held was over"]);
      assert.lengthOf(outcome.missed, againMax + 1);
      assert.strictEqual(plays, againMax + 1);
    }),
  );

  it.effect("is not played again where something was wrong besides", () => {
    const wrong: Outcome = { ...missed, problems: ["the tool ran twice"] };
    return Effect.map(played(wrong, met), (it) => assert.deepStrictEqual(it, { outcome: wrong, plays: 1 }));
  });

  it.effect("may miss as much as a half on a machine that is too slow, and no more", () =>
    Effect.gen(function* () {
      const slow: Outcome = { ...missed, remains: [{ slowness: 2 }, { slowness: 2 }, { slowness: 2 }] };
      assert.deepStrictEqual(yield* played(slow), { outcome: slow, plays: 1 });
      const more: Outcome = { ...slow, missed: ["held was over", "shown was over"] };
      const { outcome, plays } = yield* played(more);
      assert.deepStrictEqual(outcome.problems, more.missed);
      assert.strictEqual(plays, againMax + 1);
    }),
  );
});
