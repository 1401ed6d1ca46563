import { assert, describe, it } from "@effect/vitest";
import * as Restarts from "../../../src/cli/serve/Restarts.ts";

const crash: Restarts.Death = { servedMs: 0, mayPass: false, isOrdered: false, isAlone: true };

/** The reaction to each death of a worker, in order. */
const pauses = (
  served: ReadonlyArray<number>,
  death: Partial<Restarts.Death> = {},
): ReadonlyArray<number | "give_up"> => {
  let deaths = Restarts.none;
  return served.map((servedMs) => {
    const next = Restarts.decideReplacement(deaths, { ...crash, ...death, servedMs });
    if (next === "give_up") return next;
    deaths = next.deaths;
    return next.pauseMs;
  });
};

describe("the replacement of a worker that has died", () => {
  it("happens at once the first time, later each time that the worker dies early, and finally not at all", () => {
    assert.deepStrictEqual(pauses([0, 0, 0, 0, 0]), [0, 250, 500, 1_000, "give_up"]);
    assert.strictEqual(Restarts.deathsMax, 5);
  });

  it("happens at once again after a worker that was healthy", () => {
    const { steadyMs } = Restarts;
    assert.deepStrictEqual(pauses([0, 0, steadyMs, 0, steadyMs - 1]), [0, 250, 0, 250, 500]);
    assert.deepStrictEqual(pauses([0, 0, 0, 0, steadyMs, 0, 0, 0, 0]), [
      0,
      250,
      500,
      1_000,
      0,
      250,
      500,
      1_000,
      "give_up",
    ]);
  });

  it("is tried for as long as the store is away, which counts as no death", () => {
    let deaths = Restarts.none;
    const next = (mayPass: boolean) => {
      const found = Restarts.decideReplacement(deaths, { ...crash, mayPass });
      if (found === "give_up") return found;
      deaths = found.deaths;
      return found.pauseMs;
    };
    assert.deepStrictEqual([next(false), next(false)], [0, 250]);
    for (let times = 0; times < 2 * Restarts.deathsMax; times += 1) assert.strictEqual(next(true), 5_000);
    assert.deepStrictEqual([next(false), next(false), next(false)], [500, 1_000, "give_up"]);
  });

  it("is tried less often, but not abandoned, while a sibling serves", () => {
    const often = [0, 0, 0, 0, 0, 0, 0];
    assert.deepStrictEqual(pauses(often, { isAlone: false }), [0, 250, 500, 1_000, 30_000, 30_000, 30_000]);
    let deaths = Restarts.none;
    const next = (isAlone: boolean) => {
      const found = Restarts.decideReplacement(deaths, { ...crash, isAlone });
      if (found !== "give_up") deaths = found.deaths;
      return found === "give_up" ? found : found.pauseMs;
    };
    for (const _ of often) next(false);
    assert.strictEqual(next(true), "give_up", "the sibling has died as well");
  });

  it("happens at once after an ordered end, or a second later, any number of times, and counts as no death", () => {
    const { steadyMs } = Restarts;
    const often = [steadyMs, 0, 0, 0, 0, 0, 0, steadyMs];
    assert.deepStrictEqual(pauses(often, { isOrdered: true }), [0, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 0]);
  });
});
