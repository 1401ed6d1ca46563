import { assert, describe, it } from "@effect/vitest";
import type { Failure } from "../../src/domain/Failure.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { type Case, can, guarded, inputOf, limited, provider, row, sent, text } from "./Case.ts";

describe("A question", () => {
  const ask = (one: Omit<Case, "name" | "is">) => RecoveryPolicy.decide(inputOf(one));

  it("offers to retry, accept or stop if text can be withdrawn", () => {
    assert.deepStrictEqual(ask({ facts: text }).choices, ["retry", "accept", "stop"]);
  });

  it("offers no retry if text cannot be withdrawn", () => {
    assert.deepStrictEqual(ask({ facts: text, run: { discardable: false } }).choices, ["accept", "stop"]);
  });

  it("offers a retry to every caller while nothing was shown", () => {
    assert.deepStrictEqual(ask({ failure: { kind: "unknown" }, run: { discardable: false } }).choices, [
      "retry",
      "stop",
    ]);
  });

  it("asks if a tool of unknown outcome ran", () => {
    const decision = ask({ facts: { ...sent, tools: [row("mutating", "dispatched")] }, run: can });
    assert.deepStrictEqual(decision.choices, ["retry", "continue", "it_ran", "it_did_not_run", "stop"]);
    assert.deepStrictEqual(decision.may_repeat, ["0.dispatched"]);
    assert.strictEqual(decision.default_choice, "stop");
  });

  it("lists calls that may have run, and trusts only the guard that a handed-over call did not", () => {
    const tools = [row("mutating", "settled"), row("mutating", "handed_over"), provider("read_only", "input_started")];
    const guardedAsk = ask({ facts: { ...sent, side_effects: guarded, tools } });
    assert.deepStrictEqual(guardedAsk.may_repeat, ["0.settled", "0.input_started"]);
    assert.deepStrictEqual(ask({ facts: { ...sent, tools } }).may_repeat, [
      "0.settled",
      "0.handed_over",
      "0.input_started",
    ]);
    assert.deepStrictEqual(
      guardedAsk.calls?.map(({ call }) => call),
      tools.map(({ call }) => call),
    );
  });

  it("has no list of repeated calls if none may have run", () => {
    assert.isUndefined(ask({ facts: text }).may_repeat);
  });
});

describe("The wait before a retry", () => {
  const wait = (one: Omit<Case, "name" | "is">, jitter = 0.5) =>
    RecoveryPolicy.decide({ ...inputOf(one), jitter }).delay_ms;

  it("doubles from half a second to thirty seconds, between half of it and all of it", () => {
    const budget = { max_auto_retries: 99 };
    const at = (auto_retries: number, jitter: number) => wait({ facts: sent, run: { auto_retries }, budget }, jitter);
    assert.deepStrictEqual(
      [0, 1, 2, 6, 50].map((n) => at(n, 1)),
      [500, 1_000, 2_000, 30_000, 30_000],
    );
    assert.deepStrictEqual(
      [0, 1, 2, 6, 50].map((n) => at(n, 0)),
      [250, 500, 1_000, 15_000, 15_000],
    );
  });

  it("starts at two seconds if the provider did nothing, and at half a second if nothing was sent", () => {
    assert.strictEqual(wait({ facts: { delivery: "accepted" }, failure: limited }, 1), 2_000);
    assert.strictEqual(
      wait({ facts: { delivery: "accepted" }, failure: limited, run: { not_processed_retries: 2 } }, 1),
      8_000,
    );
    assert.strictEqual(wait({ failure: limited }, 1), 500);
    assert.strictEqual(wait({ facts: { delivery: "accepted" }, failure: limited, run: { auto_retries: 2 } }, 1), 2_000);
  });

  it("begins after the provider's announced wait", () => {
    const failure: Failure = { ...limited, retry_after_ms: 10_000 };
    assert.strictEqual(wait({ facts: { delivery: "accepted" }, failure }, 0), 10_000);
    assert.strictEqual(wait({ facts: { delivery: "accepted" }, failure }, 0.5), 11_000);
  });

  it("adds the throttle's wait", () => {
    assert.strictEqual(wait({ facts: sent, run: { throttle_wait_ms: 700 } }), 375 + 700);
  });

  it("is zero if nothing is retried", () => {
    assert.strictEqual(wait({ facts: text }), 0);
  });
});
