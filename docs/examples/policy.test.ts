/**
 * Tests of the decision in Vitest: what your program may rely on after a break, without a stream or a clock.
 */
import { Result } from "effect";
import { DecisionInput, decide, RecoveryPolicy } from "effect-stream-recovery/policy";
import { describe, expect, it } from "vitest";

const input = (facts: object, failure: object = { kind: "transport", code: "ECONNRESET" }) =>
  Result.getOrThrow(DecisionInput.parse({ facts: { delivery: "accepted", ...facts }, failure }));

describe("after a reset connection", () => {
  it.each([
    ["nothing was shown", {}, "auto_retry_once", "nothing_shown"],
    ["only reasoning was shown", { progress: "output", shown: "reasoning" }, "auto_retry_once", "only_reasoning_shown"],
    ["text was shown", { progress: "output", shown: "text" }, "ask_user", "text_shown"],
  ])("decides by what the caller has seen: %s", (_, facts, action, rule) => {
    expect(decide(input(facts))).toMatchObject({ action, rule });
  });

  const bash = { call: "0.0", tool: "bash", executor: "runtime", effect: "mutating" };

  it.each([
    ["was only received", "handed_over", "ask_user", "tool_call_handed_over"],
    ["has started", "dispatched", "ask_user", "tool_outcome_unknown"],
    ["has ended", "settled", "ask_user", "tool_ran"],
  ])("asks before it repeats a call that %s", (_, phase, action, rule) => {
    expect(decide(input({ progress: "output", tools: [{ ...bash, phase }] }))).toMatchObject({ action, rule });
  });

  it("repeats calls that only read", () => {
    const tools = [{ ...bash, effect: "read_only", phase: "settled" }];
    expect(decide(input({ progress: "output", tools })).action).toBe("auto_retry_once");
  });

  it("does nothing after the user's Stop", () => {
    expect(decide(input({}, { kind: "cancelled", by: "user" })).action).toBe("do_not_retry");
  });

  it("asks more often with a stricter policy", () => {
    const careful = RecoveryPolicy.make({ stricter: { only_reasoning_shown: "ask_user" } });
    expect(careful.decide(input({ progress: "output", shown: "reasoning" })).action).toBe("ask_user");
  });
});

describe("after a refusal", () => {
  it("waits as long as the provider announced", () => {
    const { action, delay_ms = 0 } = decide(input({}, { kind: "rate_limited", retry_after_ms: 7_000 }));
    expect(action).toBe("auto_retry_once");
    expect(delay_ms).toBeGreaterThanOrEqual(7_000);
  });

  it("does not repeat a request that the provider will refuse again", () => {
    expect(decide(input({}, { kind: "rejected", reason: "invalid_request" })).action).toBe("do_not_retry");
  });
});
