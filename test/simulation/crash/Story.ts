/**
 * Makes up the story of a run that lives in several processes: what its provider says, where it breaks, how each process
 * ends, and what its person answers. One seed, one story.
 */
import type { Failure } from "../../../src/domain/Failure.ts";
import { Dice } from "../Dice.ts";

/** One thing that the provider says. */
export interface Item {
  readonly kind: "text" | "reasoning" | "call";
  /** Milliseconds before it. */
  readonly wait: number;
  /** How long the call's handler takes, in milliseconds. */
  readonly handlerMs: number;
}

/** Where an attempt breaks: after so many items, with what. */
export interface Break {
  readonly after: number;
  readonly failure: Failure | "clean_end";
}

/** How a process ends: dead at a write (which is made or not), or left in order after some time. */
export type Death =
  | { readonly kind: "kill"; readonly at: number; readonly side: "before" | "after" }
  | { readonly kind: "interrupt" | "close" | "cancel"; readonly afterMs: number };

/** A run over several processes. */
export interface Story {
  readonly seed: number;
  /** What each response says: the first one, then one a continuation; the last one repeats under its own name. */
  readonly responses: ReadonlyArray<ReadonlyArray<Item>>;
  /** By attempt, over all processes; attempts after them do not break. */
  readonly breaks: ReadonlyArray<Break>;
  readonly deaths: ReadonlyArray<Death>;
  /** Between processes: another one recovers, and may die at a write itself. */
  readonly recoveries: ReadonlyArray<{ readonly dies: number | undefined } | undefined>;
  /** Writes of the first process that the store refuses. */
  readonly refusedWrites: ReadonlyArray<number>;
  readonly guarded: boolean;
  readonly verify: boolean;
  readonly canContinue: boolean;
  readonly continueText: "ask" | "auto";
  readonly reveal: "live" | "on_complete";
  readonly discardable: boolean;
  readonly cursors: boolean;
}

const failures: readonly [Failure | "clean_end", ...Array<Failure | "clean_end">] = [
  { kind: "transport", code: "ECONNRESET" },
  { kind: "truncated" },
  { kind: "protocol", reason: "damaged_frame" },
  { kind: "overloaded", status: 529 },
  { kind: "server_error", status: 500 },
  { kind: "unknown" },
  { kind: "rejected", reason: "not_found", status: 404 },
  "clean_end",
];

/** Makes up a story. */
export const storyOf = (seed: number): Story => {
  const dice = new Dice(seed);
  const responses = dice.times(dice.between(1, 3), () => dice.times(dice.between(1, 5), () => itemOf(dice)));
  return {
    seed,
    responses,
    breaks: dice.times(dice.between(0, 6), () => ({ after: dice.between(0, 5), failure: dice.pick(failures) })),
    deaths: dice.times(dice.between(1, 4), () => deathOf(dice)),
    recoveries: dice.times(5, () =>
      dice.chance(0.4) ? { dies: dice.chance(0.3) ? dice.between(1, 3) : undefined } : undefined,
    ),
    refusedWrites: dice.chance(0.2) ? dice.times(dice.between(1, 3), () => dice.between(1, 12)) : [],
    guarded: dice.chance(0.8),
    verify: dice.chance(0.3),
    canContinue: dice.chance(0.6),
    continueText: dice.chance(0.3) ? "auto" : "ask",
    reveal: dice.chance(0.2) ? "on_complete" : "live",
    discardable: dice.chance(0.8),
    cursors: dice.chance(0.3),
  };
};

const itemOf = (dice: Dice): Item => ({
  kind: dice.weighted([
    [5, "text"],
    [1, "reasoning"],
    [3, "call"],
  ]),
  wait: dice.chance(0.6) ? dice.between(1, 50) : 0,
  handlerMs: dice.chance(0.5) ? dice.between(1, 200) : 0,
});

const deathOf = (dice: Dice): Death =>
  dice.chance(0.8)
    ? { kind: "kill", at: dice.between(1, 14), side: dice.pick(["before", "after"]) }
    : {
        kind: dice.weighted([
          [4, "interrupt"],
          [1, "close"],
          [1, "cancel"],
        ]),
        afterMs: dice.between(0, 400),
      };
