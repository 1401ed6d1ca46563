/**
 * Generates the story of a run that lives in several processes: the provider's responses and breaks, the end of each process,
 * and the person's answers. A seed determines its story.
 */
import type { Failure } from "../../../src/domain/Failure.ts";
import { Dice } from "../Dice.ts";

/** One item of a response. */
export interface Item {
  readonly kind: "text" | "reasoning" | "call";
  /** Delay before it, in milliseconds. */
  readonly wait: number;
  /** Duration of the call's handler, in milliseconds. */
  readonly handlerMs: number;
}

/** A break of an attempt after a number of items. */
export interface Break {
  readonly after: number;
  readonly failure: Failure | "clean_end";
}

/** The end of a process: killed at a write (before or after it is made), or shut down in order after some time. */
export type Death =
  | { readonly kind: "kill"; readonly at: number; readonly side: "before" | "after" }
  | { readonly kind: "interrupt" | "close" | "cancel"; readonly afterMs: number };

export interface Story {
  readonly seed: number;
  /** Content of each response: the first one, then one per continuation. The last one repeats under its own name. */
  readonly responses: ReadonlyArray<ReadonlyArray<Item>>;
  /** By attempt, over all processes. Further attempts do not break. */
  readonly breaks: ReadonlyArray<Break>;
  readonly deaths: ReadonlyArray<Death>;
  /** Recoveries by another process, between two processes; each may die at a write. */
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

/** Generates the story of a seed. */
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
