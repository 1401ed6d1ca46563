/**
 * Lists the cells of the fault matrix and plays many at the same time: their waits are real, but they need little processor time.
 */
import { Effect } from "effect";
import { type Cell, canBePlayed } from "./Cell.ts";
import { type Judged, judge } from "./CellJudge.ts";
import { cuts } from "./cells/Cuts.ts";
import { oddities } from "./cells/Oddities.ts";
import { sequences } from "./cells/Sequences.ts";
import { slowCells } from "./cells/Slow.ts";
import { statuses } from "./cells/Statuses.ts";
import { streamErrors } from "./cells/StreamErrors.ts";
import { waits } from "./cells/Waits.ts";
import { type Processors, play, processors } from "./Play.ts";

/**
 * Cells that are played at the same time. A cell that waits for a watchdog must not share the machine with too many others, and
 * heavy cells run almost alone.
 */
const atOnce = { plain: 96, clocked: 32, heavy: 2 } as const;

type Kind = keyof typeof atOnce;

export const cells = (): ReadonlyArray<Cell> =>
  [...cuts(), ...statuses(), ...waits(), ...streamErrors(), ...oddities(), ...slowCells(), ...sequences()].filter(
    canBePlayed,
  );

/** One cell in `sliceEvery`, and at least one of every row of the table and every outcome but the heavy ones. */
export const sliceEvery = 10;

/** A representative part of the cells for every test run: the same cells each time, spread over all axes. */
export const slice = (all: ReadonlyArray<Cell>): ReadonlyArray<Cell> => {
  const seen = new Set<string>();
  return all.filter((cell, index) => {
    if (cell.heavy === true) return false;
    const rows = [cell.group, `${cell.expect.end} ${cell.expect.rules.join(" ")}`];
    const first = rows.some((row) => !seen.has(row));
    for (const row of rows) seen.add(row);
    // Multiplying by a large odd number spreads the picks, so that no axis coincides with the stride.
    return first || Math.imul(index, 2_654_435_761) >>> 0 < 2 ** 32 / sliceEvery;
  });
};

/**
 * Plays cells and judges them.
 *
 * @param judged called after each cell
 */
export const playAll = (
  selected: ReadonlyArray<Cell>,
  judged: (one: Judged) => void = () => {},
): Effect.Effect<ReadonlyArray<Judged>> => {
  const some = (shared: Processors, kind: Kind) =>
    Effect.forEach(
      selected.filter((cell) => kindOf(cell) === kind),
      (cell) =>
        Effect.map(play(cell, shared), (outcome) => {
          const one = judge(cell, outcome);
          judged(one);
          return one;
        }),
      { concurrency: atOnce[kind] },
    );
  return Effect.scoped(
    Effect.gen(function* () {
      const shared = yield* processors;
      return [
        ...(yield* some(shared, "plain")),
        ...(yield* some(shared, "clocked")),
        ...(yield* some(shared, "heavy")),
      ];
    }),
  );
};

const kindOf = ({ clocks, heavy }: Cell): Kind => {
  if (heavy === true) return "heavy";
  return clocks === undefined ? "plain" : "clocked";
};
