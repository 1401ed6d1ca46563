/**
 * Checks that permission does not grow along the covering pairs of a product (law L2).
 */
import { assert } from "@effect/vitest";
import type { AttemptFacts } from "../../src/domain/AttemptFacts.ts";
import type { Action } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { type Budget, defaultBudget, type RunFacts } from "../../src/domain/RunFacts.ts";
import type * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import type { Span } from "./Product.ts";

/** The chain of actions, from the most permissive to the least. */
export const rank: Record<Action, number> = { auto_retry_once: 0, ask_user: 1, do_not_retry: 2 };

/** The suite that plays a share of the runs; both together play all of them. */
export type Suite = "quick" | "long";

/**
 * The share of a suite in the runs of a product of settings: an eighth for the quick suite, the rest for the long one. The quick suite
 * has every value of each of four or more settings, because each condition on a run's number counts the ones of several bits.
 */
export const share = <A>(runs: ReadonlyArray<A>, suite: Suite): ReadonlyArray<A> =>
  runs.filter((_, index) => masks.every((mask) => isEven(index & mask)) === (suite === "quick"));

/** The bits of a run's number whose ones are counted. */
const masks = [0x7fffffff, 0x55555555, 0x33333333];

const isEven = (index: number): boolean => index.toString(2).replaceAll("0", "").length % 2 === 0;

/** The first covering pair of facts along which permission grows, as text; undefined if the law holds. */
const growth = (
  policy: RecoveryPolicy.RecoveryPolicy,
  { facts, below, above }: Span,
  failure: Failure,
  run: RunFacts,
  budget: Budget,
): string | undefined => {
  const whole = !run.can_continue && !run.resumable && !policy.name.includes("stricter");
  const decide = (attempt: AttemptFacts) => policy.decide({ facts: attempt, failure, run, budget, jitter: 0.5 });
  // Two numbers per decision: 1 if it is no replay, and its place in the chain of actions.
  const noReplay = new Uint8Array(facts.length);
  const action = new Uint8Array(facts.length);
  for (const [index, attempt] of facts.entries()) {
    const decision = decide(attempt);
    noReplay[index] = decision.mode === "replay" ? 0 : 1;
    action[index] = whole ? rank[decision.action] : 0;
  }
  for (let pair = 0; pair < below.length; pair++) {
    const f = below[pair] ?? 0;
    const g = above[pair] ?? 0;
    if ((noReplay[f] ?? 0) <= (noReplay[g] ?? 0) && (action[f] ?? 0) <= (action[g] ?? 0)) continue;
    const told = [facts[f], facts[g]].map((attempt) => attempt && [attempt, decide(attempt)]);
    return JSON.stringify({ policy: policy.name, failure, run, budget, told }, null, 1);
  }
  return undefined;
};

/** Fails if permission grows over a product, under any of the failures and runs. */
export const noGrowth = (
  policy: RecoveryPolicy.RecoveryPolicy,
  product: Span,
  some: ReadonlyArray<Failure>,
  runs: ReadonlyArray<RunFacts>,
  budget: Budget = defaultBudget,
): void => {
  for (const failure of some) for (const run of runs) assert.isUndefined(growth(policy, product, failure, run, budget));
};
