/**
 * Decides what follows a failed attempt: `auto_retry_once`, `ask_user` or `do_not_retry`.
 *
 * Decisions are pure, total and deterministic; time and jitter are arguments. The first row that applies determines the rule. Before an
 * automatic retry, RetryBudget.ts may veto the retry and Moves.ts chooses its route. Start reading in PolicyRows.ts, which has the table.
 */
import type { Decision, Rule } from "../domain/Decision.ts";
import { isFinish } from "../domain/Failure.ts";
import * as Backoff from "./Backoff.ts";
import type { DecisionInput } from "./DecisionInput.ts";
import * as Decisions from "./Decisions.ts";
import { type MoveRow, moveRows, shouldMove } from "./Moves.ts";
import { endRows, type PolicyRow, rows } from "./PolicyRows.ts";
import * as RetryBudget from "./RetryBudget.ts";
import { type AskingRule, type Ruling, rulings } from "./Rules.ts";
import * as Situation from "./Situation.ts";
import { checkRules, type StricterRules, tightenRuling } from "./StricterRules.ts";
import * as StrictPolicy from "./StrictPolicy.ts";

export type { DecisionInput } from "./DecisionInput.ts";
export { everyRetryAsks, PolicyError, type StricterRules } from "./StricterRules.ts";

/** Version of the rules, raised whenever a stored incident could be decided differently (law L9). */
export const version = "3";

/** A brand, so that only `make` creates policies. Object literals and spreads do not type-check as a policy. */
declare class Made {
  private readonly made: true;
}

/** A policy made by `make`: a name to store with an incident, the version of its rules, and the decision. */
export interface RecoveryPolicy extends Made {
  readonly name: string;
  readonly version: string;
  /** Rows in evaluation order, as `stream-recovery policy` prints them. */
  readonly rows: ReadonlyArray<PolicyRow>;
  /** Rows that move a run to its next route, in evaluation order; empty if the policy never moves. */
  readonly moves: ReadonlyArray<MoveRow>;
  /** Decides an input. Total and deterministic: never throws for decoded input. */
  readonly decide: (input: DecisionInput) => Decision;
}

/** Decides by the default policy. */
export const decide = (input: DecisionInput): Decision => standard.decide(input);

/** Options of `make`. Without any, `make` returns the default policy. */
export interface Options {
  /** Name of the policy in incidents. Default: the base's name, with `+stricter` if rules were tightened. */
  readonly name?: string;
  /** Preset to tighten. Default: `default`. */
  readonly base?: "default" | "strict";
  /**
   * Stricter actions by rule, each further down the chain `auto_retry_once` > `ask_user` > `do_not_retry`. A looser action does
   * not compile. Tightening a replay rule also tightens the rules that apply once its facts have grown (law L2).
   */
  readonly stricter?: StricterRules;
}

/**
 * Makes a policy from a preset and stricter actions for some of its rules.
 *
 * @throws PolicyError if an unchecked configuration names an unknown rule or would loosen one
 */
export const make = (options: Options = {}): RecoveryPolicy => {
  const base = options.base === "strict" ? strict : standard;
  if (options.stricter === undefined) return options.name === undefined ? base : seal({ ...base, name: options.name });
  const lowered = checkRules(options.stricter);
  const plan = options.base === "strict" ? strictPlan : standardPlan;
  return fromPlan(options.name ?? `${base.name}+stricter`, {
    ...plan,
    tighten: (ruling) => tightenRuling(lowered, ruling),
  });
};

interface Plan {
  readonly rows: ReadonlyArray<PolicyRow>;
  readonly moves: ReadonlyArray<MoveRow>;
  readonly veto: (s: Situation.Situation, retry: RetryBudget.Retry) => AskingRule | undefined;
  readonly delayMs: (s: Situation.Situation) => number;
  readonly tighten: (ruling: Ruling) => Ruling;
}

// The private member exists in types only.
const seal = (policy: Pick<RecoveryPolicy, keyof RecoveryPolicy>): RecoveryPolicy => policy as RecoveryPolicy;

const fromPlan = (name: string, plan: Plan): RecoveryPolicy =>
  seal({
    name,
    version,
    rows: plan.rows,
    moves: plan.moves,
    decide: (input) => {
      const s = Situation.make(input);
      const ruling = plan.tighten(findFirstFit(plan.rows, s));
      if (ruling.action !== "auto_retry_once") return Decisions.make(s, rulingWithoutRetry(s, ruling), version);
      const retry = { mode: ruling.mode, moves: ruling.mode === "replay" && shouldMove(s, plan.moves) };
      if (!retry.moves && !mayRepeat(s)) return Decisions.make(s, rulingWithoutRetry(s, ruling), version);
      const vetoed = plan.veto(s, retry);
      if (vetoed !== undefined) return Decisions.make(s, rulingWithoutRetry(s, plan.tighten(rulings[vetoed])), version);
      return Decisions.make(s, ruling, version, { ...retry, delayMs: retry.moves ? 0 : plan.delayMs(s) });
    },
  });

/** True if the failed attempt's request may be sent again on its own route. */
const mayRepeat = (s: Situation.Situation): boolean => s.resolved.retryable || s.credentials;

/**
 * Returns the ruling if there is no automatic retry. Row 7 lets a failure that is not retryable pass only so that the run can change route.
 * Without a move the run stops, and no later row or veto turns the failure into a question. A finish that is configured as a failure then
 * completes the response.
 */
const rulingWithoutRetry = (s: Situation.Situation, ruling: Ruling): Ruling => {
  if (mayRepeat(s)) return ruling;
  const stands = endRules.has(ruling.rule) ? ruling : rulings.not_retryable;
  return stands.rule === "not_retryable" && isFinish(s.failure) && s.facts.terminal_seen
    ? rulings.already_complete
    : stands;
};

/** Rules of rows 1 to 7, which apply to every failure. */
const endRules: ReadonlySet<Rule> = new Set(endRows.flatMap(({ rules }) => rules));

const findFirstFit = (candidates: ReadonlyArray<PolicyRow>, s: Situation.Situation): Ruling => {
  for (const row of candidates) {
    const ruling = row.match(s);
    if (ruling !== undefined) return ruling;
  }
  // The last row of every preset always applies. If it were missing, asking would be the safe result.
  return rulings.unknown_failure;
};

const keepRuling = (ruling: Ruling): Ruling => ruling;

const standardPlan: Plan = {
  rows,
  moves: moveRows,
  veto: RetryBudget.veto,
  delayMs: Backoff.delayMs,
  tighten: keepRuling,
};

const strictPlan: Plan = {
  rows: StrictPolicy.rows,
  moves: [],
  veto: (s, retry) => RetryBudget.veto(s, retry) ?? (StrictPolicy.isSpent(s) ? "budget_exhausted" : undefined),
  delayMs: StrictPolicy.delayMs,
  tighten: keepRuling,
};

const standard = fromPlan("default", standardPlan);

/** Preset of the first published form of this policy; see StrictPolicy.ts. */
export const strict: RecoveryPolicy = fromPlan("strict", strictPlan);

export {
  /** The default policy; see PolicyRows.ts. */
  standard as default,
};
