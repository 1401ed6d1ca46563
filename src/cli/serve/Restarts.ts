/**
 * Says when a worker that has died is replaced: at once the first time, later each time that the replacement dies soon, and at last
 * never: workers that cannot live would otherwise be started for ever. While a sibling serves, a place is only tried less often: what its
 * clients read must not break for the place of another.
 */

/** A worker that has served for so long, in milliseconds, was well: its death is a first one. */
export const steadyMs = 10_000;

/** After so many deaths in a row, each of a worker that was not steady, the supervisor ends where no sibling serves. */
export const deathsMax = 5;

/** The pause before the second replacement in a row, in milliseconds; it doubles with each further one. */
const pauseMs = 250;

/** The pause before the next start where the store was away, in milliseconds. A start waits for a server by itself, and for a full disk not at all. */
const storePauseMs = 5_000;

/** The pause before the next start of a place that cannot live while its siblings serve, in milliseconds. */
export const placePauseMs = 30_000;

/** The pause before the next start of a worker that was told to end soon after its own, in milliseconds. */
const orderedPauseMs = 1_000;

/** The deaths of one place in a row. */
export interface Deaths {
  readonly inRow: number;
}

/** None yet. */
export const none: Deaths = { inRow: 0 };

/** What is to be done. */
export type Replacement = { readonly deaths: Deaths; readonly pauseMs: number } | "give_up";

/** How a worker has died. */
export interface Death {
  /** How long it has listened, in milliseconds; 0 where it never did. */
  readonly servedMs: number;
  /** Its store is why it did not start. */
  readonly mayPass: boolean;
  /** It was told to end, and did. */
  readonly isOrdered: boolean;
  /** No sibling serves. */
  readonly isAlone: boolean;
}

/** Counts a death. An end by order is none, and neither is a start that found the store away: they say nothing of the worker. */
export const died = (before: Deaths, { isAlone, isOrdered, mayPass, servedMs }: Death): Replacement => {
  // A program that tells each new worker to end must not have the next one started without a pause.
  if (isOrdered) return { deaths: before, pauseMs: servedMs >= steadyMs ? 0 : orderedPauseMs };
  if (mayPass) return { deaths: before, pauseMs: storePauseMs };
  const { inRow } = before;
  const now = servedMs >= steadyMs ? 1 : inRow + 1;
  if (now < deathsMax) return { deaths: { inRow: now }, pauseMs: now === 1 ? 0 : pauseMs * 2 ** (now - 2) };
  return isAlone ? "give_up" : { deaths: before, pauseMs: placePauseMs };
};
