/**
 * Generates the story of two processes at once over one SQLite file: which one freezes and when, the error of each clock, the
 * outages of the store, and a person's answers at any time.
 */
import type { Choice } from "../../../src/domain/Decision.ts";
import { Dice } from "../Dice.ts";
import { type Story, storyOf } from "./Story.ts";

/** The faults of one of two processes. */
export interface Twin {
  /** Error of its wall clock, in milliseconds. */
  readonly clockOff: number;
  /** Freezes before or after one of its writes, for some milliseconds; a freeze without end is its death. */
  readonly stops: ReadonlyArray<{
    readonly write: number;
    readonly side: "before" | "after";
    readonly ms: number | "for_ever";
  }>;
  /** Interval at which it looks for runs that no process drives, in milliseconds. */
  readonly looksEvery: number;
}

/** A run, and two processes that both try to drive it. */
export interface TwinStory {
  readonly seed: number;
  readonly run: Story;
  readonly twins: readonly [Twin, Twin];
  /** Periods in which the store neither reads nor writes. */
  readonly outages: ReadonlyArray<{ readonly at: number; readonly ms: number }>;
  /** A person's answers, offered or not, once or twice, early or late. */
  readonly answers: ReadonlyArray<{
    readonly at: number;
    readonly revision: number;
    readonly choice: Choice;
    readonly through: 0 | 1;
  }>;
}

const choices: readonly [Choice, ...Array<Choice>] = [
  "retry",
  "continue",
  "it_ran",
  "it_did_not_run",
  "accept",
  "stop",
];

/** Generates the story of a seed. */
export const twinStoryOf = (seed: number): TwinStory => {
  const dice = new Dice(seed ^ 0x2_b07);
  const story = storyOf(seed);
  return {
    seed,
    // Slow enough that a lease can expire in the middle of the run.
    run: {
      ...story,
      guarded: true,
      deaths: [],
      recoveries: [],
      refusedWrites: [],
      cursors: false,
      responses: story.responses.map((items) =>
        items.map((item) => ({
          ...item,
          wait: item.wait * dice.pick([1, 100, 400]),
          handlerMs: item.handlerMs * dice.pick([1, 50, 200]),
        })),
      ),
    },
    twins: [twinOf(dice), twinOf(dice)],
    outages: dice.chance(0.3) ? [{ at: dice.between(0, 60_000), ms: dice.pick([3_000, 14_000, 25_000, 60_000]) }] : [],
    answers: dice.times(dice.between(0, 4), () => ({
      at: dice.between(0, 150_000),
      revision: dice.between(1, 3),
      choice: dice.pick(choices),
      through: dice.pick([0, 1] as const),
    })),
  };
};

const twinOf = (dice: Dice): Twin => ({
  clockOff: dice.weighted([
    [5, 0],
    [1, dice.pick([-2_000, 2_000])],
    [1, dice.pick([-20_000, 20_000])],
    [1, dice.pick([-3_600_000, 3_600_000])],
  ]),
  stops: dice.chance(0.5) ? dice.times(dice.between(1, 2), () => stopOf(dice)) : [],
  looksEvery: dice.pick([4_000, 11_000, 30_000]),
});

const stopOf = (dice: Dice): Twin["stops"][number] => ({
  write: dice.between(1, 12),
  side: dice.pick(["before", "after"]),
  ms: dice.pick<number | "for_ever">([1_000, 4_000, 8_000, 20_000, 60_000, "for_ever"]),
});
