import { assert, describe, it } from "@effect/vitest";
import { type AttemptFacts, fresh as freshFacts, type ToolPhase, type ToolRow } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { defaultBudget, fresh as freshRun, type RunFacts } from "../../src/domain/RunFacts.ts";
import { empty } from "../../src/domain/SideEffects.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { failures, flags, span, wide } from "./Product.ts";

const accepted: AttemptFacts = { ...freshFacts, delivery: "accepted", side_effects: { ...empty, guarded: true } };
const call = (phase: ToolPhase, executor: ToolRow["executor"] = "runtime"): Partial<AttemptFacts> => ({
  tools: [{ call: "0.0", tool: "read", executor, effect: "read_only", phase }],
});
const strict = (facts: Partial<AttemptFacts>, failure: Failure = { kind: "transport" }, run: Partial<RunFacts> = {}) =>
  RecoveryPolicy.strict.decide({
    facts: { ...accepted, ...facts },
    failure,
    run: { ...freshRun, ...run },
    budget: defaultBudget,
    jitter: 0.9,
  });

describe("The strict policy", () => {
  const rows: ReadonlyArray<readonly [string, Partial<AttemptFacts>, Failure, Partial<RunFacts>, string]> = [
    ["1: the marker was seen", { terminal_seen: true }, { kind: "transport" }, {}, "do_not_retry already_complete"],
    ["2: the user cancelled", {}, { kind: "transport" }, { user_cancelled: true }, "do_not_retry user_cancelled"],
    [
      "3: the session was closed",
      {},
      { kind: "transport" },
      { lifecycle_closed: true },
      "do_not_retry lifecycle_closed",
    ],
    ["4: an unsigned interrupt", {}, { kind: "cancelled", by: "caller" }, {}, "do_not_retry caller_interrupted"],
    ["5: an unknown failure", {}, { kind: "unknown" }, {}, "ask_user unknown_failure"],
    ["6: a refused continuation", {}, { kind: "caller_failed" }, { mode: "continue" }, "ask_user recovery_refused"],
    ["7: nothing to retry", {}, { kind: "rejected", reason: "quota" }, {}, "do_not_retry not_retryable"],
    [
      "8: even a read of unknown outcome",
      call("outcome_unknown"),
      { kind: "transport" },
      {},
      "ask_user tool_outcome_unknown",
    ],
    [
      "8: even a read that was dispatched",
      call("dispatched"),
      { kind: "transport" },
      {},
      "ask_user tool_outcome_unknown",
    ],
    ["9: no resume", { shown: "text" }, { kind: "transport" }, { resumable: true }, "ask_user text_shown"],
    [
      "10: malformed after a tool",
      { ...call("settled"), terminal_seen: true },
      { kind: "empty" },
      {},
      "do_not_retry already_complete",
    ],
    [
      "12: even a guarded read handed over",
      call("handed_over"),
      { kind: "transport" },
      {},
      "ask_user tool_call_handed_over",
    ],
    ["13: even a guarded read's input", call("input_started"), { kind: "transport" }, {}, "ask_user tool_input_shown"],
    [
      "13: complete, and not materialised",
      call("input_complete"),
      { kind: "transport" },
      {},
      "ask_user tool_input_shown",
    ],
    [
      "14: even a provider's search",
      call("settled", "provider"),
      { kind: "transport" },
      {},
      "ask_user provider_tool_activity",
    ],
    ["15: no snapshot", { side_effects: null }, { kind: "rate_limited" }, {}, "ask_user side_effects_unprovable"],
    [
      "15: an incomplete snapshot",
      { side_effects: { ...empty, complete: false } },
      { kind: "transport" },
      {},
      "ask_user side_effects_unprovable",
    ],
    [
      "16: no continue",
      { ...call("settled"), settled_through: 2 },
      { kind: "transport" },
      { can_continue: true },
      "ask_user tool_ran",
    ],
    ["18: reasoning shown", { shown: "reasoning" }, { kind: "transport" }, {}, "ask_user text_shown"],
    ["18: output that was not shown", { progress: "output" }, { kind: "transport" }, {}, "ask_user text_shown"],
    ["19: nothing at all", {}, { kind: "transport" }, {}, "auto_retry_once nothing_shown"],
    ["19: not processed", {}, { kind: "rate_limited" }, {}, "auto_retry_once not_processed"],
    ["once a run", {}, { kind: "transport" }, { auto_retries: 1 }, "ask_user budget_exhausted"],
    [
      "once a run, also where it was free",
      {},
      { kind: "transport" },
      { not_processed_retries: 1 },
      "ask_user budget_exhausted",
    ],
  ];
  for (const [name, facts, failure, run, expected] of rows) {
    it(`row ${name}: ${expected}`, () => {
      const { action, rule } = strict(facts, failure, run);
      assert.strictEqual(`${action} ${rule}`, expected);
    });
  }

  it("waits a fixed second, and never less than the provider announces", () => {
    assert.strictEqual(strict({}).delay_ms, 1_000);
    assert.strictEqual(strict({}, { kind: "rate_limited", retry_after_ms: 9_000 }).delay_ms, 9_000);
  });

  it("waits for a path and for an announced delay like the default, and never moves", () => {
    const sent = (run: Partial<RunFacts>) => strict({ delivery: "not_sent" }, { kind: "transport" }, run);
    assert.deepInclude(sent({ path: "down" }), { mode: "replay", wait_for: "path", delay_ms: 0 });
    assert.deepInclude(sent({ path: "down", auto_retries: 1, not_processed_retries: 1 }), { wait_for: "path" });
    assert.deepInclude(sent({ path: "down", waited_ms: 120_000 }), { rule: "outage_too_long" });
    assert.deepInclude(sent({ cooldown_ms: 9_000, throttle_wait_ms: 500 }), { wait_for: "cooldown", delay_ms: 9_000 });
    assert.deepInclude(sent({ cooldown_ms: 10 }), { wait_for: "cooldown", delay_ms: 1_000 });
    const elsewhere = { next_route: "up", route_failures: 4, own_route: true } as const;
    assert.deepInclude(sent({ ...elsewhere, path: "down" }), { route: "same", wait_for: "path" });
    assert.deepInclude(strict({}, { kind: "rejected", reason: "quota" }, elsewhere), { rule: "not_retryable" });
    assert.deepInclude(strict({ terminal_seen: true }, { kind: "refused" }, elsewhere), { rule: "already_complete" });
  });

  it("never permits anything that the default policy forbids", () => {
    const rank = { auto_retry_once: 0, ask_user: 1, do_not_retry: 2 } as const;
    for (const facts of span(wide).facts.filter((_, index) => index % 23 === 0)) {
      for (const failure of failures) {
        for (const run of flags) {
          const input = { facts, failure, run, budget: defaultBudget, jitter: 0 };
          const own = RecoveryPolicy.strict.decide(input);
          const other = RecoveryPolicy.decide(input);
          if (rank[own.action] < rank[other.action]) assert.fail(JSON.stringify({ input, own, other }));
        }
      }
    }
  });
});

describe("A policy that is made stricter", () => {
  const decide = (policy: RecoveryPolicy.RecoveryPolicy, facts: Partial<AttemptFacts>) =>
    policy.decide({
      facts: { ...accepted, ...facts },
      failure: { kind: "transport" },
      run: freshRun,
      budget: defaultBudget,
      jitter: 0,
    });

  it("asks if the default retries", () => {
    const policy = RecoveryPolicy.make({ stricter: { only_read_only_tools: "ask_user" } });
    const decision = decide(policy, call("dispatched"));
    assert.strictEqual(decision.action, "ask_user");
    assert.strictEqual(decision.rule, "only_read_only_tools");
    assert.deepStrictEqual(decision.choices, ["retry", "stop"]);
    assert.strictEqual(decide(policy, {}).action, "auto_retry_once");
    assert.strictEqual(policy.name, "default+stricter");
  });

  it("stops if the default asks", () => {
    const policy = RecoveryPolicy.make({ name: "headless", stricter: { text_shown: "do_not_retry" } });
    assert.strictEqual(decide(policy, { shown: "text" }).action, "do_not_retry");
    assert.strictEqual(policy.name, "headless");
  });

  it("applies a replay rule's answer to the rules it grows into", () => {
    const policy = RecoveryPolicy.make({ stricter: { nothing_shown: "ask_user" } });
    assert.strictEqual(decide(policy, { shown: "reasoning" }).action, "ask_user");
  });

  it("can be built on the strict preset", () => {
    const policy = RecoveryPolicy.make({ base: "strict", stricter: { nothing_shown: "do_not_retry" } });
    assert.strictEqual(decide(policy, {}).action, "do_not_retry");
    assert.strictEqual(decide(policy, { shown: "reasoning" }).rule, "text_shown");
  });

  it("cannot be made looser: neither by types nor at run time, which gives a clear error", () => {
    // @ts-expect-error a question cannot become a retry
    const retries: RecoveryPolicy.StricterRules = { text_shown: "auto_retry_once" };
    // @ts-expect-error a stop stays a stop
    const asks: RecoveryPolicy.StricterRules = { user_cancelled: "ask_user" };
    // @ts-expect-error the same action is no move
    const same: RecoveryPolicy.StricterRules = { text_shown: "ask_user" };
    // @ts-expect-error no such rule
    const hidden: RecoveryPolicy.StricterRules = { text_hidden: "do_not_retry" };
    // @ts-expect-error no such action
    const never: RecoveryPolicy.StricterRules = { nothing_shown: "never" };
    const make = (stricter: RecoveryPolicy.StricterRules) => () => RecoveryPolicy.make({ stricter });
    assert.throws(make(retries), /text_shown: "auto_retry_once" is not stricter than "ask_user"/);
    assert.throws(make(asks), /user_cancelled: "ask_user" is not stricter than "do_not_retry"/);
    assert.throws(make(same), /not stricter/);
    assert.throws(make(hidden), /text_hidden: no such rule/);
    assert.throws(make(never), /"never"/);
  });
});
