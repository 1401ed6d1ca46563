/**
 * Holds a decision of the policy: one of three actions, the rule that gave it, and the facts that it rests on.
 */
import * as Schema from "effect/Schema";
import { ToolPhase } from "./AttemptFacts.ts";
import { Label, Milliseconds } from "./Limits.ts";
import { AttemptMode } from "./RunFacts.ts";

/** The three actions. Permission shrinks in this order (law L2). */
export const Action = Schema.Literals(["auto_retry_once", "ask_user", "do_not_retry"]);
export type Action = typeof Action.Type;

/** Every rule of the policy, by the same word in code, logs, incidents, docs and tests. */
export const Rule = Schema.Literals([
  "already_complete",
  "user_cancelled",
  "lifecycle_closed",
  "caller_interrupted",
  "unknown_failure",
  "recovery_refused",
  "not_retryable",
  "tool_outcome_unknown",
  "resume_cursor",
  "tool_call_handed_over",
  "tool_input_shown",
  "provider_tool_activity",
  "side_effects_unprovable",
  "tools_settled",
  "tool_ran",
  "text_closed_by_call",
  "continue_text",
  "text_shown",
  "credentials_refreshed",
  "not_sent",
  "not_processed",
  "tool_calls_fenced",
  "only_read_only_tools",
  "only_reasoning_shown",
  "nothing_shown",
  "outage_too_long",
  "retry_after_too_long",
  "throttled",
  "token_budget",
  "budget_exhausted",
]);
export type Rule = typeof Rule.Type;

/** What a person may answer to `ask_user`. */
export const Choice = Schema.Literals(["retry", "continue", "it_ran", "it_did_not_run", "accept", "stop"]);
export type Choice = typeof Choice.Type;

/** A call that is open or ran, as a decision names it. */
export const DecisionCall = Schema.Struct({ call: Label, tool: Label, phase: ToolPhase });
export type DecisionCall = typeof DecisionCall.Type;

/** What the policy decides of a broken attempt. `mode` stands with `auto_retry_once`, `choices` (at least two) with `ask_user`. */
export const Decision = Schema.Struct({
  action: Action,
  rule: Rule,
  mode: Schema.optionalKey(AttemptMode),
  /** Wait before acting, in milliseconds. */
  delay_ms: Milliseconds,
  /** With `auto_retry_once` only: the retry goes as soon as the path is back, or the provider's announced wait is over. */
  wait_for: Schema.optionalKey(Schema.Literals(["path", "cooldown"])),
  /** With `auto_retry_once` only, and only where the run has another route: whether the retry goes there. */
  route: Schema.optionalKey(Schema.Literals(["same", "next"])),
  policy_version: Label,
  /** The facts that forced it, as `name=value`. */
  because: Schema.Array(Schema.String),
  /** Calls that are open or ran, bounded by the ledger. */
  calls: Schema.optionalKey(Schema.Array(DecisionCall)),
  choices: Schema.optionalKey(Schema.Array(Choice)),
  /** Calls that ran or may have run and that a `retry` could repeat. */
  may_repeat: Schema.optionalKey(Schema.Array(Label)),
  /** The choice that an unattended question takes. */
  default_choice: Schema.optionalKey(Choice),
});
export type Decision = typeof Decision.Type;
