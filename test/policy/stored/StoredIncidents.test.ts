/**
 * Decides incidents again that earlier versions stored. The sources of that time wrote each line: the last commit with rules of
 * version 1, and the last one before paths, routes and budgets of tokens.
 */
import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import { RunIncident } from "../../../src/domain/RunIncident.ts";
import { type DecisionInput, ofIncident } from "../../../src/policy/DecisionInput.ts";
import { explain } from "../../../src/policy/Explanation.ts";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";

const linesOf = (version: string): ReadonlyArray<string> =>
  readFileSync(new URL(`version-${version}.jsonl`, import.meta.url), "utf8")
    .trimEnd()
    .split("\n");

const read = Schema.decodeUnknownSync(RunIncident);
const policyOf = ({ policy }: RunIncident) => (policy === "strict" ? RecoveryPolicy.strict : RecoveryPolicy.default);

describe("L9 a stored incident", () => {
  for (const version of ["1", "2"]) {
    it(`of version ${version} is decided as stored, word for word`, () => {
      const rules = new Set<string>();
      for (const line of linesOf(version)) {
        const incident = read(JSON.parse(line));
        const { policy_version: stored, ...decision } = incident.decision;
        assert.strictEqual(stored, version);
        const { policy_version: _, ...again } = policyOf(incident).decide(ofIncident(incident));
        assert.deepStrictEqual(again, decision, line);
        rules.add(decision.rule);
      }
      assert.isAbove(rules.size, 25);
    });

    it(`of version ${version} is decided as stored if plain JavaScript reads it, without the fields that came later`, () => {
      for (const line of linesOf(version)) {
        // The result of `JSON.parse`, without the defaults of a schema.
        const incident = JSON.parse(line) as RunIncident;
        assert.notProperty(incident.run, "path");
        assert.notProperty(incident.budget, "max_outage_ms");
        const { action, delay_ms, mode, rule } = policyOf(incident).decide(ofIncident(incident));
        const { decision } = incident;
        assert.deepStrictEqual(
          [action, rule, mode, delay_ms],
          [decision.action, decision.rule, decision.mode, decision.delay_ms],
        );
      }
    });
  }

  it("of version 2 with an exhausted budget of refusals is decided as stored", () => {
    const rules = new Set<string>();
    for (const line of linesOf("2-budget-spent")) {
      const incident = read(JSON.parse(line));
      const { policy_version: _, ...again } = policyOf(incident).decide(ofIncident(incident));
      const { policy_version: stored, ...decision } = incident.decision;
      assert.strictEqual(stored, "2");
      assert.deepStrictEqual(again, decision, line);
      rules.add(decision.rule);
    }
    assert.deepStrictEqual([...rules].sort(), [
      "budget_exhausted",
      "not_processed",
      "not_sent",
      "nothing_shown",
      "text_shown",
    ]);
  });

  it("of version 2 has one sentence for each sentence that was stored", () => {
    const sentences = new Map<string, string>();
    for (const line of linesOf("2")) {
      const { decision, facts, failure, message } = read(JSON.parse(line));
      // Version 2 considered reasoning a part of the answer.
      const split = decision.rule === "text_shown" && facts.shown === "reasoning";
      const stored = split ? `${message} (reasoning)` : message;
      const said = explain(decision, failure, facts);
      assert.strictEqual(said, sentences.get(stored) ?? said, stored);
      sentences.set(stored, said);
    }
    assert.strictEqual(new Set(sentences.values()).size, sentences.size);
  });

  it("does not mention later features: no wait, no route", () => {
    for (const line of [...linesOf("1"), ...linesOf("2")]) {
      const incident = read(JSON.parse(line));
      const decision = policyOf(incident).decide(ofIncident(incident));
      assert.notProperty(decision, "wait_for");
      assert.notProperty(decision, "route");
      const { budget, run }: DecisionInput = ofIncident(incident);
      assert.deepInclude(run, {
        path: "up",
        waited_ms: 0,
        cooldown_ms: 0,
        next_route: "none",
        moves: 0,
        wasted_tokens: 0,
      });
      assert.deepInclude(budget, { max_outage_ms: 120_000, max_moves: 15 });
      assert.notProperty(budget, "max_wasted_tokens");
    }
  });
});
