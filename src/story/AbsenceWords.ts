/** Describes a run that continues without its client, and how long it may continue. */
import type { WaitStory } from "./PathWords.ts";
import { formatRelative, formatRough, formatUtc } from "./Times.ts";

/** Period in which a run continues without its client. Both values are wall-clock times, in milliseconds since the epoch. */
export interface Absence {
  /** Time at which the client left. */
  readonly since: number;
  /** Time at which the run is cancelled, unless the client returns first. */
  readonly until: number;
}

/**
 * Describes a run without its client; undefined if the client is present.
 *
 * @param now wall-clock time, in milliseconds since the epoch
 */
export const absenceStory = (absence: Absence | undefined, now: number): WaitStory | undefined =>
  absence === undefined
    ? undefined
    : {
        said: `continues without its client until ${formatUtc(absence.until)}`,
        times: `it left ${formatRelative(absence.since, now)} and can return for another ${formatRough(Math.max(0, absence.until - now))}`,
      };
