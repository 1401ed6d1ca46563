/**
 * Makes rules stricter by configuration, and refuses to make one looser.
 */
import * as Schema from "effect/Schema";
import { Action, Rule } from "../domain/Decision.ts";
import { label } from "../domain/Limits.ts";
import { type RuleEntry, type Ruling, rules } from "./Rules.ts";

type Entries = typeof rules;

/** What an action may be moved down to; a stop stays. */
interface Lower {
  readonly auto_retry_once: "ask_user" | "do_not_retry";
  readonly ask_user: "do_not_retry";
}

/** Lower actions by rule: an automatic rule may ask or stop, a question may stop, a rule that stops is not named. */
export type StricterRules = {
  readonly [R in Rule as Entries[R]["action"] extends keyof Lower
    ? R
    : never]?: Entries[R]["action"] extends keyof Lower ? Lower[Entries[R]["action"]] : never;
};

/** A policy configuration that cannot be used. */
export class PolicyError extends Schema.TaggedError<PolicyError>()("PolicyError", {
  reason: Schema.Literals(["unknown_rule", "not_stricter"]),
  rule: Schema.String,
  message: Schema.String,
}) {}

/**
 * Checks a configuration that types may not have checked, and carries the action of each replay rule to the rules that
 * its facts grow into: a request that is not repeated when nothing was shown is not repeated when something was (law L2).
 *
 * @throws PolicyError for an unknown rule, or an action that is not below the rule's own
 */
export const checked = (stricter: StricterRules): ReadonlyMap<Rule, Action> => {
  const lowered = new Map<Rule, Action>();
  for (const [rule, action] of Object.entries(stricter)) {
    // `exactOptionalPropertyTypes` keeps undefined out of typed callers; plain JavaScript may still spread it in.
    if (action === undefined) continue;
    if (!isRule(rule)) throw unknownRule(rule);
    const rank = rankOf(action);
    if (rank <= rankOf(rules[rule].action)) throw notStricter(rule, action);
    for (const grown of grownFrom(rule)) {
      if (rank > rankOf(lowered.get(grown) ?? "auto_retry_once")) lowered.set(grown, action);
    }
  }
  return lowered;
};

/** A ruling under a checked configuration. */
export const tightened = (lowered: ReadonlyMap<Rule, Action>, ruling: Ruling): Ruling => {
  const action = lowered.get(ruling.rule);
  return action === undefined || action === "auto_retry_once"
    ? ruling
    : { action, rule: ruling.rule, entry: ruling.entry };
};

/** Every automatic retry asks: for a run whose own policy is not known and might have asked. */
export const everyRetryAsks: StricterRules = Object.fromEntries(
  Object.entries(rules).flatMap(([rule, { action }]) => (action === "auto_retry_once" ? [[rule, "ask_user"]] : [])),
);

/** A rule, and the rules that follow it as the facts of an attempt grow. */
const grownFrom = (rule: Rule): ReadonlyArray<Rule> => {
  const entry: RuleEntry = rules[rule];
  const next = "growsInto" in entry ? entry.growsInto : undefined;
  return next === undefined ? [rule] : [rule, ...grownFrom(next)];
};

/** The place of an action in the chain in which permission shrinks; -1 for a word that is no action. */
const rankOf = (action: string): number => chain.indexOf(action);

const chain: ReadonlyArray<string> = Action.literals;

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
    message: `stricter.${rule}: "${label(action)}" is not stricter than "${rules[rule].action}"; a rule can only be moved down the chain auto_retry_once > ask_user > do_not_retry`,
  });
