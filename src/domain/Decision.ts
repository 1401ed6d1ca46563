/** Defines a decision of the policy: one of three actions, the rule that determined it, and the facts on which it is based. */
import * as Schema from "effect/Schema";
import { ToolPhase } from "./AttemptFacts.ts";
import { Label, Milliseconds } from "./Limits.ts";
import { AttemptMode } from "./RunFacts.ts";

/** Actions, from the most to the least permissive (law L2). */
export const Action = Schema.Literals(["auto_retry_once", "ask_user", "do_not_retry"]);
export type Action = typeof Action.Type;

/** Rules of the policy. Code, logs, incidents, docs and tests use the same names. */
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

/** Answers that a person may give to `ask_user`. */
export const Choice = Schema.Literals(["retry", "continue", "it_ran", "it_did_not_run", "accept", "stop"]);
export type Choice = typeof Choice.Type;

/** A call that is open or ran, as a decision lists it. */
export const DecisionCall = Schema.Struct({ call: Label, tool: Label, phase: ToolPhase });
export type DecisionCall = typeof DecisionCall.Type;

/** Decision about a broken attempt. `mode` is set with `auto_retry_once`, `choices` (at least two) with `ask_user`. */
export const Decision = Schema.Struct({
  action: Action,
  rule: Rule,
  mode: Schema.optionalKey(AttemptMode),
  delay_ms: Milliseconds,
  /** Set with `auto_retry_once` only. The retry is sent when the path is up again, or when the provider's announced wait has ended. */
  wait_for: Schema.optionalKey(Schema.Literals(["path", "cooldown"])),
  /** The route of the retry. Set with `auto_retry_once` only, and only if the run has another route. */
  route: Schema.optionalKey(Schema.Literals(["same", "next"])),
  policy_version: Label,
  /** Facts that forced the decision, as `name=value`. */
  because: Schema.Array(Schema.String),
  /** Calls that are open or have run. At most `toolRowsMax`, as in the facts. */
  calls: Schema.optionalKey(Schema.Array(DecisionCall)),
  choices: Schema.optionalKey(Schema.Array(Choice)),
  /** Calls that ran or may have run and that a `retry` could repeat. */
  may_repeat: Schema.optionalKey(Schema.Array(Label)),
  /** Choice that takes effect if no one answers the question. */
  default_choice: Schema.optionalKey(Choice),
});
export type Decision = typeof Decision.Type;
