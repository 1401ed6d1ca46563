/**
 * Checks the laws over what a run says of its path, its routes and its budgets.
 *
 * These facts are asked behind the rows, as vetoes or as what goes out; row 7 alone lets a move pass. So the product of an attempt's
 * facts need not grow with them: a retry is one that the rows have given (first test), and what the rows give shrinks (Laws.test.ts).
 * What reads both sides is checked over both: moves, and the counters that a free or a waited retry spares.
 */
import { assert, describe, it } from "@effect/vitest";
import { type AttemptFacts, Delivery, Progress } from "../../src/domain/AttemptFacts.ts";
import type { Action, Decision } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { type Budget, defaultBudget, fresh as freshRun, type RunFacts } from "../../src/domain/RunFacts.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import * as RetryBudget from "../../src/policy/RetryBudget.ts";
import { inputOf } from "./Case.ts";
import {
  chain,
  type FactsDimensions,
  fact,
  ledgers,
  failures as ofRows,
  type Span,
  seen,
  snapshots,
  span,
  wide,
} from "./Product.ts";

const rank: Record<Action, number> = { auto_retry_once: 0, ask_user: 1, do_not_retry: 2 };

/** The chains that moves and counters read beside the rows, with the rows' others by a value or two. */
const dimensions: FactsDimensions = {
  ...wide,
  delivery: fact("delivery", chain(...Delivery.literals)),
  progress: fact("progress", chain(...Progress.literals)),
  shown: seen,
  call_through: fact("call_through", chain(0)),
  settled_through: fact("settled_through", chain(2)),
  side_effects: fact("side_effects", { values: [snapshots.values[0] ?? null, null], above: [[1], []] }),
  tools: fact("tools", oneCall()),
};
const product = span(dimensions);

/** No call, and a call that changes something in every phase. */
function oneCall() {
  const { values } = ledgers(1);
  const rows = values.filter(([row]) => row === undefined || (row.executor === "runtime" && row.effect === "mutating"));
  return chain(...rows);
}

/** Failures by all that rows, moves and counters read of them. */
const failures: ReadonlyArray<Failure> = [
  ...ofRows,
  { kind: "truncated" },
  { kind: "protocol", reason: "damaged_frame" },
  { kind: "rate_limited", retry_after_ms: 9_000 },
  { kind: "rejected", reason: "quota" },
  { kind: "rejected", reason: "not_found" },
  { kind: "transport", code: "ENOTFOUND" },
  { kind: "server_error", status: 501 },
  { kind: "stalled", clock: "run" },
  { kind: "refused" },
  { kind: "model_length" },
  { kind: "empty" },
  { kind: "caller_failed" },
];

/** Where a run may stand: its path, an announced wait, and whether another route is left. */
const places: ReadonlyArray<Partial<RunFacts>> = [
  {},
  { path: "down" },
  { cooldown_ms: 3_000 },
  { cooldown_ms: 9_000 },
  { path: "down", waited_ms: 120_000 },
  ...[{}, { path: "down" as const }, { cooldown_ms: 9_000 }, { route_failures: 1 }, { own_route: true, moves: 1 }].map(
    (place) => ({ ...place, next_route: "up" as const }),
  ),
];

/** What a run may have spent: nothing, a part, or all of it. */
const spendings: ReadonlyArray<Partial<RunFacts>> = [
  {},
  { auto_retries: 3 },
  { not_processed_retries: 3 },
  { not_processed_retries: 3, auto_retries: 3 },
  { not_processed_retries: 3, auto_retries: 3, waited_for_path: true },
  { retries_after_shown: 1, retries_after_stall: 1 },
  { retries_after_empty: 1 },
  { same_partial: true },
  { wasted_tokens: 900, next_tokens: 101 },
  { group_retries: 4 },
  { throttle_wait_ms: 60_001 },
];

const budget: Budget = { ...defaultBudget, max_moves: 2, max_wasted_tokens: 1_000, max_group_retries: 4 };

/** Flags of the runtime that the rows read. */
const runtimes: ReadonlyArray<Partial<RunFacts>> = [
  {},
  { discardable: false },
  { can_continue: true, continue_text: "auto" },
  { mode: "continue", resumable: true, can_refresh_credentials: true },
];

const cross = (...parts: ReadonlyArray<ReadonlyArray<Partial<RunFacts>>>): ReadonlyArray<RunFacts> =>
  parts.reduce<ReadonlyArray<RunFacts>>(
    (runs, part) => runs.flatMap((run) => part.map((it) => ({ ...run, ...it }))),
    [freshRun],
  );

const every = (index: number, step: number): boolean => index % step === 0;

describe("L3 own facts: the run around an attempt", () => {
  it("no veto turns a non-retry into a retry: what is retried under any budget and any wait is what the rows give, mode and rule", () => {
    let retried = 0;
    for (const failure of failures) {
      for (const run of cross(runtimes, places, spendings)) {
        const { cooldown_ms: _, path: __, ...flags } = run;
        const free = { ...freshRun, ...unspent(flags) };
        for (const facts of product.facts.filter((_, index) => every(index, 11))) {
          const decision = decide(facts, failure, run);
          if (decision.action !== "auto_retry_once") continue;
          retried += 1;
          // A move says itself that the rows have let it pass; without it they are asked as if the run had no other route.
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

  it("more that is spent or waited never permits what less of it did not", () => {
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
              // A route that may not be gone to any more leaves the one that the run is on, which may still retry.
              if (value < (ranks[index - 1] ?? 0)) assert.fail(JSON.stringify({ facts, failure, run, amount, ranks }));
            }
          }
        }
      }
    }
  });
});

describe("L2 permission shrinks, under every setting of the run's new flags", () => {
  it("path, cooldown, routes, moves, tokens and group, with a budget that is whole and one that is spent", () => {
    for (const failure of failures) {
      for (const run of cross(runtimes, places, spendings.slice(0, 6))) {
        const grown = growth(product, failure, run);
        if (grown !== undefined) assert.fail(grown);
      }
    }
  });

  it("in the strict policy, and in one that makes a replay rule stricter", () => {
    const stricter = RecoveryPolicy.make({
      stricter: { only_reasoning_shown: "ask_user", not_processed: "do_not_retry" },
    });
    for (const policy of [RecoveryPolicy.strict, stricter]) {
      for (const failure of failures) {
        for (const run of cross(places)) {
          const grown = growth(product, failure, run, policy);
          if (grown !== undefined) assert.fail(grown);
        }
      }
    }
  });
});

describe("What goes out", () => {
  it("wait_for stands with auto_retry_once alone, route only where there is another, and a move is a replay that waits for nothing", () => {
    const told = new Set<string>();
    for (const policy of [RecoveryPolicy.default, RecoveryPolicy.strict]) {
      for (const failure of failures) {
        for (const run of cross(runtimes, places, spendings)) {
          for (const facts of product.facts.filter((_, index) => every(index, 37))) {
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

  it("a failure that is not retryable becomes no continuation, no resume and no question by a route", () => {
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

  it("are asked in the order of their table, each where those before it do not hold", () => {
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

  it("ask of the throttle nothing while the run waits for its path or for an announced wait", () => {
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

/** The run with nothing spent and nothing waited. */
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

/** The first covering pair of facts along which permission grows, as text; nothing where the law holds. */
const growth = (
  { above, below, facts }: Span,
  failure: Failure,
  run: RunFacts,
  policy: RecoveryPolicy.RecoveryPolicy = RecoveryPolicy.default,
): string | undefined => {
  const whole = !run.can_continue && !run.resumable && !policy.name.includes("stricter");
  const decisions = facts.map((attempt) => policy.decide({ facts: attempt, failure, run, budget, jitter: 0.5 }));
  for (const [pair, index] of below.entries()) {
    const f = decisions[index];
    const g = decisions[above[pair] ?? 0];
    if (f === undefined || g === undefined) continue;
    const grows = (g.mode === "replay" && f.mode !== "replay") || (whole && rank[g.action] < rank[f.action]);
    if (grows) return JSON.stringify({ failure, run, f: [facts[index], f], g: [facts[above[pair] ?? 0], g] }, null, 1);
  }
  return undefined;
};
