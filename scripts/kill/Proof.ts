/**
 * Says why a play proves nothing: it had no runs, or nothing happened to any of them.
 */

/** What a play had. */
export interface Played {
  readonly runs: number;
  /** Runs that something happened to while they were under way. */
  readonly hit: number;
}

/** Why a play proves nothing; empty if it proves something. */
export const missing = ({ hit, runs }: Played): ReadonlyArray<string> => {
  if (runs === 0) return ["nothing was played"];
  return hit === 0 ? [`${runs} runs were played, and nothing happened to any of them`] : [];
};
