import { assert, describe, it } from "@effect/vitest";
import { Result } from "effect";
import { type AttemptFacts, fresh as freshFacts } from "../../src/domain/AttemptFacts.ts";
import type { Action } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { type Budget, defaultBudget, fresh as freshRun, type RunFacts } from "../../src/domain/RunFacts.ts";
import { atMost } from "../../src/facts/Facts.ts";
import { foldRows } from "../../src/facts/ToolRows.ts";
import { parse } from "../../src/policy/DecisionInput.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { seeded } from "../Seeded.ts";
import {
  deep,
  deepEnded,
  distinct,
  failures,
  flags,
  recoverable,
  rowsOf,
  type Span,
  snapshots,
  span,
  wide,
} from "./Product.ts";

const rank: Record<Action, number> = { auto_retry_once: 0, ask_user: 1, do_not_retry: 2 };
const wideSpan = span(wide);
const deepSpan = span(deep);
const deepEndedSpan = span(deepEnded);

/** The first covering pair of facts along which permission grows, as text; nothing where the law holds. */
const growth = (
  policy: RecoveryPolicy.RecoveryPolicy,
  { facts, below, above }: Span,
  failure: Failure,
  run: RunFacts,
  budget: Budget,
): string | undefined => {
  const whole = !run.can_continue && !run.resumable && !policy.name.includes("stricter");
  const decide = (attempt: AttemptFacts) => policy.decide({ facts: attempt, failure, run, budget, jitter: 0.5 });
  // Two numbers a decision: whether it is no replay, and its place in the chain of actions.
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

const noGrowth = (
  policy: RecoveryPolicy.RecoveryPolicy,
  product: Span,
  some: ReadonlyArray<Failure>,
  runs: ReadonlyArray<RunFacts>,
  budget: Budget = defaultBudget,
): void => {
  for (const failure of some) for (const run of runs) assert.isUndefined(growth(policy, product, failure, run, budget));
};

describe("L2 permission shrinks", () => {
  it("over every value of every chain with one call, every failure and every setting of the flags", () => {
    noGrowth(RecoveryPolicy.default, wideSpan, distinct, flags);
  });

  it("over ledgers of up to two rows and their folds, under every setting of the flags", () => {
    noGrowth(RecoveryPolicy.default, deepSpan, recoverable, flags);
    noGrowth(RecoveryPolicy.default, deepEndedSpan, [{ kind: "invalid_tool_input" }], flags);
  });

  it("where a part of the budget is spent", () => {
    const plain = { ...freshRun, can_refresh_credentials: true };
    const partly: ReadonlyArray<RunFacts> = [
      { ...plain, retries_after_shown: 1 },
      { ...plain, retries_after_stall: 1 },
      { ...plain, auto_retries: 3 },
    ];
    noGrowth(RecoveryPolicy.default, wideSpan, failures, partly);
  });

  it("in the strict policy", () => {
    noGrowth(RecoveryPolicy.strict, wideSpan, failures, [freshRun, { ...freshRun, discardable: false }]);
    noGrowth(RecoveryPolicy.strict, deepSpan, recoverable.slice(0, 2), [freshRun]);
  });

  it("in a policy that makes any one replay rule stricter", () => {
    const made = (
      ["not_sent", "not_processed", "nothing_shown", "only_reasoning_shown", "only_read_only_tools"] as const
    ).map((rule) => RecoveryPolicy.make({ stricter: { [rule]: "ask_user" } }));
    for (const policy of made) noGrowth(policy, wideSpan, recoverable.slice(0, 3), [freshRun]);
  });

  it("and the covering pairs that it is checked along are pairs of growing facts", () => {
    for (const { facts, below, above } of [wideSpan, deepSpan]) {
      assert.isAbove(below.length, facts.length);
      for (let pair = 0; pair < below.length; pair += 97) {
        const f = facts[below[pair] ?? 0] ?? freshFacts;
        const g = facts[above[pair] ?? 0] ?? freshFacts;
        // Ledgers of two rows stand for multisets here: which of them is call `a` is not kept.
        if (g.tools.length === 2 || f.tools.length === 2) continue;
        assert.isTrue(atMost(f, g), JSON.stringify([f, g]));
        assert.isFalse(atMost(g, f), JSON.stringify([f, g]));
      }
    }
  });

  it("and an effect that is not known decides as a mutating one", () => {
    for (const row of rowsOf(["unknown"])) {
      for (const side_effects of snapshots.values) {
        for (const run of flags) {
          const facts = { ...freshFacts, delivery: "accepted", progress: "output", side_effects } as const;
          const decide = (effect: "unknown" | "mutating") =>
            RecoveryPolicy.decide({
              facts: { ...facts, tools: [{ ...row, effect }] },
              failure: { kind: "transport" },
              run,
              budget: defaultBudget,
              jitter: 0,
            });
          assert.deepStrictEqual(decide("unknown"), decide("mutating"));
        }
      }
    }
  });
});

describe("L11 bounded", () => {
  it("a folded row never permits more than the rows that went into it, whatever stands beside them", () => {
    const rows = rowsOf(["read_only", "mutating"]);
    const texts = [
      { shown: "nothing", text_through: 0 },
      { shown: "text", text_through: 3 },
      { shown: "text", text_through: 1 },
    ] as const;
    const cutOrMalformed: ReadonlyArray<Failure> = [{ kind: "transport" }, { kind: "invalid_tool_input" }];
    let folded = 0;
    for (const a of rows) {
      for (const b of rows.filter((row) => row.executor === a.executor)) {
        for (const beside of [[], ...rowsOf(["read_only", "mutating"]).map((row) => [{ ...row, call: "c" }])]) {
          for (const text of texts) {
            for (const side_effects of snapshots.values.slice(0, 2)) {
              for (const run of flags.filter(({ discardable }) => discardable)) {
                for (const failure of cutOrMalformed) {
                  for (const terminal_seen of failure.kind === "invalid_tool_input" ? [false, true] : [false]) {
                    const facts = { ...freshFacts, delivery: "accepted", progress: "output", ...text } as const;
                    const rest = { call_through: 2, settled_through: 2, terminal_seen, side_effects };
                    const decide = (tools: AttemptFacts["tools"]) =>
                      RecoveryPolicy.decide({
                        facts: { ...facts, ...rest, tools },
                        failure,
                        run,
                        budget: defaultBudget,
                        jitter: 0,
                      });
                    const apart = decide([a, { ...b, call: "b" }, ...beside]);
                    const fold = decide([foldRows(a, { ...b, call: "b" }), ...beside]);
                    folded += 1;
                    if (
                      rank[apart.action] > rank[fold.action] ||
                      (fold.mode !== undefined && fold.mode !== apart.mode)
                    ) {
                      assert.fail(JSON.stringify({ a, b, beside, text, side_effects, run, failure, apart, fold }));
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
    assert.isAbove(folded, 100_000);
  });
});

describe("L3 own facts", () => {
  it("nothing of the run can permit what the attempt's own facts do not: cancel, close, budget and throttle only veto", () => {
    const vetoes: ReadonlyArray<Partial<RunFacts>> = [
      { user_cancelled: true },
      { lifecycle_closed: true },
      { auto_retries: 3, not_processed_retries: 5 },
      { elapsed_ms: 300_000 },
      { throttle_wait_ms: 60_001 },
      { retries_after_shown: 1, retries_after_stall: 1 },
    ];
    for (const failure of failures) {
      for (const run of flags) {
        for (const facts of wideSpan.facts.filter((_, index) => index % 31 === 0)) {
          const decide = (veto: Partial<RunFacts>) =>
            RecoveryPolicy.decide({ facts, failure, run: { ...run, ...veto }, budget: defaultBudget, jitter: 0 });
          const free = decide({});
          for (const veto of vetoes) {
            const vetoed = decide(veto);
            if (rank[vetoed.action] < rank[free.action]) assert.fail(JSON.stringify({ facts, failure, run, veto }));
          }
        }
      }
    }
  });

  it("a cancel or a close stops every attempt that is not complete", () => {
    for (const failure of failures) {
      for (const facts of wideSpan.facts.filter((_, index) => index % 37 === 0)) {
        for (const [flag, rule] of [
          ["user_cancelled", "user_cancelled"],
          ["lifecycle_closed", "lifecycle_closed"],
        ] as const) {
          const decision = RecoveryPolicy.decide({
            facts,
            failure,
            run: { ...freshRun, [flag]: true },
            budget: defaultBudget,
            jitter: 0,
          });
          assert.strictEqual(decision.action, "do_not_retry");
          if (!facts.terminal_seen) assert.strictEqual(decision.rule, rule);
        }
      }
    }
  });
});

describe("L9 replayable", () => {
  it("an input that went through JSON is decided as before, and again as before", () => {
    const seed = 20_261_121;
    const random = seeded(seed);
    for (let i = 0; i < 2_000; i++) {
      const input = {
        facts: pick(random, deepSpan.facts),
        failure: pick(random, failures),
        run: { ...pick(random, flags), auto_retries: Math.floor(random() * 4), elapsed_ms: random() * 400_000 },
        budget: defaultBudget,
        jitter: random(),
      };
      const stored = RecoveryPolicy.decide(input);
      const read = Result.getOrThrow(parse(JSON.parse(JSON.stringify(input))));
      assert.deepStrictEqual(read, input, `seed ${seed}`);
      assert.deepStrictEqual(RecoveryPolicy.decide(read), stored, `seed ${seed}`);
      assert.strictEqual(stored.policy_version, RecoveryPolicy.version);
    }
  });
});

const pick = <A>(random: () => number, values: ReadonlyArray<A>): A => {
  const found = values[Math.floor(random() * values.length)];
  if (found === undefined) throw new Error("nothing to pick from");
  return found;
};
