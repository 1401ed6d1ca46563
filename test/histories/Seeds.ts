/**
 * Says which histories a suite plays: one of a seed that stays the same, and one that was never played before.
 */
const fixed = 20_261_123;

const drawn = 1 + (Date.now() % 1_000_000);

const named = process.env.HISTORY_SEED;

/** The seeds; one alone where `$HISTORY_SEED` names it. */
export const seeds: ReadonlyArray<number> = named === undefined ? [fixed, drawn] : [Number(named)];

/** Number of processes in a history of the suites. */
export const processes = 3;

/** The command that plays a history repeatedly, because its processes differ each time. */
export const again = (seed: number, store: "sqlite" | "postgres"): string =>
  `npm run histories -- --store ${store} --processes ${processes} --seconds 120 --seed ${seed}`;
