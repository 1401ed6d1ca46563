/** Checks the table of rules against its types: a rule does not compile until all of its fields are set. */
import { assert, describe, it } from "@effect/vitest";
import { expectTypeOf } from "vitest";
import { Action, Rule } from "../../src/domain/Decision.ts";
import * as PolicyRows from "../../src/policy/PolicyRows.ts";
import * as RetryBudget from "../../src/policy/RetryBudget.ts";
import { type RuleEntry, rules, rulings } from "../../src/policy/Rules.ts";
import * as StrictPolicy from "../../src/policy/StrictPolicy.ts";

/** A table of some rules, with the type that the sources require for all of them. */
type Table<R extends string> = { readonly [_ in R]: RuleEntry };
type Entry<A extends RuleEntry["action"]> = Extract<RuleEntry, { readonly action: A }>;

describe("A named rule", () => {
  it("does not compile without an entry in the table", () => {
    expectTypeOf(rules).toExtend<Table<Rule>>();
    expectTypeOf(rules).not.toExtend<Table<Rule | "newcomer">>();
    expectTypeOf<Omit<typeof rules, "tool_ran">>().not.toExtend<Table<Rule>>();
    expectTypeOf<keyof typeof rules>().toEqualTypeOf<Rule>();
  });

  it("does not compile without its action, its reason and its sentence", () => {
    expectTypeOf<Omit<Entry<"do_not_retry">, "action">>().not.toExtend<RuleEntry>();
    expectTypeOf<Omit<Entry<"do_not_retry">, "because">>().not.toExtend<RuleEntry>();
    expectTypeOf<Omit<Entry<"do_not_retry">, "sentence">>().not.toExtend<RuleEntry>();
  });

  it("does not compile without how the run ends, what is asked, or what is sent and what it grows into", () => {
    expectTypeOf<Omit<Entry<"do_not_retry">, "run">>().not.toExtend<RuleEntry>();
    expectTypeOf<Omit<Entry<"ask_user">, "asks">>().not.toExtend<RuleEntry>();
    expectTypeOf<Omit<(typeof rules)["tools_settled"], "mode">>().not.toExtend<RuleEntry>();
    expectTypeOf<Omit<(typeof rules)["not_sent"], "growsInto">>().not.toExtend<RuleEntry>();
  });

  it("is in the table in the order of its vocabulary", () => {
    assert.deepStrictEqual<ReadonlyArray<string>>(Object.keys(rules), Rule.literals);
  });

  it("is returned by a row or before a retry, with the action of the table", () => {
    const listed = [
      ...PolicyRows.rows.flatMap((row) => row.rules),
      ...StrictPolicy.rows.flatMap((row) => row.rules),
      ...RetryBudget.vetoes.map(({ rule }) => rule),
    ];
    assert.deepStrictEqual([...new Set(listed)].sort(), [...Rule.literals].sort());
    for (const rule of Rule.literals) {
      assert.include(Action.literals, rulings[rule].action);
      assert.strictEqual(rulings[rule].rule, rule);
    }
  });

  it("grows, if it replays, into a rule that replays, and never in a circle", () => {
    for (const rule of Rule.literals) {
      const passed: Array<Rule> = [];
      for (let next: Rule | undefined = rule; next !== undefined; ) {
        assert.notInclude(passed, next);
        passed.push(next);
        const entry: RuleEntry = rules[next];
        next = "growsInto" in entry ? entry.growsInto : undefined;
        if (next !== undefined) assert.propertyVal(rules[next], "mode", "replay");
      }
    }
  });
});
