/** Agents live through outages, limits and sleep in virtual time, and nothing is lost, doubled or asked for in vain. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { judged } from "../../scripts/outage/Judge.ts";
import { lines } from "../../scripts/outage/Report.ts";
import { play } from "../../scripts/outage/World.ts";

describe("An hour of agents in a bad network", () => {
  for (const [seed, agents] of [
    [1, 150],
    [2, 60],
    [3, 60],
    [13, 120],
  ] as const)
    it.live(
      `seed ${seed}: ${agents} agents`,
      () =>
        Effect.gen(function* () {
          const { diary } = yield* Effect.promise(() => play({ agents, minutes: 60, seed }));
          assert.deepStrictEqual(
            lines(judged(diary)).filter((line) => !line.startsWith("ok")),
            [],
          );
          assert.isAbove(diary.returns.length, 20, "paths came back");
          assert.isAbove(diary.refusals.length, 0, "providers refused");
          assert.isAbove(diary.probes, 100, "paths were asked");
          assert.isAbove([...diary.effects].length, 100, "tools ran");
        }),
      300_000,
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
