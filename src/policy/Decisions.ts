/**
 * Builds a decision from a ruling: its reasons, the calls it concerns and, for a question, its choices.
 */
import type { Decision, Rule } from "../domain/Decision.ts";
import { leavesIncompleteCall } from "../domain/Failure.ts";
import * as Choices from "./Choices.ts";
import { waitFor } from "./RetryBudget.ts";
import { type RuleEntry, type Ruling, rules, rulings } from "./Rules.ts";
import type { Situation } from "./Situation.ts";

/**
 * Turns a ruling into a decision.
 *
 * @param version the policy's version
 * @param retry delay in milliseconds and route of an automatic retry
 */
export const make = (s: Situation, ruling: Ruling, version: string, retry: RetryManner = atOnce): Decision => {
  if (ruling.action === "auto_retry_once") {
    const waits = retry.moves ? undefined : waitFor(s);
    const { action, mode, rule } = ruling;
    const delay_ms = retry.delayMs;
    const because = reasons(s, ruling.entry);
    if (waits === undefined && s.run.next_route === "none")
      return withCalls(s, { action, rule, mode, delay_ms, policy_version: version, because });
    return withCalls(s, {
      action,
      rule,
      mode,
      delay_ms,
      ...(waits === undefined ? {} : { wait_for: waits }),
      ...(s.run.next_route === "none" ? {} : { route: retry.moves ? "next" : "same" }),
      policy_version: version,
      because,
    });
  }
  return ruling.action === "ask_user" ? askOrComplete(s, ruling, version) : stop(s, ruling, version);
};

interface RetryManner {
  readonly delayMs: number;
  readonly moves: boolean;
}

const atOnce: RetryManner = { delayMs: 0, moves: false };

/** Lists the facts on which a rule is based as `name=value` from a fixed vocabulary, the failure first. */
export const because = (s: Situation, rule: Rule): ReadonlyArray<string> => reasons(s, rules[rule]);

const reasons = (s: Situation, entry: RuleEntry): ReadonlyArray<string> => [failureFact(s), ...entry.because(s)];

const failureFact = ({ failure }: Situation): string => {
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

const stop = (s: Situation, { entry, rule }: Ruling, version: string): Decision =>
  withCalls(s, {
    action: "do_not_retry",
    rule,
    delay_ms: 0,
    policy_version: version,
    because: reasons(s, entry),
  });

/**
 * Builds a question, unless there is nothing to ask. A run with a terminal marker and malformed content ends as complete, because runtimes
 * report malformed content back to the model. But a caller that cannot discard would take an incomplete call as finished, so its run stops
 * and the call is withheld.
 */
const askOrComplete = (s: Situation, ruling: Ruling, version: string): Decision => {
  const { entry, rule } = ruling;
  if (s.malformed && s.facts.terminal_seen) {
    const isWithheld = !s.run.discardable && leavesIncompleteCall(s.failure);
    return stop(s, isWithheld ? ruling : rulings.already_complete, version);
  }
  const repeated = Choices.repeatedCalls(s);
  const decision = withCalls(s, {
    action: "ask_user",
    rule,
    delay_ms: 0,
    policy_version: version,
    because: reasons(s, entry),
  });
  decision.choices = Choices.of(s, entry);
  if (repeated.length > 0) decision.may_repeat = repeated;
  // If no one answers, the run must end, because any other default would be a hidden automatic retry.
  decision.default_choice = "stop";
  return decision;
};

/**
 * A decision under construction. Optional fields are set one by one, because spreads took a seventh of the time of a decision. The fields
 * are set in the order of the schema, so that a decision repeated from a record serialises to the same text.
 */
type Made = { -readonly [K in keyof Decision]: Decision[K] };

const withCalls = (s: Situation, decision: Made): Made => {
  if (s.ledger.any) decision.calls = s.facts.tools.map(({ call, tool, phase }) => ({ call, tool, phase }));
  return decision;
};
