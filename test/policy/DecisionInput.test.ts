import { readdirSync, readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Result } from "effect";
import { fresh as freshFacts } from "../../src/domain/AttemptFacts.ts";
import { defaultBudget, fresh as freshRun } from "../../src/domain/RunFacts.ts";
import { parse } from "../../src/policy/DecisionInput.ts";

const refused = (json: unknown): string => {
  const read = parse(json);
  return Result.isFailure(read) ? read.failure.message : `accepted ${JSON.stringify(read.success)}`;
};

describe("A decision input", () => {
  it("needs only a kind of failure", () => {
    assert.deepStrictEqual(Result.getOrThrow(parse({ failure: { kind: "transport" } })), {
      facts: freshFacts,
      failure: { kind: "transport" },
      run: freshRun,
      budget: defaultBudget,
      jitter: 0.5,
    });
  });

  it("distinguishes a snapshot that is omitted from one that is missing", () => {
    const read = (facts: object) => Result.getOrThrow(parse({ facts, failure: { kind: "empty" } })).facts.side_effects;
    assert.strictEqual(read({})?.guarded, false);
    assert.isNull(read({ side_effects: null }));
  });

  it("completes a failure with the field values that retry least", () => {
    const read = (kind: string) => Result.getOrThrow(parse({ failure: { kind } })).failure;
    assert.deepStrictEqual(read("stalled"), { kind: "stalled", clock: "idle" });
    assert.deepStrictEqual(read("rejected"), { kind: "rejected", reason: "invalid_request" });
    assert.deepStrictEqual(read("protocol"), { kind: "protocol", reason: "damaged_frame" });
    assert.deepStrictEqual(read("cancelled"), { kind: "cancelled", by: "caller" });
  });

  const failure = { kind: "transport" };
  const bad: ReadonlyArray<readonly [unknown, string]> = [
    [{ failure: { kind: "oops" } }, 'failure.kind: expected "transport" | "truncated" | "stalled" |'],
    [{ failure: {} }, 'failure.kind: expected "transport"'],
    [{ failure: { kind: "toString" } }, 'failure.kind: expected "transport"'],
    [{}, "failure: missing"],
    [{ failure: 3 }, "failure: expected object, got 3"],
    [[], "input: expected object, got an array"],
    [null, "input: expected object, got null"],
    [{ failure, facts: { shown: "x" } }, 'facts.shown: expected "nothing" | "reasoning" | "text", got "x"'],
    [{ failure, facts: { shwon: "text" } }, "facts.shwon: unknown field"],
    [{ failure, fact: {} }, "fact: unknown field"],
    [{ failure: { ...failure, clock: "idle" } }, "failure.clock: unknown field"],
    [{ failure, facts: { tools: [{ call: "a" }] } }, "facts.tools[0].tool: missing"],
    [
      { failure, facts: { text_through: -1 } },
      "facts.text_through: expected a value greater than or equal to 0, got -1",
    ],
    [{ failure, facts: { text_through: 1.5 } }, "facts.text_through: expected"],
    [{ failure, run: { elapsed_ms: "1" } }, 'run.elapsed_ms: expected number, got "1"'],
    [{ failure, budget: { max_auto_retries: null } }, "budget.max_auto_retries: expected number, got null"],
    [{ failure, jitter: 2 }, "jitter: expected a value between 0 and 1, got 2"],
    [{ failure, run: { "a\nb": 1 } }, 'run."a\\nb": unknown field'],
    [
      { failure, facts: { shown: "x".repeat(999) } },
      `facts.shown: expected "nothing" | "reasoning" | "text", got "${"x".repeat(63)}…`,
    ],
  ];
  for (const [json, message] of bad) {
    it(`is refused with the name of the field: ${message.slice(0, 70)}`, () => {
      assert.isTrue(refused(json).startsWith(message), refused(json));
      assert.notInclude(refused(json), "\n");
    });
  }
});

describe("The policy's entry point", () => {
  it("loads only modules of effect", () => {
    const folder = new URL("../../src/policy/", import.meta.url);
    const outside = readdirSync(folder).flatMap((file) =>
      [...readFileSync(new URL(file, folder), "utf8").matchAll(/from "([^"]+)"/g)]
        .map(([, from]) => from ?? "")
        .filter(
          (from) =>
            !/^effect(?:\/[A-Z]\w*)?$/.test(from) && !from.startsWith("./") && !/^\.\.\/(domain|facts)\//.test(from),
        ),
    );
    assert.deepStrictEqual(outside, []);
  });
});
