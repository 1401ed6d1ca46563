import { assert, describe, it } from "@effect/vitest";
import { Result } from "effect";
import { type AttemptFacts, fresh as freshFacts } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { defaultBudget, fresh as freshRun, type RunFacts } from "../../src/domain/RunFacts.ts";
import { atMost } from "../../src/facts/Facts.ts";
import { foldRows } from "../../src/facts/ToolRows.ts";
import { parse } from "../../src/policy/DecisionInput.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { seeded } from "../Seeded.ts";
import { noGrowth, rank } from "./Growth.ts";
import { deepSpan, permissionShrinks, wideSpan } from "./LawCases.ts";
import { failures, flags, recoverable, rowsOf, snapshots } from "./Product.ts";

permissionShrinks("quick");

describe("L2 permission shrinks", () => {
  it("if a part of the budget is spent", () => {
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

  it("in a policy that makes a single replay rule stricter", () => {
    const made = (
      ["not_sent", "not_processed", "nothing_shown", "only_reasoning_shown", "only_read_only_tools"] as const
    ).map((rule) => RecoveryPolicy.make({ stricter: { [rule]: "ask_user" } }));
    for (const policy of made) noGrowth(policy, wideSpan, recoverable.slice(0, 3), [freshRun]);
  });

  it("and its covering pairs are pairs of growing facts", () => {
    for (const { facts, below, above } of [wideSpan, deepSpan]) {
      assert.isAbove(below.length, facts.length);
      for (let pair = 0; pair < below.length; pair += 97) {
        const f = facts[below[pair] ?? 0] ?? freshFacts;
        const g = facts[above[pair] ?? 0] ?? freshFacts;
        // A ledger of two rows is a multiset here: it does not keep which row is call `a`.
        if (g.tools.length === 2 || f.tools.length === 2) continue;
        assert.isTrue(atMost(f, g), JSON.stringify([f, g]));
        assert.isFalse(atMost(g, f), JSON.stringify([f, g]));
      }
    }
  });

  it("and an unknown effect is decided like a mutating one", () => {
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
  it("a folded row never permits more than the rows that it replaces, beside any other rows", () => {
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
  it("nothing of the run permits a retry that the attempt's own facts forbid: cancel, close, budget and throttle only veto", () => {
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

  it("a cancel or a close stops every incomplete attempt", () => {
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
  it("an input is decided the same after a round trip through JSON, and every time", () => {
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
