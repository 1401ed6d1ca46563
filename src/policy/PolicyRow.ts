/**
 * Says what a row of a policy is: a condition and an answer, as code and as the words that the table prints.
 */
import type { Action, Rule } from "../domain/Decision.ts";
import type { AttemptMode } from "../domain/RunFacts.ts";
import type { Situation } from "./Situation.ts";

/** What a row answers, before budget and Retry-After are asked. `mode` stands with `auto_retry_once`. */
export type Verdict =
  | { readonly action: "auto_retry_once"; readonly rule: Rule; readonly mode: Exclude<AttemptMode, "first"> }
  | { readonly action: "ask_user" | "do_not_retry"; readonly rule: Rule };

/** One row. The first row of a policy that fits gives the verdict. */
export interface PolicyRow {
  /** The number in the table of DESIGN section 6. */
  readonly number: number;
  /** The condition in words, as the table prints it. */
  readonly condition: string;
  /** The answer in words: an action, or the mode of an automatic retry. */
  readonly answer: string;
  /** Every rule that this row can give. */
  readonly rules: ReadonlyArray<Rule>;
  /** The verdict where the row fits, else nothing. Pure. */
  readonly fits: (s: Situation) => Verdict | undefined;
}

/** A row whose answer is one action by one rule. */
export const stopRow = (
  number: number,
  rule: Rule,
  action: Exclude<Action, "auto_retry_once">,
  condition: string,
  test: (s: Situation) => boolean,
): PolicyRow => {
  const verdict: Verdict = { action, rule };
  return { number, condition, answer: action, rules: [rule], fits: (s) => (test(s) ? verdict : undefined) };
};

/** The verdict of an automatic retry. */
export const retryIn = (mode: Exclude<AttemptMode, "first">, rule: Rule): Verdict => ({
  action: "auto_retry_once",
  rule,
  mode,
});
