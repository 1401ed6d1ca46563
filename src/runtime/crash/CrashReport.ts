/**
 * Describes what a recovery did: a row a run, and how many of each kind.
 */
import type { Rule } from "../../domain/Decision.ts";
import type { Standing } from "./CrashPlan.ts";

/** Where a run stands; `skipped`: another process holds it, or has ended it meanwhile. */
export type Outcome = Standing["outcome"] | "skipped";

/** What became of one run. */
export interface Row {
  readonly run_id: string;
  readonly outcome: Outcome;
  /** The rule that was decided by. */
  readonly rule?: Rule;
  /** The revision of its open question. */
  readonly revision?: number;
}

/** What one recovery did. */
export interface Report {
  readonly runs: ReadonlyArray<Row>;
  readonly counts: Readonly<Record<Outcome, number>>;
  /** It stopped at its limit: the next one finds more. */
  readonly more: boolean;
}

/** Counts rows. */
export const make = (runs: ReadonlyArray<Row>, more: boolean): Report => {
  const counts = { offered: 0, answered: 0, asked: 0, waiting: 0, completed: 0, stopped: 0, skipped: 0 };
  for (const { outcome } of runs) counts[outcome] += 1;
  return { runs, counts, more };
};
