/**
 * Makes rules stricter by configuration, and refuses to make one looser.
 */
import * as Schema from "effect/Schema";
import { type Action, Rule } from "../domain/Decision.ts";
import { label } from "../domain/Limits.ts";
import type { Verdict } from "./PolicyRow.ts";

type AutoRule =
  | "resume_cursor"
  | "tools_settled"
  | "text_closed_by_call"
  | "continue_text"
  | "credentials_refreshed"
  | "not_sent"
  | "not_processed"
  | "tool_calls_fenced"
  | "only_read_only_tools"
  | "only_reasoning_shown"
  | "nothing_shown";

type StopRule = "already_complete" | "user_cancelled" | "lifecycle_closed" | "caller_interrupted" | "not_retryable";

/** Lower answers by rule: an automatic rule may ask or stop, a question may stop, a stop stays. */
export type Stricter = { readonly [R in AutoRule]?: "ask_user" | "do_not_retry" } & {
  readonly [R in Exclude<Rule, AutoRule | StopRule>]?: "do_not_retry";
};

/** A policy configuration that cannot be used. */
export class PolicyError extends Schema.TaggedError<PolicyError>()("PolicyError", {
  reason: Schema.Literals(["unknown_rule", "not_stricter"]),
  rule: Schema.String,
  message: Schema.String,
}) {}

/** What each rule answers by itself. */
export const actionOf: Readonly<Record<Rule, Action>> = {
  already_complete: "do_not_retry",
  user_cancelled: "do_not_retry",
  lifecycle_closed: "do_not_retry",
  caller_interrupted: "do_not_retry",
  unknown_failure: "ask_user",
  recovery_refused: "ask_user",
  not_retryable: "do_not_retry",
  tool_outcome_unknown: "ask_user",
  resume_cursor: "auto_retry_once",
  tool_call_handed_over: "ask_user",
  tool_input_shown: "ask_user",
  provider_tool_activity: "ask_user",
  side_effects_unprovable: "ask_user",
  tools_settled: "auto_retry_once",
  tool_ran: "ask_user",
  text_closed_by_call: "auto_retry_once",
  continue_text: "auto_retry_once",
  text_shown: "ask_user",
  credentials_refreshed: "auto_retry_once",
  not_sent: "auto_retry_once",
  not_processed: "auto_retry_once",
  tool_calls_fenced: "auto_retry_once",
  only_read_only_tools: "auto_retry_once",
  only_reasoning_shown: "auto_retry_once",
  nothing_shown: "auto_retry_once",
  retry_after_too_long: "ask_user",
  throttled: "ask_user",
  budget_exhausted: "ask_user",
};

/**
 * Checks a configuration that types may not have checked, and carries each replay rule's answer to the rules that its
 * facts grow into: a request that is not repeated when nothing was shown is not repeated when something was.
 *
 * @throws PolicyError for an unknown rule, or an action that is not below the rule's own
 */
export const checked = (stricter: Stricter): ReadonlyMap<Rule, Action> => {
  const lowered = new Map<Rule, Action>();
  for (const [rule, action] of Object.entries(stricter)) {
    // `exactOptionalPropertyTypes` keeps undefined out of typed callers; plain JavaScript may still spread it in.
    if (action === undefined) continue;
    if (!isRule(rule)) throw unknownRule(rule);
    const rank = ranks.get(action);
    if (rank === undefined || rank <= rankOf(actionOf[rule])) throw notStricter(rule, action);
    for (const grown of [rule, ...growsInto(rule)]) {
      if (rank > rankOf(lowered.get(grown) ?? "auto_retry_once")) lowered.set(grown, action);
    }
  }
  return lowered;
};

/** A verdict under a checked configuration. */
export const tightened = (lowered: ReadonlyMap<Rule, Action>, verdict: Verdict): Verdict => {
  const action = lowered.get(verdict.rule);
  return action === undefined || action === "auto_retry_once" ? verdict : { action, rule: verdict.rule };
};

/** The replay rules in the order in which growing facts pass them. */
const replayOrder: ReadonlyArray<Rule> = [
  "not_sent",
  "not_processed",
  "nothing_shown",
  "only_reasoning_shown",
  "only_read_only_tools",
  "tool_calls_fenced",
];

const growsInto = (rule: Rule): ReadonlyArray<Rule> => {
  const at = replayOrder.indexOf(rule);
  return at < 0 ? [] : replayOrder.slice(at + 1);
};

const ranks: ReadonlyMap<string, number> = new Map([
  ["auto_retry_once", 0],
  ["ask_user", 1],
  ["do_not_retry", 2],
]);

const rankOf = (action: Action): number => ranks.get(action) ?? 0;

const isRule = (name: string): name is Rule => Rule.literals.some((rule) => rule === name);

const unknownRule = (rule: string): PolicyError =>
  new PolicyError({
    reason: "unknown_rule",
    rule: label(rule),
    message: `stricter.${label(rule)}: no such rule. Rules: ${Rule.literals.join(", ")}`,
  });

const notStricter = (rule: Rule, action: string): PolicyError =>
  new PolicyError({
    reason: "not_stricter",
    rule,
    message: `stricter.${rule}: "${label(action)}" is not stricter than "${actionOf[rule]}"; a rule can only be moved down the chain auto_retry_once > ask_user > do_not_retry`,
  });
