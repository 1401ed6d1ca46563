/**
 * Draws the world of a scenario with its own dice, so that a seed's provider, tools and person stay as they were before worlds were
 * added. About half of the seeds have a plain world.
 */
import type { Dice } from "./Dice.ts";
import { edgeOf } from "./Edges.ts";
import { type Again, type Moment, plainWorld, type StoreMoment, type World, type WriteFault } from "./Scenario.ts";

/** Adds one kind of fault to a world. */
type Axis = (dice: Dice, world: World) => World;

const axes: readonly [Axis, ...Array<Axis>] = [
  (dice, world) => ({ ...world, faults: dice.times(dice.between(1, 3), () => faultOf(dice)) }),
  (dice, world) => ({ ...world, away: dice.times(dice.between(1, 2), () => awayOf(dice)) }),
  (dice, world) => ({ ...world, digest: dice.pick(["ok", "fails", "hangs", "throws"]) }),
  (dice, world) => ({ ...world, again: againOf(dice) }),
  (dice, world) => ({ ...world, edges: dice.times(dice.between(1, 2), () => edgeOf(dice)) }),
  (dice, world) => ({ ...world, freezes: dice.times(dice.between(1, 2), () => freezeOf(dice)) }),
];

export const worldOf = (dice: Dice): World => {
  if (dice.chance(0.45)) return plainWorld;
  const first = dice.pick(axes)(dice, plainWorld);
  return held(dice.chance(0.3) ? dice.pick(axes)(dice, first) : first);
};

/** Removes the store's faults from a world in which an id is used again. */
const held = (world: World): World =>
  world.again === null ? world : { ...world, faults: [], away: [], digest: world.digest === "none" ? "none" : "ok" };

const faultOf = (dice: Dice): WriteFault => ({
  at: dice.between(0, 12),
  how: dice.pick(["throw", "hang", "deaf", "late"]),
});

const awayOf = (dice: Dice): World["away"][number] => ({
  when: dice.weighted<StoreMoment>([
    [2, { on: "end", nth: 1 }],
    [2, { on: "write", nth: dice.between(1, 8) }],
    [1, { at: dice.pick([0, 1, 20, 700]) }],
    [1, { on: "handler", nth: 1 }],
    [1, { on: "question", nth: 1 }],
  ]),
  ms: dice.pick([1, 400, 20_000, 400_000]),
});

const againOf = (dice: Dice): Again => ({
  how: dice.pick(["same_stream", "new_stream", "new_processor"]),
  when: dice.weighted<number | "ended">([
    [2, "ended"],
    [2, dice.pick([2, 30, 900, 20_000])],
  ]),
});

const freezeOf = (dice: Dice): World["freezes"][number] => {
  const ms = dice.pick([4_000, 30_000, 400_000, 30_000_000]);
  const when = dice.weighted<Moment>([
    [3, { at: dice.pick([1, 25, 600, 3_500, 60_000]) }],
    [2, { on: "event", nth: dice.between(1, 6) }],
    [1, { on: "handler", nth: 1 }],
    [1, { on: "opened", nth: dice.between(1, 2) }],
  ]);
  const [wall, monotonic] = dice.weighted([
    [3, [ms, ms]],
    [2, [ms, 0]],
    [1, [0, ms]],
    [1, [-ms, 0]],
  ] as const);
  return { when, wall, monotonic };
};
