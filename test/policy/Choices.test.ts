/** Every question that offers a retry says what it may repeat, and such a retry is never the default. */
import { assert, describe, it } from "@effect/vitest";
import { Choice } from "../../src/domain/Decision.ts";
import * as Choices from "../../src/policy/Choices.ts";
import type { DecisionInput } from "../../src/policy/DecisionInput.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { type Case, guarded, hosted, inputOf, provider, row, sent, text } from "./Case.ts";

const decided = (one: Omit<Case, "name" | "is">, policy = RecoveryPolicy.default) => {
  const input = inputOf(one);
  return { ...input, decision: policy.decide(input) };
};
const of = (one: Omit<Case, "name" | "is">, policy?: RecoveryPolicy.RecoveryPolicy) =>
  Choices.mayRepeat(decided(one, policy));

describe("The calls that a retry may repeat", () => {
  it("are those that the provider may have run unseen, whichever rule asks", () => {
    const unknown = { kind: "unknown" } as const;
    assert.deepStrictEqual(of({ facts: { ...sent, side_effects: hosted } }), [Choices.providerTools]);
    assert.deepStrictEqual(of({ facts: { ...sent, side_effects: null } }), [Choices.unknownTools]);
    assert.deepStrictEqual(of({ facts: { ...sent, side_effects: hosted }, failure: unknown }), [Choices.providerTools]);
    assert.deepStrictEqual(
      of({ facts: { ...sent, side_effects: hosted, tools: [provider("mutating", "input_started")] } }),
      ["0.input_started", Choices.providerTools],
    );
    assert.deepStrictEqual(
      of({ facts: { ...sent, side_effects: hosted, tools: [row("mutating", "settled")] }, failure: unknown }),
      ["0.settled", Choices.providerTools],
    );
  });

  it("are present whenever side effects cannot be ruled out, even with the strict policy", () => {
    const unclassified = { ...guarded, guarded: false, complete: false, reason: "unclassified_tools" } as const;
    const one = { facts: { delivery: "accepted", progress: "started", side_effects: unclassified } } as const;
    assert.strictEqual(decided(one, RecoveryPolicy.strict).decision.rule, "side_effects_unprovable");
    assert.deepStrictEqual(of(one, RecoveryPolicy.strict), [Choices.unknownTools]);
  });

  it("are absent if the provider did nothing, or reported all that it did", () => {
    assert.deepStrictEqual(of({ facts: text }), []);
    assert.deepStrictEqual(of({ facts: { ...sent, delivery: "not_sent", side_effects: hosted } }), []);
    const refused = { kind: "rate_limited", status: 429, retry_after_ms: 600_000 } as const;
    const one = { facts: { delivery: "accepted", side_effects: hosted }, failure: refused } as const;
    assert.strictEqual(decided(one).decision.rule, "retry_after_too_long");
    assert.deepStrictEqual(of(one), []);
  });

  it("do not change a stored decision (L9)", () => {
    const { decision, ...input } = decided({ facts: { ...sent, side_effects: hosted } });
    assert.isUndefined(decision.may_repeat);
    assert.deepStrictEqual(RecoveryPolicy.decide(input satisfies DecisionInput), decision);
  });
});

describe("The default of a question", () => {
  it("is an offered choice, and never a retry that may repeat something", () => {
    for (const wanted of [...Choice.literals, undefined])
      for (const choices of [Choice.literals, ["accept", "stop"] as const])
        for (const repeats of [[], ["0.0"], [Choices.providerTools]]) {
          const is = Choices.defaultOf(choices, repeats, wanted);
          assert.include(choices, is);
          if (repeats.length > 0) assert.notStrictEqual(is, "retry");
          else if (wanted !== undefined && choices.some((it) => it === wanted)) assert.strictEqual(is, wanted);
        }
  });
});
