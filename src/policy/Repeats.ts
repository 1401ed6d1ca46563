/**
 * Says what a person's `retry` may repeat: the calls of the decision, and what no part of the stream told of.
 *
 * A decision names calls only. What a provider may have run unseen has no call, and is asked about all the same.
 */
import type { Choice, Decision } from "../domain/Decision.ts";
import type { DecisionInput } from "./DecisionInput.ts";
import { isUnprovable } from "./PolicyRows.ts";
import * as Situation from "./Situation.ts";

/** What stands in the list for tools that a provider runs itself and that the stream told nothing of. */
export const providerTools = "tools that the provider runs";

/** What stands in the list for tools of unknown effect. */
export const unknownTools = "tools of unknown effect";

/**
 * What a retry may repeat: keys of calls that ran or may have run, then `providerTools` or `unknownTools` where side effects
 * cannot be proven. A retry that may repeat something is never the default, and needs a second word.
 *
 * @param incident what was decided, and on what
 */
export const of = (incident: DecisionInput & { readonly decision: Decision }): ReadonlyArray<string> => {
  const { decision } = incident;
  const calls = decision.may_repeat ?? [];
  const situation = Situation.make(incident);
  const unseen = decision.action === "ask_user" && decision.choices?.includes("retry") === true;
  if (!unseen) return calls;
  if (isUnprovable(situation)) {
    return [...calls, situation.facts.side_effects === null ? unknownTools : providerTools];
  }
  return decision.rule === "side_effects_unprovable" ? [...calls, unknownTools] : calls;
};

/**
 * What an unattended question takes: a choice that it offers, and never a retry that may repeat something.
 *
 * @param wanted what a program or the policy says; `stop` where it cannot be taken
 */
export const defaultOf = (
  choices: ReadonlyArray<Choice>,
  mayRepeat: ReadonlyArray<string>,
  wanted: Choice | undefined,
): Choice => {
  if (wanted === undefined || !choices.includes(wanted)) return "stop";
  return wanted === "retry" && mayRepeat.length > 0 ? "stop" : wanted;
};
