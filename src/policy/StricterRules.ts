/**
 * Makes rules stricter by configuration, and rejects a configuration that loosens one.
 */
import * as Schema from "effect/Schema";
import { Action, Rule } from "../domain/Decision.ts";
import { label } from "../domain/Limits.ts";
import { type RuleEntry, type Ruling, rules } from "./Rules.ts";

type Entries = typeof rules;

/** For each action, the actions that are stricter. */
interface Lower {
  readonly auto_retry_once: "ask_user" | "do_not_retry";
  readonly ask_user: "do_not_retry";
}

/** Stricter actions by rule: an automatic retry may become a question or a stop, and a question may become a stop. */
export type StricterRules = {
  readonly [R in Rule as Entries[R]["action"] extends keyof Lower
    ? R
    : never]?: Entries[R]["action"] extends keyof Lower ? Lower[Entries[R]["action"]] : never;
};

/** Reports a policy configuration that cannot be used. */
export class PolicyError extends Schema.TaggedError<PolicyError>()("PolicyError", {
  reason: Schema.Literals(["unknown_rule", "not_stricter"]),
  rule: Schema.String,
  message: Schema.String,
}) {}

/**
 * Checks a configuration that types may not have checked. The action of each replay rule also applies to the rules into which its facts can
 * grow. So a request that is not repeated after nothing was shown is not repeated after something was shown either (law L2).
 *
 * @throws PolicyError for an unknown rule, or an action that is not stricter than the rule's own
 */
export const checkRules = (stricter: StricterRules): ReadonlyMap<Rule, Action> => {
  const lowered = new Map<Rule, Action>();
  for (const [rule, action] of Object.entries(stricter)) {
    // `exactOptionalPropertyTypes` rejects undefined in typed callers, but plain JavaScript may pass it.
    if (action === undefined) continue;
    if (!isRule(rule)) throw unknownRule(rule);
    const rank = rankOf(action);
    if (rank <= rankOf(rules[rule].action)) throw notStricterError(rule, action);
    for (const grown of growthChain(rule)) {
      if (rank > rankOf(lowered.get(grown) ?? "auto_retry_once")) lowered.set(grown, action);
    }
  }
  return lowered;
};

/** Applies a checked configuration to a ruling. */
export const tightenRuling = (lowered: ReadonlyMap<Rule, Action>, ruling: Ruling): Ruling => {
  const action = lowered.get(ruling.rule);
  return action === undefined || action === "auto_retry_once"
    ? ruling
    : { action, rule: ruling.rule, entry: ruling.entry };
};

/** Turns every automatic retry into a question, for a run whose own policy is unknown and might have asked. */
export const everyRetryAsks: StricterRules = Object.fromEntries(
  Object.entries(rules).flatMap(([rule, { action }]) => (action === "auto_retry_once" ? [[rule, "ask_user"]] : [])),
);

/** Returns a rule, followed by the rules that apply instead as the facts of an attempt grow. */
const growthChain = (rule: Rule): ReadonlyArray<Rule> => {
  const entry: RuleEntry = rules[rule];
  const next = "growsInto" in entry ? entry.growsInto : undefined;
  return next === undefined ? [rule] : [rule, ...growthChain(next)];
};

/** Returns the position of an action in the order from permissive to strict; -1 for an unknown action. */
const rankOf = (action: string): number => chain.indexOf(action);

const chain: ReadonlyArray<string> = Action.literals;

const isRule = (name: string): name is Rule => Rule.literals.some((rule) => rule === name);

const unknownRule = (rule: string): PolicyError =>
  new PolicyError({
    reason: "unknown_rule",
    rule: label(rule),
    message: `stricter.${label(rule)}: no such rule. Rules: ${Rule.literals.join(", ")}`,
  });

const notStricterError = (rule: Rule, action: string): PolicyError =>
  new PolicyError({
    reason: "not_stricter",
    rule,
    message: `stricter.${rule}: "${label(action)}" is not stricter than "${rules[rule].action}"; a rule can only move down the chain auto_retry_once > ask_user > do_not_retry`,
  });
