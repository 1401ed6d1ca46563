/**
 * Says which histories a suite plays: one of a seed that stays the same, and one that was never played before.
 */
const fixed = 20_261_123;

const drawn = 1 + (Date.now() % 1_000_000);

const named = process.env.HISTORY_SEED;

/** The seeds; one alone where `$HISTORY_SEED` names it. */
export const seeds: ReadonlyArray<number> = named === undefined ? [fixed, drawn] : [Number(named)];

/** How many processes a history of the suites has. */
export const processes = 3;

/** How a history is played again, for as long as it takes: its processes differ from one time to the next. */
export const again = (seed: number, store: "sqlite" | "postgres"): string =>
  `npm run histories -- --store ${store} --processes ${processes} --seconds 120 --seed ${seed}`;
