/**
 * Makes up the story of two processes at once over one SQLite file: which of them stands still and when, whose clock is off,
 * when the store is gone for both, and what a person answers at any time.
 */
import type { Choice } from "../../../src/domain/Decision.ts";
import { Dice } from "../Dice.ts";
import { type Story, storyOf } from "./Story.ts";

/** What happens to one of two processes. */
export interface Twin {
  /** Milliseconds that its wall clock is off. */
  readonly clockOff: number;
  /** It stands still: from one of its writes on, before or after it, for so many milliseconds; for ever is its death. */
  readonly stops: ReadonlyArray<{
    readonly write: number;
    readonly side: "before" | "after";
    readonly ms: number | "for_ever";
  }>;
  /** Milliseconds between two looks for runs that no process drives. */
  readonly looksEvery: number;
}

/** A run and two processes that both want to drive it. */
export interface TwinStory {
  readonly seed: number;
  readonly run: Story;
  /** Text that a process has begun to show goes on where the other one takes the run over. */
  readonly flowsOn: boolean;
  readonly twins: readonly [Twin, Twin];
  /** The store takes and gives nothing meanwhile. */
  readonly outages: ReadonlyArray<{ readonly at: number; readonly ms: number }>;
  /** Whatever a person says, offered or not, once or twice, early or late. */
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

/** Makes up a story of two. */
export const twinStoryOf = (seed: number): TwinStory => {
  const dice = new Dice(seed ^ 0x2_b07);
  const story = storyOf(seed);
  return {
    seed,
    // Slow enough that a lease can run out in the middle of it.
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
    // Drawn last: the stories of older seeds stay what they were.
    flowsOn: dice.chance(0.5),
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
