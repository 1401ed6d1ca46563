/**
 * Asks the questions that stand before every automatic retry: is the provider's wait too long, has the throttle a token in
 * time, is the budget spent. Each can only veto.
 */
import type { AttemptMode } from "../domain/RunFacts.ts";
import type { AskingRule } from "./Rules.ts";
import type { Situation } from "./Situation.ts";

/** A question before an automatic retry. */
interface Veto {
  readonly rule: AskingRule;
  /** The condition in words, as the policy's table prints it. */
  readonly condition: string;
  readonly holds: (s: Situation, mode: AttemptMode) => boolean;
}

/** The questions in the order in which they are asked. */
export const vetoes: ReadonlyArray<Veto> = [
  {
    rule: "retry_after_too_long",
    condition: "Retry-After longer than the budget allows",
    holds: (s) => (s.failure.retry_after_ms ?? 0) > s.budget.max_retry_after_ms,
  },
  {
    rule: "throttled",
    condition: "the throttle has no token within that time",
    holds: (s) => s.run.throttle_wait_ms > s.budget.max_retry_after_ms,
  },
  { rule: "budget_exhausted", condition: "budget spent", holds: (s, mode) => spent(s, mode) },
];

/**
 * The rule that vetoes a retry, if one does.
 *
 * @param mode the mode that the retry would have; limits on what is paid twice hold for replays only
 */
export const veto = (s: Situation, mode: AttemptMode): AskingRule | undefined => {
  for (const { holds, rule } of vetoes) if (holds(s, mode)) return rule;
  return undefined;
};

/** Failures that cost the provider nothing have a budget of their own; all share the time since the first failure. */
const spent = (s: Situation, mode: AttemptMode): boolean => {
  if (s.run.elapsed_ms >= s.budget.max_elapsed_ms) return true;
  if (free(s)) return s.run.not_processed_retries >= s.budget.max_not_processed;
  if (s.run.auto_retries >= s.budget.max_auto_retries) return true;
  return mode === "replay" && paidTwice(s);
};

/** Whether a retry counts against `max_not_processed` instead of `max_auto_retries`. */
export const free = (s: Situation): boolean => s.notProcessed || s.facts.delivery === "not_sent";

/** A replay after something was shown, or after a stall, pays the whole prompt again. */
const paidTwice = (s: Situation): boolean =>
  (s.facts.shown !== "nothing" && s.run.retries_after_shown >= s.budget.max_after_shown) ||
  (s.failure.kind === "stalled" && s.run.retries_after_stall >= s.budget.max_after_stall);
