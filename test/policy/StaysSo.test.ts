/**
 * Retries that would only pay for the same result again are not made.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { type AttemptFacts, fresh } from "../../src/domain/AttemptFacts.ts";
import { type Failure, incompleteCall, outputLimit } from "../../src/domain/Failure.ts";
import { defaultBudget, fresh as freshRun, RunFacts } from "../../src/domain/RunFacts.ts";
import { decide } from "../../src/policy/RecoveryPolicy.ts";

const facts: AttemptFacts = { ...fresh, delivery: "accepted", progress: "output" };
const decided = (failure: Failure, run: Partial<RunFacts>, more: Partial<AttemptFacts> = {}) => {
  const { action, because, rule } = decide({
    ...{ facts: { ...facts, ...more }, failure, budget: defaultBudget, jitter: 0 },
    run: { ...freshRun, ...run },
  });
  return { action, rule, isSame: because.includes("same_partial=true") };
};
const ended = { terminal_seen: true } as const;
const cut: Failure = { kind: "invalid_tool_input", in_band: true, code: incompleteCall };

describe("A retry that would pay for the same result again", () => {
  it("is not made after the same text as before, even if the budget allows it", () => {
    for (const kind of ["truncated", "transport", "server_error"] as const) {
      assert.deepInclude(decided({ kind }, {}), { action: "auto_retry_once", rule: "nothing_shown" });
      const again = decided({ kind }, { same_partial: true });
      assert.deepStrictEqual(again, { action: "ask_user", rule: "budget_exhausted", isSame: true });
    }
  });

  it("still moves to another route", () => {
    const run = { same_partial: true, next_route: "up", route_failures: 1 } as const;
    assert.deepInclude(decided({ kind: "server_error" }, run), { action: "auto_retry_once" });
  });

  it("is made once after an empty response, which is then accepted", () => {
    assert.deepInclude(decided({ kind: "empty" }, {}, ended), { action: "auto_retry_once" });
    const second = decided({ kind: "empty" }, { retries_after_empty: 1 }, ended);
    assert.deepInclude(second, { action: "do_not_retry", rule: "already_complete" });
  });

  it("leaves a truncated call to a runtime that can discard it, and withholds it from a caller that cannot", () => {
    const spent = { auto_retries: 3 };
    assert.deepInclude(decided(cut, spent, ended), { action: "do_not_retry", rule: "already_complete" });
    const withheld = decided(cut, { ...spent, discardable: false }, ended);
    assert.deepInclude(withheld, { action: "do_not_retry", rule: "budget_exhausted" });
    const byFinish = decided({ kind: "invalid_tool_input" }, { ...spent, discardable: false }, ended);
    assert.deepInclude(byFinish, { rule: "already_complete" });
  });

  it("is not made for a call that the request's own limit truncated", () => {
    const failure: Failure = { ...cut, code: outputLimit, retryable: false };
    assert.deepInclude(decided(failure, { discardable: false }, ended), {
      action: "do_not_retry",
      rule: "not_retryable",
    });
  });

  it.effect("is decided as before for facts stored without these fields", () =>
    Effect.gen(function* () {
      const { retries_after_empty, same_partial, ...older } = freshRun;
      assert.deepStrictEqual([retries_after_empty, same_partial], [0, false]);
      assert.deepStrictEqual(yield* Schema.decodeUnknownEffect(RunFacts)(older), freshRun);
    }),
  );
});
