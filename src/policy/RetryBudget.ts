/**
 * Asks the questions that stand before every automatic retry: is the outage or the provider's wait too long, has the throttle a
 * token in time, is the budget of tokens or of retries spent. Each can only veto.
 *
 * A retry that moves to another route waits for nothing: the questions about a wait are those of the route that it leaves.
 */
import type { Decision } from "../domain/Decision.ts";
import type { AttemptMode } from "../domain/RunFacts.ts";
import type { AskingRule } from "./Rules.ts";
import type { Situation } from "./Situation.ts";

/** A retry that the rows have given. */
export interface Retry {
  /** The mode that it would have; limits on what is paid twice hold for replays only. */
  readonly mode: AttemptMode;
  /** It goes to the next route. */
  readonly moves: boolean;
}

/** A question before an automatic retry. */
interface Veto {
  readonly rule: AskingRule;
  /** The condition in words, as the policy's table prints it. */
  readonly condition: string;
  readonly holds: (s: Situation, retry: Retry) => boolean;
}

/** What a retry on the same route waits for before its request goes out. */
export const waitFor = ({ run }: Pick<Situation, "run">): "path" | "cooldown" | undefined =>
  run.path === "down" ? "path" : run.cooldown_ms > 0 ? "cooldown" : undefined;

/** The questions in the order in which they are asked. */
export const vetoes: ReadonlyArray<Veto> = [
  {
    rule: "outage_too_long",
    condition: "on the same route: path down or cooldown, and no time left to wait for it",
    holds: (s, { moves }) => !moves && outlasts(s),
  },
  {
    rule: "retry_after_too_long",
    condition: "on the same route: Retry-After or cooldown longer than the budget allows",
    holds: (s, { moves }) =>
      !moves && Math.max(s.failure.retry_after_ms ?? 0, s.run.cooldown_ms) > s.budget.max_retry_after_ms,
  },
  {
    rule: "throttled",
    condition: "on the same route, and nothing to wait for: the throttle has no token within that time",
    holds: (s, { moves }) => !moves && waitFor(s) === undefined && s.run.throttle_wait_ms > s.budget.max_retry_after_ms,
  },
  {
    rule: "token_budget",
    condition: "not a resume; tokens of the run or of its group spent, with those that the retry would repeat",
    holds: ({ budget, run }, { mode }) =>
      mode !== "resume" &&
      (run.wasted_tokens + run.next_tokens > (budget.max_wasted_tokens ?? Number.POSITIVE_INFINITY) ||
        run.group_wasted_tokens + run.next_tokens > (budget.max_group_wasted_tokens ?? Number.POSITIVE_INFINITY)),
  },
  { rule: "budget_exhausted", condition: "budget spent", holds: spent },
];

/** The rule that vetoes a retry, if one does. */
export const veto = (s: Situation, retry: Retry): AskingRule | undefined => {
  for (const { holds, rule } of vetoes) if (holds(s, retry)) return rule;
  return undefined;
};

/** Whether the wait that is due is longer than what is left to wait. */
const outlasts = (s: Situation): boolean => {
  const max = s.budget.max_outage_ms;
  if (max === "forever" || waitFor(s) === undefined) return false;
  // How long an outage lasts is not known: only one that may not be waited for at all is too long.
  return s.run.path === "down" ? s.run.waited_ms >= max : s.run.waited_ms + s.run.cooldown_ms > max;
};

/** Failures that cost the provider nothing have a budget of their own. All retries share the time since the first failure. */
function spent(s: Situation, { mode, moves }: Retry): boolean {
  if (s.run.elapsed_ms >= s.budget.max_elapsed_ms) return true;
  // Route moves have their own counter. Waiting for a path is free.
  if (moves || isWaited(s)) return false;
  if (s.run.group_retries >= (s.budget.max_group_retries ?? Number.POSITIVE_INFINITY)) return true;
  if (free(s)) return false;
  // A refusal that no longer fits its own budget is not retried by the ordinary one, also if its mark is ignored: progress must not
  // loosen the decision (L2).
  if (s.resolved.not_processed && freeIsSpent(s)) return true;
  if (s.run.auto_retries >= s.budget.max_auto_retries) return true;
  return mode === "replay" && (paidTwice(s) || staysSo(s));
}

/**
 * Whether the request was not sent because its path was down. Such a retry is free: only the time that may be waited limits it. A
 * request that was let go after its wait may go once.
 */
export const isWaited = ({ facts, failure, run }: Pick<Situation, "facts" | "failure" | "run">): boolean =>
  (run.path === "down" || run.waited_for_path) && facts.delivery === "not_sent" && failure.kind !== "rejected";

/** Whether a decision sends a request that counts as a retry: a move has a count of its own, and what waits for its path has none. */
export const isCounted = (
  { action, route }: Pick<Decision, "action" | "route">,
  s: Pick<Situation, "facts" | "failure" | "run">,
): boolean => action === "auto_retry_once" && route !== "next" && !isWaited(s);

/**
 * Whether a retry counts against `max_not_processed` instead of `max_auto_retries`. After that budget is spent, a request that was not
 * sent counts as an ordinary retry.
 */
export const free = (s: Situation): boolean => (s.notProcessed || s.facts.delivery === "not_sent") && !freeIsSpent(s);

const freeIsSpent = ({ budget, run }: Situation): boolean => run.not_processed_retries >= budget.max_not_processed;

/** Maximum replays of a run after responses with nothing in them: a model that has twice nothing to say has nothing to say. */
export const emptyRetriesMax = 1;

/** Another replay would pay for the same words before the same break, or for another empty response. */
const staysSo = ({ failure, run }: Situation): boolean =>
  run.same_partial || (failure.kind === "empty" && run.retries_after_empty >= emptyRetriesMax);

/** A replay after something was shown, or after a stall, pays the whole prompt again. */
const paidTwice = (s: Situation): boolean =>
  (s.facts.shown !== "nothing" && s.run.retries_after_shown >= s.budget.max_after_shown) ||
  (s.failure.kind === "stalled" && s.run.retries_after_stall >= s.budget.max_after_stall);
