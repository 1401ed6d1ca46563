/** Agents live through outages, limits and sleep in virtual time, and nothing is lost, doubled or asked for in vain. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { Diary } from "../../scripts/outage/Diary.ts";
import { judge } from "../../scripts/outage/Judge.ts";
import { lines } from "../../scripts/outage/Report.ts";
import { play } from "../../scripts/outage/World.ts";

/** Runs that were refused twice, lost their path then, and went again behind its return. */
const refusedBefore = (diary: Diary): number =>
  [...diary.runs.values()].filter(({ path, requests }) =>
    diary.departures.some((away) => {
      const back = diary.returns.find((it) => it.path === path && it.at > away.at)?.at ?? Number.POSITIVE_INFINITY;
      const before = requests.filter((it) => it.refused && it.at < away.at);
      return away.path === path && before.length >= 2 && requests.some(({ at }) => at >= back);
    }),
  ).length;

describe("An hour of agents in a bad network", () => {
  for (const [seed, agents, unprobed] of [
    [1, 150, 0],
    [2, 60, 0],
    [3, 60, 0],
    [13, 120, 0],
    [7, 60, 3],
    [14, 120, 1],
    [44, 80, 0],
  ] as const)
    it.live(`seed ${seed}: ${agents} agents`, () =>
      Effect.gen(function* () {
        const { diary } = yield* Effect.promise(() => play({ agents, minutes: 60, seed }));
        assert.deepStrictEqual(
          lines(judge(diary)).filter((line) => !line.startsWith("ok")),
          [],
        );
        assert.isAbove(diary.returns.length, 20, "paths came back");
        assert.isAbove(diary.refusals.length, 0, "providers refused and said how long");
        assert.isAbove(refusedBefore(diary), 0, "runs were refused before an outage");
        assert.strictEqual(diary.unprobed.size, unprobed, "paths that nobody can probe");
        if (unprobed < 3) assert.isAbove(diary.probes, 100, "paths were asked");
        else assert.strictEqual(diary.probes, 0, "paths were asked");
        assert.isAbove([...diary.effects].length, 100, "tools ran");
      }),
    );

  it.live("is the same for the same seed", () =>
    Effect.gen(function* () {
      const told = (it: Awaited<ReturnType<typeof play>>) => JSON.stringify([...it.diary.runs.values()]);
      const first = yield* Effect.promise(() => play({ agents: 10, minutes: 15, seed: 7 }));
      const again = yield* Effect.promise(() => play({ agents: 10, minutes: 15, seed: 7 }));
      assert.strictEqual(told(first), told(again));
    }),
  );
});
