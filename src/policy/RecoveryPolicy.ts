/**
 * Decides what becomes of a failed attempt: `auto_retry_once`, `ask_user` or `do_not_retry`.
 *
 * Pure, total and deterministic: the first row that fits gives the rule, more questions stand before an automatic retry
 * (RetryBudget.ts) and say where it goes (Moves.ts), and time and jitter are arguments. Start reading in PolicyRows.ts: it is the table.
 */
import type { Decision, Rule } from "../domain/Decision.ts";
import { isFinish } from "../domain/Failure.ts";
import * as Backoff from "./Backoff.ts";
import type { DecisionInput } from "./DecisionInput.ts";
import * as Decisions from "./Decisions.ts";
import { type MoveRow, moveRows, moves } from "./Moves.ts";
import { endRows, type PolicyRow, rows } from "./PolicyRows.ts";
import * as RetryBudget from "./RetryBudget.ts";
import { type AskingRule, type Ruling, rulings } from "./Rules.ts";
import * as Situation from "./Situation.ts";
import { checked, type StricterRules, tightened } from "./StricterRules.ts";
import * as StrictPolicy from "./StrictPolicy.ts";

export type { DecisionInput } from "./DecisionInput.ts";
export { everyRetryAsks, PolicyError, type StricterRules } from "./StricterRules.ts";

/** Version of the rules. Raised whenever a stored incident could be decided differently (law L9). */
export const version = "3";

/** A private member keeps object literals and spreads from being a policy: only this module makes one. */
declare class Made {
  private readonly made: true;
}

/** A policy that `make` made: a name to store with an incident, the version of its rules, and the decision. */
export interface RecoveryPolicy extends Made {
  readonly name: string;
  readonly version: string;
  /** The rows, in the order in which they are asked: what `stream-recovery policy` prints. */
  readonly rows: ReadonlyArray<PolicyRow>;
  /** What moves a run to its next route, in the order in which it is asked; empty where the policy never moves. */
  readonly moves: ReadonlyArray<MoveRow>;
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
  readonly stricter?: StricterRules;
}

/**
 * Makes a policy from a preset and stricter actions for some of its rules.
 *
 * @throws PolicyError where an unchecked configuration names an unknown rule or would loosen one
 */
export const make = (options: Options = {}): RecoveryPolicy => {
  const base = options.base === "strict" ? strict : standard;
  if (options.stricter === undefined)
    return options.name === undefined ? base : sealed({ ...base, name: options.name });
  const lowered = checked(options.stricter);
  const plan = options.base === "strict" ? strictPlan : standardPlan;
  return fromPlan(options.name ?? `${base.name}+stricter`, {
    ...plan,
    tighten: (ruling) => tightened(lowered, ruling),
  });
};

/** What a policy is made of: its rows, its moves, its veto and its wait. */
interface Plan {
  readonly rows: ReadonlyArray<PolicyRow>;
  readonly moves: ReadonlyArray<MoveRow>;
  readonly veto: (s: Situation.Situation, retry: RetryBudget.Retry) => AskingRule | undefined;
  readonly delayMs: (s: Situation.Situation) => number;
  readonly tighten: (ruling: Ruling) => Ruling;
}

// The private member exists in types only.
const sealed = (policy: Pick<RecoveryPolicy, keyof RecoveryPolicy>): RecoveryPolicy => policy as RecoveryPolicy;

const fromPlan = (name: string, plan: Plan): RecoveryPolicy =>
  sealed({
    name,
    version,
    rows: plan.rows,
    moves: plan.moves,
    decide: (input) => {
      const s = Situation.make(input);
      const ruling = plan.tighten(firstFit(plan.rows, s));
      if (ruling.action !== "auto_retry_once") return Decisions.make(s, settled(s, ruling), version);
      const retry = { mode: ruling.mode, moves: ruling.mode === "replay" && moves(s, plan.moves) };
      if (!retry.moves && !mayRepeat(s)) return Decisions.make(s, settled(s, ruling), version);
      const vetoed = plan.veto(s, retry);
      if (vetoed !== undefined) return Decisions.make(s, settled(s, plan.tighten(rulings[vetoed])), version);
      return Decisions.make(s, ruling, version, { ...retry, delayMs: retry.moves ? 0 : plan.delayMs(s) });
    },
  });

/** Whether the failed attempt's request may be sent again on its own route. */
const mayRepeat = (s: Situation.Situation): boolean => s.resolved.retryable || s.credentials;

/**
 * The ruling of a run that does not go on by itself. A failure that is not retryable passed row 7 for a move and for nothing else:
 * where it does not move it stops, and no row behind and no veto makes a question of it. A finish that no route takes any further
 * is the end of its response, as it is where it is no failure.
 */
const settled = (s: Situation.Situation, ruling: Ruling): Ruling => {
  if (mayRepeat(s)) return ruling;
  const stands = endRules.has(ruling.rule) ? ruling : rulings.not_retryable;
  return stands.rule === "not_retryable" && isFinish(s.failure) && s.facts.terminal_seen
    ? rulings.already_complete
    : stands;
};

/** What the rows above row 7 say, they say of every failure. */
const endRules: ReadonlySet<Rule> = new Set(endRows.flatMap(({ rules }) => rules));

const firstFit = (candidates: ReadonlyArray<PolicyRow>, s: Situation.Situation): Ruling => {
  for (const row of candidates) {
    const ruling = row.fits(s);
    if (ruling !== undefined) return ruling;
  }
  // The last row of every preset fits always; a question is the safe answer to a plan that forgot it.
  return rulings.unknown_failure;
};

const unchanged = (ruling: Ruling): Ruling => ruling;

const standardPlan: Plan = {
  rows,
  moves: moveRows,
  veto: RetryBudget.veto,
  delayMs: Backoff.delayMs,
  tighten: unchanged,
};

const strictPlan: Plan = {
  rows: StrictPolicy.rows,
  moves: [],
  veto: (s, retry) => RetryBudget.veto(s, retry) ?? (StrictPolicy.spent(s) ? "budget_exhausted" : undefined),
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
