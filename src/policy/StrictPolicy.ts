/**
 * Contains the rows of the strict policy, the first published form of this policy (PawWork #863).
 *
 * The policy retries once, after one second, and only an attempt that provably had no effect. It asks after any output, call or partial
 * input, and if the snapshot of side effects is incomplete. It never continues, resumes or changes the route. A guard or a harmless effect
 * makes no difference. It waits for a path and for an announced wait as the default policy does. Each row has the number of the default row
 * that it tightens.
 */
import { endRows, type PolicyRow, replayRuling, rowOf } from "./PolicyRows.ts";
import { isWaited, waitFor } from "./RetryBudget.ts";
import type { Situation } from "./Situation.ts";

/** Fixed wait before the retry, in milliseconds. */
export const fixedDelayMs = 1_000;

/** Maximum automatic retries of a run, including those that cost the provider nothing. */
export const retriesMax = 1;

/** Row 7 without route changes: a request that another route could serve stops here. */
const stopRow = rowOf(
  7,
  "not_retryable",
  "failure not retryable; `rejected.auth` passes once if credentials can be refreshed and were not",
  (s) => !s.resolved.retryable && !s.credentials,
);

const callRows: ReadonlyArray<PolicyRow> = [
  rowOf(8, "tool_outcome_unknown", "a runtime call dispatched or with an unknown outcome", (s) =>
    s.facts.tools.some(
      (row) => row.executor === "runtime" && (row.phase === "dispatched" || row.phase === "outcome_unknown"),
    ),
  ),
  rowOf(
    10,
    "already_complete",
    "`invalid_tool_input` or `empty`, terminal seen and a runtime call settled",
    (s) => s.malformed && s.facts.terminal_seen && s.ledger.settled,
  ),
  rowOf(12, "tool_call_handed_over", "a runtime call handed over", (s) =>
    s.facts.tools.some((row) => row.executor === "runtime" && row.phase === "handed_over"),
  ),
  rowOf(13, "tool_input_shown", "a part of a runtime call's input handed over", (s) =>
    s.facts.tools.some(
      (row) => row.executor === "runtime" && (row.phase === "input_started" || row.phase === "input_complete"),
    ),
  ),
  rowOf(14, "provider_tool_activity", "a provider-executed call seen in any phase", (s) =>
    s.facts.tools.some((row) => row.executor === "provider"),
  ),
  rowOf(
    15,
    "side_effects_unprovable",
    "the list of the request's tools is missing or not complete",
    (s) => s.facts.side_effects?.complete !== true,
  ),
  rowOf(17, "tool_ran", "a runtime call settled", (s) => s.ledger.settled),
  rowOf(
    18,
    "text_shown",
    "anything shown, or output decoded",
    (s) => s.facts.shown !== "nothing" || s.facts.progress === "output",
  ),
];

const otherwise: PolicyRow = {
  number: 19,
  condition: "otherwise",
  action: "replay after 1 s, once per run",
  rules: ["credentials_refreshed", "not_sent", "not_processed", "nothing_shown"],
  match: replayRuling,
};

/** Rows of the strict policy. The last one always applies. */
export const rows: ReadonlyArray<PolicyRow> = [
  ...endRows.map((row) => (row.number === stopRow.number ? stopRow : row)),
  ...callRows,
  otherwise,
];

/**
 * Returns the delay before a retry: one second, or the announced wait if that is longer. The throttle's wait is added if the run waits for
 * neither its path nor a cooldown. After an outage in which nothing was sent, only an announced wait remains.
 */
export const delayMs = (s: Situation): number => {
  const announced = Math.max(s.failure.retry_after_ms ?? 0, s.run.cooldown_ms);
  switch (waitFor(s)) {
    case "path":
      return isWaited(s) ? announced : Math.max(fixedDelayMs, announced);
    case "cooldown":
      return Math.max(fixedDelayMs, announced);
    default:
      return Math.max(fixedDelayMs, announced) + s.run.throttle_wait_ms;
  }
};

/** Returns true if the run has had its one automatic retry. A request that was not sent because its path was down does not count. */
export const isSpent = (s: Situation): boolean =>
  !isWaited(s) && s.run.auto_retries + s.run.not_processed_retries >= retriesMax;
