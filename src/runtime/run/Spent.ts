/**
 * Counts what a run has spent of its budget.
 */

/** What a run has spent, as far as no person has given it a fresh budget. */
export const freshCounters = () => ({
  auto_retries: 0,
  not_processed_retries: 0,
  retries_after_shown: 0,
  retries_after_stall: 0,
  credential_refreshes: 0,
  failures: 0,
  elapsed: 0,
});
