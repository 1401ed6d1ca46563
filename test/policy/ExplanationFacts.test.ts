/**
 * Explains decisions on generated facts: no sentence contradicts its facts, and odd values that fit no schema get a sentence, too.
 */
import { assert, describe, it } from "@effect/vitest";
import { Arbitrary, Effect, Schema } from "effect";
import { type AttemptFacts, fresh as freshFacts } from "../../src/domain/AttemptFacts.ts";
import { type Decision, Rule } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { explain } from "../../src/policy/Explanation.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { Arbitraries } from "../../src/testing/index.ts";

/** The seed of every sample, unless `EXPLAIN_SEED` is set. */
const seed = Number(process.env.EXPLAIN_SEED ?? 20_261_129);

const count = 5_000;

/** Claims of a sentence, each with a test of the facts. */
const claims: ReadonlyArray<readonly [RegExp, (facts: AttemptFacts) => boolean]> = [
  [/no tool was called/i, ({ tools }) => tools.length === 0],
  [/No tool runs again/, ({ tools }) => !tools.some(isCut)],
  [/A tool has run\./, ({ tools }) => tools.some(({ phase }) => phase === "settled")],
  [/outcome is not known/, ({ tools }) => tools.some(isCut)],
  [/The provider had started one of its/, ({ tools }) => tools.some(({ executor }) => executor === "provider")],
  [/only tools that change nothing were called/, ({ tools }) => tools.every(({ effect }) => effect === "read_only")],
  [/no part of the request had been sent/, ({ delivery }) => delivery === "not_sent"],
  [/The answer had already ended/, ({ terminal_seen }) => terminal_seen],
  [
    /response was empty|before the answer began/,
    ({ progress, shown, tools }) => progress === "none" && shown === "nothing" && tools.length === 0,
  ],
  [
    /could not be (established|reached)|did not begin to answer/,
    ({ progress, shown }) => shown === "nothing" && (progress === "none" || progress === "started"),
  ],
  [/part of the answer had been shown/, ({ shown }) => shown === "text"],
  [/nothing had been shown/, ({ shown }) => shown === "nothing"],
  [/only reasoning had been shown/, ({ shown }) => shown === "reasoning"],
];

type Row = AttemptFacts["tools"][number];
const isCut = ({ phase }: Row): boolean => phase === "dispatched" || phase === "outcome_unknown";

const isUnknown = (row: Row): boolean => isCut(row) && row.effect !== "read_only";

/** The contradictions in the sentence of a decision. */
const contradictions = (said: string, facts: AttemptFacts, { action }: Decision): ReadonlyArray<string> => [
  ...claims.filter(([claim, holds]) => claim.test(said) && !holds(facts)).map(([claim]) => String(claim)),
  // A call that may have changed something is always mentioned if the run stops or asks.
  ...(action !== "auto_retry_once" && facts.tools.some(isUnknown) && !/outcome is not known/.test(said)
    ? ["an unknown outcome is not said"]
    : []),
];

const odd = Arbitrary.schema(
  Schema.Union([
    Schema.Literals(["", "toString", "constructor", "__proto__", "settled_twice", "bigger"]),
    Schema.Null,
    Schema.Undefined,
    Schema.Number,
    Schema.Boolean,
    Schema.Array(Schema.Null),
    Schema.Struct({}),
  ]),
);

describe(`explain, on generated values (seed ${seed})`, () => {
  for (const policy of [RecoveryPolicy.default, RecoveryPolicy.strict])
    it.effect(`contradicts none of the facts on which the policy ${policy.name} decided`, () =>
      Effect.gen(function* () {
        const inputs = yield* Arbitrary.sampleEffect(Arbitraries.decisionInput, { seed, count });
        for (const { facts, ...input } of inputs) {
          const decision = policy.decide({ facts, ...input });
          const said = explain(decision, input.failure, facts);
          assert.match(said, /^[A-Z].*\.$/);
          assert.deepStrictEqual(
            contradictions(said, facts, decision),
            [],
            JSON.stringify({ decision, facts, said, ...input }),
          );
        }
      }),
    );

  it("says that a read-only tool may run again if its call had not finished beside one that had", () => {
    const row = { tool: "t", executor: "runtime" } as const;
    const facts = factsWith([
      { ...row, call: "0.0", effect: "mutating", phase: "settled" },
      { ...row, call: "0.1", effect: "read_only", phase: "dispatched" },
    ]);
    for (const rule of ["tools_settled", "text_closed_by_call"] as const) {
      const said = explain(decisionOf(rule), { kind: "transport" }, facts);
      assert.notMatch(said, /No tool runs again|Nothing is repeated/);
      assert.include(said, "may run again.");
    }
  });

  it("says of a cancel after the end of an answer that the user cancelled, and that the outcome of a tool is unknown", () => {
    const cut = {
      call: "0.0",
      tool: "bash",
      executor: "runtime",
      effect: "mutating",
      phase: "outcome_unknown",
    } as const;
    const facts = { ...factsWith([cut]), terminal_seen: true };
    assert.strictEqual(
      explain(decisionOf("already_complete"), { kind: "cancelled", by: "user" }, facts),
      "The answer had already ended when the user cancelled; the answer is complete, so nothing is repeated. A tool had started and its outcome is not known.",
    );
  });

  it.effect("gives a sentence for odd values, too, and never throws", () =>
    Effect.gen(function* () {
      const value = { seed, count };
      const odds = yield* Arbitrary.sampleEffect(odd, value);
      const inputs = yield* Arbitrary.sampleEffect(Arbitraries.decisionInput, value);
      const at = (index: number): unknown => odds[index % count];
      for (const [index, { facts, failure }] of inputs.entries()) {
        const rule = Rule.literals[index % Rule.literals.length];
        // Untyped callers may pass anything.
        const anyFacts = oneOf(index, facts, at(index + 1), at(index + 2)) as AttemptFacts;
        const anyFailure = oneOf(index + 1, failure, at(index + 3), at(index + 4)) as Failure;
        const anyDecision = oneOf(index + 2, { ...decisionOf("budget_exhausted"), rule }, at(index + 5), at(index + 6));
        const said = explain(anyDecision as Decision, anyFailure, anyFacts);
        assert.match(said, /^[A-Z].*\.$/, JSON.stringify({ anyDecision, anyFacts, anyFailure }));
        assert.notMatch(said, /undefined|null|\[object|NaN/);
      }
    }),
  );

  it("explains huge counts and lists of calls", () => {
    const row = { tool: "t", executor: "runtime", effect: "mutating", phase: "settled" } as const;
    const rows = Array.from({ length: 100_000 }, (_, at) => ({ ...row, call: `0.${at}` }));
    const counters = { parts: Number.MAX_SAFE_INTEGER, bytes: Number.MAX_SAFE_INTEGER, characters: Number.MAX_VALUE };
    for (const rule of Rule.literals)
      assert.match(explain(decisionOf(rule), { kind: "transport" }, { ...factsWith(rows), counters }), /\.$/);
  });
});

const factsWith = (tools: AttemptFacts["tools"]): AttemptFacts => ({ ...freshFacts, tools });

const decisionOf = (rule: Rule): Decision => ({
  action: "ask_user",
  rule,
  delay_ms: 0,
  policy_version: "3",
  because: [],
});

/** The value itself, the value with an odd field, or another value altogether. */
const oneOf = (index: number, value: object, field: unknown, whole: unknown): unknown => {
  const names = Object.keys(value);
  const name = names[index % names.length] ?? "none";
  const kind = index % 4;
  if (kind === 0) return value;
  if (kind === 1) return { ...value, [name]: field };
  if (kind === 2) return { ...value, tools: [field, { ...value, phase: field, effect: whole }] };
  return whole;
};
