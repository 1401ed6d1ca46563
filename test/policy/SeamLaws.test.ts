/**
 * Checks the laws over continued text: a seam never turns a more dangerous situation into a retry (L2), and nothing that
 * `continue_text` permits repeats shown text (L4).
 */
import { assert, describe, it } from "@effect/vitest";
import type { AttemptFacts } from "../../src/domain/AttemptFacts.ts";
import type { Action } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { AttemptMode, defaultBudget, type RunFacts } from "../../src/domain/RunFacts.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { chain, deep, fact, flags, ledgers, failures as ofRows, recoverable, span } from "./Product.ts";

const rank: Record<Action, number> = { auto_retry_once: 0, ask_user: 1, do_not_retry: 2 };
/** Every chain with the values that the rows distinguish, and ledgers of up to one row, for all failures in all modes. */
const product = span({
  ...deep,
  terminal_seen: fact("terminal_seen", chain(false, true)),
  tools: fact("tools", ledgers(1)),
});

const faults = ["differs", "stopped", "not_text", "repeats", "unwritable"] as const;

/** A continuation with an unproven seam, as the runtime reports it, with each of its faults. */
const unproven: ReadonlyArray<Failure> = faults.map((code) => ({ kind: "protocol", reason: "seam_unproven", code }));

/** Every setting of the flags, in each mode of an attempt. */
const runs: ReadonlyArray<RunFacts> = flags
  .filter(({ mode }) => mode === "first")
  .flatMap((run) =>
    AttemptMode.literals.flatMap((mode) => [false, true].map((resumable) => ({ ...run, mode, resumable }))),
  );

const decide = (facts: AttemptFacts, failure: Failure, run: RunFacts) =>
  RecoveryPolicy.decide({ facts, failure, run, budget: defaultBudget, jitter: 0.5 });

describe("L2 permission shrinks if text is continued", () => {
  it("both settings of continue_text are in the product over which the law is checked, and an unproven seam is among its failures", () => {
    assert.deepStrictEqual([...new Set(flags.map((run) => run.continue_text))].sort(), ["ask", "auto"]);
    assert.isTrue(ofRows.some((failure) => failure.kind === "protocol" && failure.reason === "seam_unproven"));
  });

  it("an unproven seam is never retried, in any mode, with any facts: a continuation asks, everything else stops", () => {
    for (const failure of unproven) {
      for (const run of runs) {
        for (const facts of product.facts) {
          const { action, rule } = decide(facts, failure, run);
          if (action === "auto_retry_once") assert.fail(JSON.stringify({ facts, failure, run, rule }));
          if (facts.terminal_seen) continue;
          const expected = run.mode === "continue" ? "ask_user recovery_refused" : "do_not_retry not_retryable";
          if (`${action} ${rule}` !== expected) assert.fail(JSON.stringify({ facts, failure, run, action, rule }));
        }
      }
    }
  });

  it("in every mode an unproven seam and a retry permit no more as the facts grow, if text is continued or not", () => {
    for (const failure of [...recoverable, ...unproven.slice(0, 1)]) {
      for (const run of runs) {
        const whole = !run.can_continue && !run.resumable;
        const decisions = product.facts.map((facts) => decide(facts, failure, run));
        for (const [pair, below] of product.below.entries()) {
          const f = decisions[below];
          const g = decisions[product.above[pair] ?? 0];
          if (f === undefined || g === undefined) continue;
          const grows = (f.mode !== "replay" && g.mode === "replay") || (whole && rank[f.action] > rank[g.action]);
          if (grows) assert.fail(JSON.stringify({ failure, run, f, g, facts: product.facts[below] }));
        }
      }
    }
  });

  it("if auto and ask differ, auto requests a continuation and repeats nothing, and they differ whenever only text raises the question", () => {
    let went = 0;
    for (const failure of ofRows) {
      for (const run of runs.filter(({ continue_text }) => continue_text === "auto")) {
        for (const facts of product.facts) {
          const auto = decide(facts, failure, run);
          const ask = decide(facts, failure, { ...run, continue_text: "ask" });
          if (auto.rule === ask.rule && auto.action === ask.action && auto.mode === ask.mode) continue;
          const continues =
            run.can_continue && auto.mode === "continue" && ["continue_text", "tools_settled"].includes(auto.rule);
          if (!continues) assert.fail(JSON.stringify({ facts, failure, run, auto, ask }));
          if (auto.rule === "continue_text" && ask.rule === "text_shown") went += 1;
        }
      }
    }
    assert.isAbove(went, 1_000);
  });
});
