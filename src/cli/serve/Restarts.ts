/**
 * Decides when a dead worker is replaced. The first replacement starts at once, and later ones after growing pauses if replacements die
 * soon. After too many deaths the supervisor ends, so that a worker that cannot run is not restarted forever. While another worker serves,
 * the failing one is retried at a slower rate instead, because the clients of the serving worker must not suffer.
 */

/** Time in service after which a worker counts as steady, in milliseconds. Its death restarts the count of deaths. */
export const steadyMs = 10_000;

/** Number of deaths in a row without a steady worker after which the supervisor ends, if no sibling serves. */
export const deathsMax = 5;

/** Pause before the second replacement in a row, in milliseconds. It doubles with each further replacement. */
const pauseMs = 250;

/**
 * Pause before the next start if the store was unavailable, in milliseconds. A start itself waits for a database server, but does not wait
 * for space on a full disk.
 */
const storePauseMs = 5_000;

/** Pause before the next start of a failing worker while other workers serve, in milliseconds. */
export const placePauseMs = 30_000;

/** Pause before replacing a worker that was asked to end soon after its start, in milliseconds. */
const orderedPauseMs = 1_000;

/** Consecutive deaths of a worker and of its replacements, which have the same worker number. */
export interface Deaths {
  readonly inRow: number;
}

/** Initial state without deaths. */
export const none: Deaths = { inRow: 0 };

/** The next replacement with the pause before it, or the decision to stop restarting. */
export type Replacement = { readonly deaths: Deaths; readonly pauseMs: number } | "give_up";

/** Circumstances of a worker's death. */
export interface Death {
  /** Time for which the worker listened, in milliseconds; 0 if it never did. */
  readonly servedMs: number;
  /** True if the worker could not start because its store was unavailable. */
  readonly mayPass: boolean;
  /** True if the worker was asked to end and did so. */
  readonly isOrdered: boolean;
  readonly isAlone: boolean;
}

/**
 * Counts a death and decides about the replacement. Requested ends do not count, and neither do starts that failed because the store was
 * unavailable, because neither indicates a faulty worker.
 */
export const decideReplacement = (before: Deaths, { isAlone, isOrdered, mayPass, servedMs }: Death): Replacement => {
  // The pause limits restarts if a program asks each new worker to end.
  if (isOrdered) return { deaths: before, pauseMs: servedMs >= steadyMs ? 0 : orderedPauseMs };
  if (mayPass) return { deaths: before, pauseMs: storePauseMs };
  const { inRow } = before;
  const now = servedMs >= steadyMs ? 1 : inRow + 1;
  if (now < deathsMax) return { deaths: { inRow: now }, pauseMs: now === 1 ? 0 : pauseMs * 2 ** (now - 2) };
  return isAlone ? "give_up" : { deaths: before, pauseMs: placePauseMs };
};
