/**
 * Builds a decision from a ruling: what it rests on, the calls it concerns and, for a question, what it offers.
 */
import type { Decision, Rule } from "../domain/Decision.ts";
import { leavesIncompleteCall } from "../domain/Failure.ts";
import * as Choices from "./Choices.ts";
import { waitFor } from "./RetryBudget.ts";
import { type RuleEntry, type Ruling, rules, rulings } from "./Rules.ts";
import type { Situation } from "./Situation.ts";

/**
 * A ruling as a decision.
 *
 * @param version the policy's version
 * @param retry how an automatic retry goes: its wait in milliseconds, and whether it moves to the next route
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
  return ruling.action === "ask_user" ? question(s, ruling, version) : stop(s, ruling, version);
};

/** How an automatic retry goes. */
interface RetryManner {
  readonly delayMs: number;
  readonly moves: boolean;
}

const atOnce: RetryManner = { delayMs: 0, moves: false };

/** The facts that a rule rests on, as `name=value` of a fixed vocabulary, the failure first. */
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
 * A question, unless there is nothing to ask: a run whose terminal marker was seen and whose content is malformed ends as
 * complete, because runtimes give such an error back to the model. A caller that cannot discard reads the call itself, and would
 * take it for finished: its run stops, and the call is withheld.
 */
const question = (s: Situation, ruling: Ruling, version: string): Decision => {
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
  // An unattended question must end the run: any other default would be an automatic retry by another name.
  decision.default_choice = "stop";
  return decision;
};

/**
 * A decision while it is made. Its optional fields are set one by one: spreads of them took a seventh of the time of a decision. They
 * are set in the order of its schema: a decision that is made again from a record is the same text as the one on record.
 */
type Made = { -readonly [K in keyof Decision]: Decision[K] };

const withCalls = (s: Situation, decision: Made): Made => {
  if (s.ledger.any) decision.calls = s.facts.tools.map(({ call, tool, phase }) => ({ call, tool, phase }));
  return decision;
};
