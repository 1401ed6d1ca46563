/**
 * Checks the limits on every automatic retry: outage, announced wait, throttle, and the budgets of tokens and retries. A check can only
 * veto a retry.
 *
 * A retry on another route waits for nothing, so wait limits apply only to a retry on the same route.
 */
import type { Decision } from "../domain/Decision.ts";
import type { AttemptMode } from "../domain/RunFacts.ts";
import type { AskingRule } from "./Rules.ts";
import type { Situation } from "./Situation.ts";

/** A retry that the rows of the policy allow. */
export interface Retry {
  /** Mode of the retry. Limits on paying twice apply to replays only. */
  readonly mode: AttemptMode;
  readonly moves: boolean;
}

interface Veto {
  readonly rule: AskingRule;
  /** Condition as the policy's table prints it. */
  readonly condition: string;
  readonly shouldVeto: (s: Situation, retry: Retry) => boolean;
}

/** Returns what a retry on the same route waits for before its request is sent. */
export const waitFor = ({ run }: Pick<Situation, "run">): "path" | "cooldown" | undefined =>
  run.path === "down" ? "path" : run.cooldown_ms > 0 ? "cooldown" : undefined;

/** The checks, in evaluation order. */
export const vetoes: ReadonlyArray<Veto> = [
  {
    rule: "outage_too_long",
    condition: "on the same route: path down or cooldown, and no time left to wait for it",
    shouldVeto: (s, { moves }) => !moves && isWaitTooLong(s),
  },
  {
    rule: "retry_after_too_long",
    condition: "on the same route: Retry-After or cooldown longer than the budget allows",
    shouldVeto: (s, { moves }) =>
      !moves && Math.max(s.failure.retry_after_ms ?? 0, s.run.cooldown_ms) > s.budget.max_retry_after_ms,
  },
  {
    rule: "throttled",
    condition: "on the same route, without another wait: the throttle has no token within `max_retry_after_ms`",
    shouldVeto: (s, { moves }) =>
      !moves && waitFor(s) === undefined && s.run.throttle_wait_ms > s.budget.max_retry_after_ms,
  },
  {
    rule: "token_budget",
    condition: "not a resume; tokens of the run or of its group spent, with those that the retry would repeat",
    shouldVeto: ({ budget, run }, { mode }) =>
      mode !== "resume" &&
      (run.wasted_tokens + run.next_tokens > (budget.max_wasted_tokens ?? Number.POSITIVE_INFINITY) ||
        run.group_wasted_tokens + run.next_tokens > (budget.max_group_wasted_tokens ?? Number.POSITIVE_INFINITY)),
  },
  { rule: "budget_exhausted", condition: "budget spent", shouldVeto: isSpent },
];

/** Returns the rule that vetoes a retry, if one does. */
export const veto = (s: Situation, retry: Retry): AskingRule | undefined => {
  for (const { shouldVeto, rule } of vetoes) if (shouldVeto(s, retry)) return rule;
  return undefined;
};

/** True if the next wait exceeds the remaining waiting time. */
const isWaitTooLong = (s: Situation): boolean => {
  const max = s.budget.max_outage_ms;
  if (max === "forever" || waitFor(s) === undefined) return false;
  // The length of an outage is unknown, so it is too long only if no waiting time is left.
  return s.run.path === "down" ? s.run.waited_ms >= max : s.run.waited_ms + s.run.cooldown_ms > max;
};

/**
 * True if the retry budget is exhausted. Failures that cost the provider nothing have a budget of their own. All retries share the limit on
 * the time since the first failure.
 */
function isSpent(s: Situation, { mode, moves }: Retry): boolean {
  if (s.run.elapsed_ms >= s.budget.max_elapsed_ms) return true;
  // Route moves have their own counter. Waiting for a path is free.
  if (moves || isWaited(s)) return false;
  if (s.run.group_retries >= (s.budget.max_group_retries ?? Number.POSITIVE_INFINITY)) return true;
  if (isFree(s)) return false;
  // If `max_not_processed` is exhausted, a request that was not processed does not fall back to the ordinary budget. This also applies if
  // progress overrules `not_processed`, because progress must not loosen the decision (L2).
  if (s.resolved.not_processed && isFreeBudgetSpent(s)) return true;
  if (s.run.auto_retries >= s.budget.max_auto_retries) return true;
  return mode === "replay" && (areReplaysSpent(s) || isReplayFutile(s));
}

/**
 * Returns true if the request was not sent because its path was down. Its retry is free and limited only by `max_outage_ms`. A request that
 * was released after its wait may be sent once.
 */
export const isWaited = ({ facts, failure, run }: Pick<Situation, "facts" | "failure" | "run">): boolean =>
  (run.path === "down" || run.waited_for_path) && facts.delivery === "not_sent" && failure.kind !== "rejected";

/**
 * Returns true if a decision sends a request that counts as a retry. Route moves have their own counter. Waiting for a path is
 * free.
 */
export const isCounted = (
  { action, route }: Pick<Decision, "action" | "route">,
  s: Pick<Situation, "facts" | "failure" | "run">,
): boolean => action === "auto_retry_once" && route !== "next" && !isWaited(s);

/**
 * Returns true if a retry counts against `max_not_processed` instead of `max_auto_retries`. If that budget is exhausted, a request that was
 * not sent counts as an ordinary retry.
 */
export const isFree = (s: Situation): boolean =>
  (s.notProcessed || s.facts.delivery === "not_sent") && !isFreeBudgetSpent(s);

const isFreeBudgetSpent = ({ budget, run }: Situation): boolean =>
  run.not_processed_retries >= budget.max_not_processed;

/** Maximum replays of a run after empty responses. A model that returns nothing twice would do so again. */
export const emptyRetriesMax = 1;

/** True if another replay would pay for the same text before the same break, or for another empty response. */
const isReplayFutile = ({ failure, run }: Situation): boolean =>
  run.same_partial || (failure.kind === "empty" && run.retries_after_empty >= emptyRetriesMax);

/** True if the budget for replays after shown output or after stalls is exhausted. Each replay pays for the whole prompt again. */
const areReplaysSpent = (s: Situation): boolean =>
  (s.facts.shown !== "nothing" && s.run.retries_after_shown >= s.budget.max_after_shown) ||
  (s.failure.kind === "stalled" && s.run.retries_after_stall >= s.budget.max_after_stall);
