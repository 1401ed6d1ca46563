/**
 * Says what a question offers, what its `retry` may repeat, and what an unattended one takes.
 *
 * A decision names calls only. A tool that the provider may have run unseen has no call, and a person is told of it all the same.
 */
import type { ToolRow } from "../domain/AttemptFacts.ts";
import type { Choice, Decision } from "../domain/Decision.ts";
import type { DecisionInput } from "./DecisionInput.ts";
import { isUnprovable } from "./PolicyRows.ts";
import { aboutOutcome, type RuleEntry } from "./Rules.ts";
import * as Situation from "./Situation.ts";

/** The list's word for tools that a provider runs itself and that the stream told nothing of. */
export const providerTools = "tools that the provider runs";

/** The list's word for tools of unknown effect. */
export const unknownTools = "tools of unknown effect";

/** The choices of a rule's question, at least two: what was shown can be accepted or, if the caller can discard, retried. */
export const of = (s: Situation.Situation, entry: RuleEntry): ReadonlyArray<Choice> => {
  const offered: Array<Choice> = [];
  if (s.run.discardable || s.facts.shown === "nothing") offered.push("retry");
  if (s.run.can_continue) offered.push("continue");
  if (aboutOutcome(entry)) offered.push("it_ran", "it_did_not_run");
  if (s.facts.shown !== "nothing") offered.push("accept");
  offered.push("stop");
  return offered;
};

/**
 * Whether a question makes a difference to the response: something can be asked for again, continued, or told of a call.
 * `accept` and `stop` both leave the caller with what it has.
 *
 * @param offered the question's choices
 */
export const matter = (offered: ReadonlyArray<Choice>): boolean =>
  offered.some((choice) => choice !== "accept" && choice !== "stop");

/** The keys of calls that ran or may have run. Without a guard nothing proves that a runtime did not start on cut input. */
export const repeatedCalls = (s: Situation.Situation): ReadonlyArray<string> =>
  s.ledger.any ? s.facts.tools.filter((row) => mayHaveRun(s, row)).map((row) => row.call) : [];

const mayHaveRun = (s: Situation.Situation, row: ToolRow): boolean =>
  !s.guarded ||
  row.executor === "provider" ||
  row.phase === "dispatched" ||
  row.phase === "outcome_unknown" ||
  row.phase === "settled";

/**
 * What a person's `retry` may repeat: keys of calls that ran or may have run, then `providerTools` or `unknownTools` where side
 * effects cannot be proven. A retry that may repeat something is never the default, and needs a second word.
 *
 * @param incident what was decided, and on what
 */
export const mayRepeat = (incident: DecisionInput & { readonly decision: Decision }): ReadonlyArray<string> => {
  const { decision } = incident;
  const calls = decision.may_repeat ?? [];
  const offersRetry = decision.action === "ask_user" && decision.choices?.includes("retry") === true;
  if (!offersRetry) return calls;
  const situation = Situation.make(incident);
  if (isUnprovable(situation)) {
    return [...calls, situation.facts.side_effects === null ? unknownTools : providerTools];
  }
  return decision.rule === "side_effects_unprovable" ? [...calls, unknownTools] : calls;
};

/**
 * What an unattended question takes: a choice that it offers, and never a retry that may repeat something.
 *
 * @param repeated what a retry may repeat
 * @param wanted what a program or the policy says; `stop` where it cannot be taken
 */
export const defaultOf = (
  offered: ReadonlyArray<Choice>,
  repeated: ReadonlyArray<string>,
  wanted: Choice | undefined,
): Choice => {
  if (wanted === undefined || !offered.includes(wanted)) return "stop";
  return wanted === "retry" && repeated.length > 0 ? "stop" : wanted;
};
