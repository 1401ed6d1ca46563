/**
 * Names the facts that forced a rule, as `name=value` of a fixed vocabulary: safe to store, count and export.
 */
import type { Rule } from "../domain/Decision.ts";
import type { Situation } from "./Situation.ts";

/** The facts that a rule rests on, the failure first. */
export const because = (s: Situation, rule: Rule): ReadonlyArray<string> => [failureFact(s), ...ruleFacts(s, rule)];

const failureFact = (s: Situation): string => {
  const failure = s.failure;
  switch (failure.kind) {
    case "rejected":
    case "protocol":
      return `failure=${failure.kind}.${failure.reason}`;
    case "stalled":
      return `failure=stalled.${failure.clock}`;
    case "cancelled":
      return `failure=cancelled.${failure.by}`;
    default:
      return `failure=${failure.kind}`;
  }
};

const ruleFacts = (s: Situation, rule: Rule): ReadonlyArray<string> => {
  const { facts, run, budget } = s;
  switch (rule) {
    case "already_complete":
      return ["terminal_seen=true"];
    case "user_cancelled":
      return [`user_cancelled=${run.user_cancelled}`];
    case "lifecycle_closed":
      return [`lifecycle_closed=${run.lifecycle_closed}`];
    case "caller_interrupted":
    case "unknown_failure":
      return [];
    case "recovery_refused":
      return ["retryable=false", `mode=${run.mode}`];
    case "not_retryable":
      return ["retryable=false"];
    case "tool_outcome_unknown":
      return [`runtime_call=${s.ledger.outcomeUnknown ? "outcome_unknown" : "dispatched"}`];
    case "resume_cursor":
      return ["resumable=true"];
    case "tool_call_handed_over":
      return [`guarded=${s.guarded}`, "runtime_call=handed_over"];
    case "tool_input_shown":
      return [`guarded=${s.guarded}`, `runtime_call=${s.ledger.inputComplete ? "input_complete" : "input_started"}`];
    case "provider_tool_activity":
      return ["provider_call=seen"];
    case "side_effects_unprovable":
      return [`side_effects=${facts.side_effects?.reason ?? "missing"}`, `delivery=${facts.delivery}`];
    case "tools_settled":
    case "tool_ran":
      return ["runtime_call=settled", `text_through=${facts.text_through}`, `settled_through=${facts.settled_through}`];
    case "text_closed_by_call":
    case "continue_text":
    case "text_shown":
      return [`shown=${facts.shown}`, `text_through=${facts.text_through}`, `call_through=${facts.call_through}`];
    case "credentials_refreshed":
      return ["can_refresh_credentials=true", "credential_refreshes=0"];
    case "not_sent":
      return ["delivery=not_sent"];
    case "not_processed":
      return ["not_processed=true", `progress=${facts.progress}`];
    case "tool_calls_fenced":
      return ["guarded=true", "dispatched=none", `shown=${facts.shown}`];
    case "only_read_only_tools":
      return ["calls=read_only", `shown=${facts.shown}`];
    case "only_reasoning_shown":
    case "nothing_shown":
      return [`shown=${facts.shown}`, "calls=none"];
    case "retry_after_too_long":
      return [`retry_after_ms=${s.failure.retry_after_ms}`, `max_retry_after_ms=${budget.max_retry_after_ms}`];
    case "throttled":
      return [`throttle_wait_ms=${run.throttle_wait_ms}`, `max_retry_after_ms=${budget.max_retry_after_ms}`];
    case "budget_exhausted":
      return spentFacts(s);
  }
};

const spentFacts = ({ run }: Situation): ReadonlyArray<string> => [
  `auto_retries=${run.auto_retries}`,
  `not_processed_retries=${run.not_processed_retries}`,
  `retries_after_shown=${run.retries_after_shown}`,
  `retries_after_stall=${run.retries_after_stall}`,
  `elapsed_ms=${run.elapsed_ms}`,
];
