/**
 * Builds a decision from a verdict: what it rests on, the calls it concerns and, for a question, what may be answered.
 */
import type { ToolRow } from "../domain/AttemptFacts.ts";
import type { Choice, Decision, Rule } from "../domain/Decision.ts";
import { because } from "./Because.ts";
import type { Verdict } from "./PolicyRow.ts";
import type { Situation } from "./Situation.ts";

/**
 * A verdict as a decision.
 *
 * @param version the policy's version
 * @param delayMs the wait before an automatic retry, in milliseconds
 */
export const make = (s: Situation, verdict: Verdict, version: string, delayMs: number): Decision => {
  if (verdict.action === "auto_retry_once") {
    return {
      action: verdict.action,
      rule: verdict.rule,
      mode: verdict.mode,
      delay_ms: delayMs,
      policy_version: version,
      because: because(s, verdict.rule),
      ...calls(s),
    };
  }
  return verdict.action === "ask_user" ? question(s, verdict.rule, version) : stop(s, verdict.rule, version);
};

const stop = (s: Situation, rule: Rule, version: string): Decision => ({
  action: "do_not_retry",
  rule,
  delay_ms: 0,
  policy_version: version,
  because: because(s, rule),
  ...calls(s),
});

/**
 * A question, unless there is nothing to ask: a run whose terminal marker was seen and whose content is malformed ends as
 * complete, because runtimes give such an error back to the model.
 */
const question = (s: Situation, rule: Rule, version: string): Decision => {
  if (s.malformed && s.facts.terminal_seen) return stop(s, "already_complete", version);
  const repeated = mayRepeat(s);
  return {
    action: "ask_user",
    rule,
    delay_ms: 0,
    policy_version: version,
    because: because(s, rule),
    ...calls(s),
    choices: choices(s, rule),
    ...(repeated.length === 0 ? {} : { may_repeat: repeated }),
    // An unattended question must end the run: any other default would be an automatic retry by another name.
    default_choice: "stop",
  };
};

const calls = (s: Situation): Pick<Decision, "calls"> =>
  s.ledger.any ? { calls: s.facts.tools.map(({ call, tool, phase }) => ({ call, tool, phase })) } : none;

const none = {};

/** At least two: what cannot be withdrawn was shown and can be accepted, and everything else can be retried. */
const choices = (s: Situation, rule: Rule): ReadonlyArray<Choice> => {
  const offered: Array<Choice> = [];
  if (s.run.discardable || s.facts.shown === "nothing") offered.push("retry");
  if (s.run.can_continue) offered.push("continue");
  if (rule === "tool_outcome_unknown") offered.push("it_ran", "it_did_not_run");
  if (s.facts.shown !== "nothing") offered.push("accept");
  offered.push("stop");
  return offered;
};

/** Calls that ran or may have run. Without a guard nothing proves that a runtime did not start on cut input. */
const mayRepeat = (s: Situation): ReadonlyArray<string> =>
  s.ledger.any ? s.facts.tools.filter((row) => mayHaveRun(s, row)).map((row) => row.call) : [];

const mayHaveRun = (s: Situation, row: ToolRow): boolean =>
  !s.guarded ||
  row.executor === "provider" ||
  row.phase === "dispatched" ||
  row.phase === "outcome_unknown" ||
  row.phase === "settled";
