import { assert, describe, it } from "@effect/vitest";
import { type AttemptFacts, fresh as freshFacts } from "../../src/domain/AttemptFacts.ts";
import { type Decision, Rule } from "../../src/domain/Decision.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { SeamFault } from "../../src/domain/SeamWords.ts";
import { explain } from "../../src/policy/Explanation.ts";

const decision = (rule: Rule) => ({ action: "ask_user", rule, delay_ms: 0, policy_version: "2", because: [] }) as const;
const facts: AttemptFacts = {
  ...freshFacts,
  tools: [{ call: "planted-call", tool: "planted-tool", executor: "runtime", effect: "mutating", phase: "settled" }],
};

describe("explain", () => {
  it("has a separate sentence for every rule", () => {
    const said = Rule.literals.map((rule) => explain(decision(rule), { kind: "transport" }, facts));
    assert.strictEqual(new Set(said).size, Rule.literals.length);
    for (const message of said) assert.match(message, /^[A-Z].{20,300}\.$/);
  });

  it("keeps the kind of a rejection: a bill is never a lost connection", () => {
    const message = explain(decision("not_retryable"), { kind: "rejected", reason: "quota", status: 402 }, facts);
    assert.strictEqual(
      message,
      "The model provider rejected the request: the quota or the balance of the account is used up (status 402); the same request would fail again.",
    );
    assert.notMatch(message, /connection|lost/);
  });

  it("says whether a tool ran", () => {
    const failure: Failure = { kind: "transport" };
    assert.include(explain(decision("text_shown"), failure, { ...facts, shown: "text" }), "A tool has run.");
    assert.include(explain(decision("text_shown"), failure, { ...freshFacts, shown: "text" }), "No tool was called.");
    assert.include(explain(decision("tool_ran"), failure, facts), "already run");
  });

  it("reads no ledger for a sentence that does not mention tools, because facts of plain JavaScript may have none", () => {
    // An untyped caller may pass these.
    const { tools: _, ...rest } = facts;
    const none = rest as AttemptFacts;
    for (const rule of ["user_cancelled", "nothing_shown", "tool_ran", "already_complete"] as const)
      assert.strictEqual(
        explain(decision(rule), { kind: "transport" }, none),
        explain(decision(rule), { kind: "transport" }, facts),
      );
  });

  it("says if a number of tokens is an estimate, in questions about tokens", () => {
    const asked = (because: ReadonlyArray<string>) =>
      explain({ ...decision("token_budget"), because }, { kind: "transport" }, facts);
    assert.include(asked(["failure=transport", "tokens=estimated"]), "The count is an estimate");
    assert.include(asked(["failure=transport"]), "The count is the provider's own.");
  });

  it("says what a retry waits for, and which route it takes", () => {
    const said = (manner: Pick<Decision, "route" | "wait_for">) =>
      explain({ ...decision("nothing_shown"), action: "auto_retry_once", ...manner }, { kind: "transport" }, facts);
    const plain = said({});
    assert.strictEqual(said({ route: "same" }), plain);
    assert.strictEqual(said({ wait_for: "path" }), `${plain} It is sent when the provider can be reached again.`);
    assert.strictEqual(
      said({ route: "same", wait_for: "cooldown" }),
      `${plain} It is sent when the wait that the provider announced is over.`,
    );
    assert.strictEqual(said({ route: "next" }), `${plain} It is sent to the next route.`);
  });

  it("says why new text was not joined to shown text, and that nothing unproven was shown", () => {
    const unproven = (code?: string): Failure => ({
      kind: "protocol",
      reason: "seam_unproven",
      retryable: false,
      ...(code === undefined ? {} : { code }),
    });
    const said = SeamFault.literals.map((fault) => explain(decision("recovery_refused"), unproven(fault), facts));
    assert.strictEqual(new Set(said).size, SeamFault.literals.length);
    for (const message of said)
      assert.match(message, /^The answer could not be joined to the shown text: [^;]+; none of the/);
    for (const code of [undefined, "planted-code", "toString", "constructor"]) {
      assert.match(
        explain(decision("recovery_refused"), unproven(code), facts),
        /^The answer could not be joined to the shown text; none of the unproven text was shown/,
      );
    }
    // Another failure of a continuation has another sentence.
    const refused = explain(decision("recovery_refused"), { kind: "rejected", reason: "invalid_request" }, facts);
    assert.include(
      refused,
      "; the continuation failed, and the same request would fail again. Everything settled before it is kept.",
    );
  });

  it("repeats no text from outside", () => {
    const failure: Failure = {
      kind: "transport",
      code: "planted-code",
      fingerprint: { name: "planted-name", depth: 0 },
    };
    for (const rule of Rule.literals) assert.notInclude(explain(decision(rule), failure, facts), "planted");
  });
});
