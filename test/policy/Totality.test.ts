import { assert, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import { Decision, Rule } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { type Budget, defaultBudget, fresh as freshRun } from "../../src/domain/RunFacts.ts";
import { explain } from "../../src/policy/Explanation.ts";
import { printTable } from "../../src/policy/PolicyTable.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { failures, flags, span, wide } from "./Product.ts";

const wideSpan = span(wide);

describe("The policy is total", () => {
  const known = Schema.is(Decision);
  // A record that is read has this order, and deciding it again must give the same text.
  const order = Object.keys(Decision.fields);
  const given = new Map<RecoveryPolicy.RecoveryPolicy, Set<string>>();

  for (const policy of [RecoveryPolicy.default, RecoveryPolicy.strict]) {
    it(`${policy.name}: every input of the product has a well-formed decision and a sentence`, () => {
      const rules = new Set<string>();
      const orders = new Set<string>();
      let index = 0;
      given.set(policy, rules);
      const extra: ReadonlyArray<Failure> = [
        { kind: "cancelled", by: "user" },
        { kind: "cancelled", by: "lifecycle" },
        { kind: "cancelled", by: "caller" },
        { kind: "rate_limited", retry_after_ms: 90_000 },
        { kind: "truncated" },
        { kind: "protocol", reason: "oversize" },
        { kind: "caller_failed" },
        { kind: "crashed" },
      ];
      const budget: Budget = { ...defaultBudget, max_wasted_tokens: 1_000 };
      const runs = [
        ...flags,
        { ...freshRun, throttle_wait_ms: 70_000 },
        { ...freshRun, auto_retries: 3 },
        { ...freshRun, path: "down" as const, waited_ms: 120_000 },
        { ...freshRun, wasted_tokens: 900, next_tokens: 101 },
      ];
      const some = wideSpan.facts.filter(({ tools }, index) => tools.length === 0 || index % 31 === 0);
      for (const failure of [...failures, ...extra]) {
        for (const run of runs) {
          for (const facts of some) {
            const decision = policy.decide({ facts, failure, run, budget, jitter: 0.999 });
            rules.add(decision.rule);
            wellFormed(decision);
            if (index % 7 === 0) orders.add(Object.keys(decision).join());
            if (index++ % 31 === 0) assert.match(explain(decision, failure, facts), /^[A-Z].*\.$/);
          }
        }
      }
      for (const keys of orders) assert.strictEqual(keys, order.filter((key) => keys.split(",").includes(key)).join());
      for (const facts of wideSpan.facts.filter((_, index) => index % 101 === 0)) {
        assert.isTrue(
          known(
            policy.decide({ facts, failure: { kind: "transport" }, run: freshRun, budget: defaultBudget, jitter: 0 }),
          ),
        );
      }
    });

    it(`${policy.name}: returns exactly the rules of its table`, () => {
      const listed = new Set<string>(printTable(policy).flatMap((row) => row.rules));
      assert.deepStrictEqual([...(given.get(policy) ?? [])].sort(), [...listed].sort());
    });
  }

  it("every rule of the vocabulary is reached by the default policy", () => {
    const rules = given.get(RecoveryPolicy.default) ?? new Set();
    assert.deepStrictEqual([...rules].sort(), [...Rule.literals].sort());
  });
});

const wellFormed = (decision: Decision): void => {
  const { action, mode, delay_ms, choices = [], default_choice } = decision;
  const question = action === "ask_user";
  const holds =
    (mode !== undefined) === (action === "auto_retry_once") &&
    (decision.choices !== undefined) === question &&
    Number.isFinite(delay_ms) &&
    delay_ms >= 0 &&
    (!question || choices.length >= 2) &&
    (!question || new Set(choices).size === choices.length) &&
    (!question || choices.some((choice) => choice === default_choice)) &&
    !(decision.may_repeat !== undefined && default_choice === "retry");
  if (!holds) assert.fail(JSON.stringify(decision));
};
