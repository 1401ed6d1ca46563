/**
 * Detects plays that prove nothing: those without runs, and those whose faults hit no run.
 */

/** The counts of a play. */
export interface Played {
  readonly runs: number;
  /** Number of runs that a fault hit while they were in progress. */
  readonly hit: number;
}

/** Explains why a play proves nothing; empty if it proves something. */
export const missing = ({ hit, runs }: Played): ReadonlyArray<string> => {
  if (runs === 0) return ["no run was played"];
  return hit === 0 ? [`${runs} runs were played, and no fault hit any of them`] : [];
};
