/**
 * Decides what becomes of a failed attempt: `auto_retry_once`, `ask_user` or `do_not_retry`.
 *
 * Pure, total and deterministic: the first row that fits gives the verdict, three more questions stand before an automatic
 * retry, and time and jitter are arguments. Start reading in PolicyRows.ts: it is the table.
 */
import type { Decision, Rule } from "../domain/Decision.ts";
import * as Answer from "./Answer.ts";
import * as Backoff from "./Backoff.ts";
import type { DecisionInput } from "./DecisionInput.ts";
import type { PolicyRow, Verdict } from "./PolicyRow.ts";
import { rows } from "./PolicyRows.ts";
import * as RetryBudget from "./RetryBudget.ts";
import * as Situation from "./Situation.ts";
import { checked, type Stricter, tightened } from "./Stricter.ts";
import * as StrictPolicy from "./StrictPolicy.ts";

export type { DecisionInput } from "./DecisionInput.ts";
export { PolicyError, type Stricter } from "./Stricter.ts";

/** Version of the rules. Raised whenever a stored incident could be decided differently (law L9). */
export const version = "2";

/** A policy: a name to store with an incident, the version of its rules, and the decision. */
export interface RecoveryPolicy {
  readonly name: string;
  readonly version: string;
  /** The rows, in the order in which they are asked: what `stream-recovery policy` prints. */
  readonly rows: ReadonlyArray<PolicyRow>;
  /** Total and deterministic; never throws for decoded input. */
  readonly decide: (input: DecisionInput) => Decision;
}

/** Decides by the default policy. */
export const decide = (input: DecisionInput): Decision => standard.decide(input);

/** What `make` takes. */
export interface Options {
  /** The policy's name in incidents. Default: the base's name, with `+stricter` where rules were tightened. */
  readonly name?: string;
  /** Which preset is tightened. Default: `default`. */
  readonly base?: "default" | "strict";
  /**
   * Actions for rules, each a move down the chain `auto_retry_once` > `ask_user` > `do_not_retry`. A looser one does not
   * compile. A replay rule that is tightened tightens the rules that its facts grow into (law L2).
   */
  readonly stricter?: Stricter;
}

/**
 * Makes a policy from a preset and stricter answers to some of its rules.
 *
 * @throws PolicyError where an unchecked configuration names an unknown rule or would loosen one
 */
export const make = (options: Options = {}): RecoveryPolicy => {
  const base = options.base === "strict" ? strict : standard;
  if (options.stricter === undefined) return options.name === undefined ? base : { ...base, name: options.name };
  const lowered = checked(options.stricter);
  const plan = options.base === "strict" ? strictPlan : standardPlan;
  return fromPlan(options.name ?? `${base.name}+stricter`, { ...plan, tighten: (v) => tightened(lowered, v) });
};

/** How a policy answers: its rows, its veto and its wait. */
interface Plan {
  readonly rows: ReadonlyArray<PolicyRow>;
  readonly veto: (
    s: Situation.Situation,
    verdict: Verdict & { readonly action: "auto_retry_once" },
  ) => Rule | undefined;
  readonly delayMs: (s: Situation.Situation) => number;
  readonly tighten: (verdict: Verdict) => Verdict;
}

const fromPlan = (name: string, plan: Plan): RecoveryPolicy => ({
  name,
  version,
  rows: plan.rows,
  decide: (input) => {
    const s = Situation.make(input);
    const verdict = plan.tighten(firstFit(plan.rows, s));
    if (verdict.action !== "auto_retry_once") return Answer.make(s, verdict, version, 0);
    const vetoed = plan.veto(s, verdict);
    if (vetoed === undefined) return Answer.make(s, verdict, version, plan.delayMs(s));
    return Answer.make(s, plan.tighten({ action: "ask_user", rule: vetoed }), version, 0);
  },
});

const firstFit = (candidates: ReadonlyArray<PolicyRow>, s: Situation.Situation): Verdict => {
  for (const row of candidates) {
    const verdict = row.fits(s);
    if (verdict !== undefined) return verdict;
  }
  // The last row of every preset fits always; a question is the safe answer to a plan that forgot it.
  return { action: "ask_user", rule: "unknown_failure" };
};

const unchanged = (verdict: Verdict): Verdict => verdict;

const standardPlan: Plan = {
  rows,
  veto: (s, verdict) => RetryBudget.veto(s, verdict.mode),
  delayMs: Backoff.delayMs,
  tighten: unchanged,
};

const strictPlan: Plan = {
  rows: StrictPolicy.rows,
  veto: (s, verdict) => RetryBudget.veto(s, verdict.mode) ?? (StrictPolicy.spent(s) ? "budget_exhausted" : undefined),
  delayMs: StrictPolicy.delayMs,
  tighten: unchanged,
};

const standard = fromPlan("default", standardPlan);

/** The first published form of this design as a preset: StrictPolicy.ts. */
export const strict: RecoveryPolicy = fromPlan("strict", strictPlan);

export {
  /** The policy of the table: PolicyRows.ts. */
  standard as default,
};
