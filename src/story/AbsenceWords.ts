/**
 * Says of a run that it goes on without its client, and for how long it may.
 */
import type { WaitStory } from "./PathWords.ts";
import { momentUtc, relative, rough } from "./Times.ts";

/** The time in which a run goes on without its client; both are wall clock, milliseconds since the epoch. */
export interface Absence {
  /** When the client left. */
  readonly since: number;
  /** When the run is cancelled, unless the client comes back before. */
  readonly until: number;
}

/**
 * A run without its client, in words; undefined where it has one.
 *
 * @param now wall clock, milliseconds since the epoch
 */
export const absenceStory = (absence: Absence | undefined, now: number): WaitStory | undefined =>
  absence === undefined
    ? undefined
    : {
        said: `goes on without its client, until ${momentUtc(absence.until)}`,
        times: `it left ${relative(absence.since, now)} and may come back for ${rough(Math.max(0, absence.until - now))}`,
      };
