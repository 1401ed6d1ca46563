/**
 * Determines the choices of a question, what its `retry` may repeat, and the default of an unattended question.
 *
 * A decision names only calls. A tool that the provider may have run unseen has no call, so `mayRepeat` adds an entry for it.
 */
import type { ToolRow } from "../domain/AttemptFacts.ts";
import type { Choice, Decision } from "../domain/Decision.ts";
import type { DecisionInput } from "./DecisionInput.ts";
import { isUnprovable } from "./PolicyRows.ts";
import { isAboutOutcome, type RuleEntry } from "./Rules.ts";
import * as Situation from "./Situation.ts";

/** Entry of `mayRepeat` for tools that the provider runs and that the stream did not report. */
export const providerTools = "tools that the provider runs";

/** Entry of `mayRepeat` for tools of unknown effect. */
export const unknownTools = "tools of unknown effect";

/** Lists the choices of a rule's question: always `stop`, and at least one of `retry` and `accept`. */
export const of = (s: Situation.Situation, entry: RuleEntry): ReadonlyArray<Choice> => {
  const offered: Array<Choice> = [];
  if (s.run.discardable || s.facts.shown === "nothing") offered.push("retry");
  if (s.run.can_continue) offered.push("continue");
  if (isAboutOutcome(entry)) offered.push("it_ran", "it_did_not_run");
  if (s.facts.shown !== "nothing") offered.push("accept");
  offered.push("stop");
  return offered;
};

/**
 * Returns true if an offered choice can change the response: a retry, a continuation, or a statement about a call. `accept` and
 * `stop` both leave the caller with what it has.
 *
 * @param offered the question's choices
 */
export const canChangeResponse = (offered: ReadonlyArray<Choice>): boolean =>
  offered.some((choice) => choice !== "accept" && choice !== "stop");

/** Lists the keys of calls that ran or may have run. Without a guard, a runtime may have started a call on partial input. */
export const repeatedCalls = (s: Situation.Situation): ReadonlyArray<string> =>
  s.ledger.any ? s.facts.tools.filter((row) => mayHaveRun(s, row)).map((row) => row.call) : [];

const mayHaveRun = (s: Situation.Situation, row: ToolRow): boolean =>
  !s.guarded ||
  row.executor === "provider" ||
  row.phase === "dispatched" ||
  row.phase === "outcome_unknown" ||
  row.phase === "settled";

/**
 * Lists what a person's `retry` may repeat: keys of calls that ran or may have run, then `providerTools` or `unknownTools` if
 * side effects cannot be proven. A retry that may repeat something is never the default and needs a second confirmation.
 *
 * @param incident the decision and its input
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
 * Chooses the default of an unattended question: an offered choice, but never a retry that may repeat something.
 *
 * @param repeated calls and tools that a retry may repeat
 * @param wanted the choice of a program or policy; replaced by `stop` if it cannot be taken
 */
export const defaultOf = (
  offered: ReadonlyArray<Choice>,
  repeated: ReadonlyArray<string>,
  wanted: Choice | undefined,
): Choice => {
  if (wanted === undefined || !offered.includes(wanted)) return "stop";
  return wanted === "retry" && repeated.length > 0 ? "stop" : wanted;
};
