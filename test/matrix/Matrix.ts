/**
 * Holds the whole fault matrix and plays it, many cells at the same time: their waits are real, their work is little.
 */
import { Effect } from "effect";
import type { Cell } from "./Cell.ts";
import { cuts } from "./Cuts.ts";
import { type Processors, play, processors } from "./Play.ts";
import { type Judged, judge } from "./Verdict.ts";

/** Cells that are played at the same time. */
export const cellsAtOnce = 48;

/** Every cell. */
export const cells = (): ReadonlyArray<Cell> => [...cuts()];

/**
 * Plays cells and judges them.
 *
 * @param judged called after each cell
 */
export const playAll = (
  selected: ReadonlyArray<Cell>,
  judged: (one: Judged) => void = () => {},
): Effect.Effect<ReadonlyArray<Judged>> =>
  Effect.scoped(
    Effect.flatMap(processors, (shared: Processors) =>
      Effect.forEach(
        selected,
        (cell) =>
          Effect.map(play(cell, shared), (outcome) => {
            const one = judge(cell, outcome);
            judged(one);
            return one;
          }),
        { concurrency: cellsAtOnce },
      ),
    ),
  );
