/**
 * Checks the laws over a run's path, routes and budgets.
 *
 * These facts are read after the rows, as vetoes or as properties of the retry; only row 7 lets a move pass. So the product of an
 * attempt's facts need not grow with them: a retry is one that the rows permit (first test), and that permission shrinks (Laws.test.ts).
 * Rules that read both sides are checked over both: moves, and the counters that a free or a postponed retry spares.
 */
import { assert, describe, it } from "@effect/vitest";
import type { AttemptFacts } from "../../src/domain/AttemptFacts.ts";
import type { Decision } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { type Budget, defaultBudget, fresh as freshRun, type RunFacts } from "../../src/domain/RunFacts.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import * as RetryBudget from "../../src/policy/RetryBudget.ts";
import { inputOf } from "./Case.ts";
import { noGrowth, rank } from "./Growth.ts";
import {
  budget,
  cross,
  every,
  failures,
  permissionShrinksIn,
  places,
  product,
  runtimes,
  spendings,
} from "./RunLawCases.ts";

permissionShrinksIn("quick");

describe("L3 own facts: the run around an attempt", () => {
  it("no veto turns a stop or a question into a retry: under any budget and any wait, a retry is one that the rows permit, in mode and rule", () => {
    let retried = 0;
    for (const failure of failures) {
      for (const run of cross(runtimes, places, spendings)) {
        const { cooldown_ms: _, path: __, ...flags } = run;
        const free = { ...freshRun, ...unspent(flags) };
        for (const facts of product.facts.filter((_, index) => every(index, 11))) {
          const decision = decide(facts, failure, run);
          if (decision.action !== "auto_retry_once") continue;
          retried += 1;
          // A move says itself that the rows let it pass. Otherwise the rows are evaluated as if the run had no other route.
          const given = decide(
            facts,
            failure,
            decision.route === "next" ? run : { ...free, next_route: "none" },
            defaultBudget,
          );
          if (given.action !== decision.action || given.mode !== decision.mode || given.rule !== decision.rule) {
            assert.fail(JSON.stringify({ facts, failure, run, decision, given }));
          }
        }
      }
    }
    assert.isAbove(retried, 40_000);
  });

  it("the rows read nothing of path, wait, tokens or group: without a route and with an open budget the ruling stays the same", () => {
    const unlimited: Budget = { ...defaultBudget, max_outage_ms: "forever" };
    for (const failure of failures) {
      for (const run of cross(runtimes)) {
        for (const facts of product.facts.filter((_, index) => every(index, 11))) {
          const plain = decide(facts, failure, run, unlimited);
          for (const place of [
            { path: "down", waited_ms: 999_999_999 },
            { cooldown_ms: 9_000 },
            { wasted_tokens: 9_999, next_tokens: 9_999, group_retries: 99, group_wasted_tokens: 9_999 },
            { own_route: true, route_failures: 3, moves: 2 },
          ] as const) {
            const { action, mode, rule } = decide(facts, failure, { ...run, ...place }, unlimited);
            if (action !== plain.action || mode !== plain.mode || rule !== plain.rule)
              assert.fail(JSON.stringify({ facts, failure, run, place, plain, rule }));
          }
        }
      }
    }
  });

  it("more spending or waiting never permits what less of it forbids", () => {
    const amounts = [
      "waited_ms",
      "throttle_wait_ms",
      "auto_retries",
      "not_processed_retries",
      "retries_after_shown",
      "retries_after_stall",
      "retries_after_empty",
      "elapsed_ms",
      "moves",
      "wasted_tokens",
      "next_tokens",
      "group_retries",
      "group_wasted_tokens",
    ] as const;
    const limits: Budget = { ...budget, max_group_wasted_tokens: 1_000 };
    for (const failure of failures) {
      for (const run of cross(places)) {
        for (const facts of product.facts.filter((_, index) => every(index, 211))) {
          for (const amount of amounts) {
            const ranks = [0, 1, 3, 5, 1_001, 60_001, 120_000, 300_000].map((value) => {
              const decision = decide(facts, failure, { ...run, [amount]: value }, limits);
              return rank[decision.action];
            });
            for (const [index, value] of ranks.entries()) {
              // A route that may no longer be used leaves the current one, which may still retry.
              if (value < (ranks[index - 1] ?? 0)) assert.fail(JSON.stringify({ facts, failure, run, amount, ranks }));
            }
          }
        }
      }
    }
  });
});

describe("L2 permission shrinks, under every setting of the run's new flags", () => {
  it("in the strict policy, and in one that makes a replay rule stricter", () => {
    const stricter = RecoveryPolicy.make({
      stricter: { only_reasoning_shown: "ask_user", not_processed: "do_not_retry" },
    });
    for (const policy of [RecoveryPolicy.strict, stricter]) {
      noGrowth(policy, product, failures, cross(places), budget);
    }
  });
});

describe("The fields of a decision", () => {
  it("set wait_for only with auto_retry_once and route only if there is another one, and a move is a replay that waits for nothing", () => {
    const told = new Set<string>();
    for (const policy of [RecoveryPolicy.default, RecoveryPolicy.strict]) {
      for (const failure of failures) {
        for (const run of cross(runtimes, places, spendings)) {
          for (const facts of product.facts.filter((_, index) => every(index, 111))) {
            const { action, delay_ms, mode, route, wait_for } = policy.decide({
              facts,
              failure,
              run,
              budget,
              jitter: 0.5,
            });
            const retries = action === "auto_retry_once";
            const holds =
              (wait_for === undefined || retries) &&
              (route !== undefined) === (retries && run.next_route === "up") &&
              (route !== "next" || (mode === "replay" && delay_ms === 0 && wait_for === undefined)) &&
              (!retries || route === "next" || (wait_for === "path") === (run.path === "down")) &&
              (wait_for !== "cooldown" || (run.cooldown_ms > 0 && delay_ms >= run.cooldown_ms));
            if (!holds) assert.fail(JSON.stringify({ facts, failure, run, action, mode, route, wait_for }));
            told.add(`${policy.name} ${mode} ${route} ${wait_for}`);
          }
        }
      }
    }
    assert.includeMembers(
      [...told],
      [
        "default replay next undefined",
        "default replay same undefined",
        "default replay undefined path",
        "default continue same path",
        "default resume same path",
        "strict replay same path",
      ],
    );
    assert.isFalse([...told].some((it) => it.startsWith("strict") && it.includes("next")));
  });

  it("never turn a failure that is not retryable into a continuation, a resume or a question because of a route", () => {
    const final = failures.filter((failure) => decide(inputOf({}).facts, failure, freshRun).rule === "not_retryable");
    assert.isAbove(final.length, 5);
    for (const failure of final) {
      for (const run of cross([...runtimes, { can_continue: true, resumable: true }], places, spendings)) {
        if (run.can_refresh_credentials) continue;
        for (const facts of product.facts.filter((_, index) => every(index, 23))) {
          const decision = decide(facts, failure, run);
          const holds =
            decision.action === "do_not_retry" ||
            (decision.mode === "replay" && decision.route === "next") ||
            decision.rule === "recovery_refused";
          if (!holds) assert.fail(JSON.stringify({ facts, failure, run, decision }));
        }
      }
    }
  });
});

describe("The questions before an automatic retry", () => {
  const all: Partial<RunFacts> = {
    path: "down",
    waited_ms: 120_000,
    cooldown_ms: 90_000,
    throttle_wait_ms: 90_000,
    wasted_tokens: 2_000,
    elapsed_ms: 300_000,
  };
  const lifted: ReadonlyArray<readonly [Partial<RunFacts>, Decision["rule"]]> = [
    [{}, "outage_too_long"],
    [{ waited_ms: 0, path: "up" }, "retry_after_too_long"],
    [{ cooldown_ms: 0 }, "throttled"],
    [{ throttle_wait_ms: 0 }, "token_budget"],
    [{ wasted_tokens: 0 }, "budget_exhausted"],
    [{ elapsed_ms: 0 }, "nothing_shown"],
  ];

  it("are asked in the order of their table, each only if the earlier ones do not hold", () => {
    let run: Partial<RunFacts> = all;
    const facts = { delivery: "accepted" } as const;
    const limits: Partial<Budget> = { max_wasted_tokens: 1_000, max_outage_ms: 120_000 };
    const given = lifted.map(([less, rule]) => {
      run = { ...run, ...less };
      const decision = RecoveryPolicy.decide(inputOf({ facts, run, budget: limits }));
      assert.strictEqual(decision.rule, rule);
      return decision.rule;
    });
    assert.deepStrictEqual(
      given.slice(0, -1),
      RetryBudget.vetoes.map(({ rule }) => rule),
    );
  });

  it("do not use the throttle while the run waits for its path or for an announced delay", () => {
    const throttled = { throttle_wait_ms: 60_001 };
    const ruleOf = (run: Partial<RunFacts>) => RecoveryPolicy.decide(inputOf({ run: { ...throttled, ...run } })).rule;
    assert.deepStrictEqual(
      [ruleOf({}), ruleOf({ path: "down" }), ruleOf({ cooldown_ms: 1 })],
      ["throttled", "not_sent", "not_sent"],
    );
  });
});

const decide = (facts: AttemptFacts, failure: Failure, run: RunFacts, limits: Budget = budget): Decision =>
  RecoveryPolicy.decide({ facts, failure, run, budget: limits, jitter: 0.5 });

/** The run with nothing spent and no wait. */
const unspent = (run: Partial<RunFacts>): Partial<RunFacts> => ({
  ...run,
  throttle_wait_ms: 0,
  auto_retries: 0,
  not_processed_retries: 0,
  retries_after_shown: 0,
  retries_after_stall: 0,
  retries_after_empty: 0,
  elapsed_ms: 0,
  waited_ms: 0,
  wasted_tokens: 0,
  next_tokens: 0,
  group_retries: 0,
  group_wasted_tokens: 0,
});
