/**
 * Says when a worker that has died is replaced: at once the first time, later each time that the replacement dies soon, and at last
 * never: a worker that cannot live would otherwise be started for ever.
 */

/** A worker that has served for so long, in milliseconds, was well: its death is a first one. */
export const steadyMs = 10_000;

/** After so many deaths in a row, each of a worker that was not steady, the supervisor ends. */
export const deathsMax = 5;

/** The pause before the second replacement in a row, in milliseconds; it doubles with each further one. */
const pauseMs = 250;

/** The pause before the next start where the store was away, in milliseconds. A start waits for a server by itself, and for a full disk not at all. */
const storePauseMs = 5_000;

/** The deaths of one place in a row. */
export interface Deaths {
  readonly inRow: number;
}

/** None yet. */
export const none: Deaths = { inRow: 0 };

/** What is to be done. */
export type Replacement = { readonly deaths: Deaths; readonly pauseMs: number } | "give_up";

/**
 * Counts a death. A start that found the store away is none: it says nothing of the worker, and siblings that serve must not end for it.
 *
 * @param servedMs how long the worker has listened, in milliseconds; 0 where it never did
 * @param mayPass its store is why it did not start
 */
export const died = (before: Deaths, servedMs: number, mayPass = false): Replacement => {
  if (mayPass) return { deaths: before, pauseMs: storePauseMs };
  const { inRow } = before;
  const now = servedMs >= steadyMs ? 1 : inRow + 1;
  if (now >= deathsMax) return "give_up";
  return { deaths: { inRow: now }, pauseMs: now === 1 ? 0 : pauseMs * 2 ** (now - 2) };
};
