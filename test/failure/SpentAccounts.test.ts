/** Exhausted accounts and plans, reported in words or by a number, are not retried; a per-minute limit is. */
import { assert, describe, it } from "@effect/vitest";
import * as ErrorBody from "../../src/failure/evidence/ErrorBody.ts";
import { classifyEvent, classifyResponse } from "../../src/failure/FailureClassifier.ts";
import { expectFailure } from "./ExpectFailure.ts";

const quota = { kind: "rejected", reason: "quota", retryable: false } as const;
const date = "Sun, 29 Nov 2026 21:30:00 GMT";
const classify = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  classifyResponse({ status, headers: { "content-type": "application/json", ...headers }, body });

/** Errors of an account without credit, as providers word them. */
const balances: ReadonlyArray<readonly [string, object]> = [
  ["MiniMax: words", { type: "error", error: { type: "api_error", message: "insufficient balance (1008)" } }],
  ["MiniMax: a type", { error: { http_code: "429", message: "no", type: "insufficient_balance_error" } }],
  ["MiniMax: a number", { error: { code: 1008, message: "no" } }],
  ["Zhipu: a number", { error: { code: 1113, message: "no" } }],
  ["Zhipu: digits", { error: { code: "1113", message: "no" } }],
  ["Zhipu: no error field", { code: 1113, msg: "no", success: false }],
  ["Zhipu: its own language", { error: { code: "x", message: "余额不足或无可用资源包,请充值。" } }],
  ["a balance that is too low", { error: { message: "Your credit balance is too low to access the API" } }],
];

/** Messages of a plan that is exhausted for hours or days, without its end. */
const plans = [
  "You have reached your weekly limit",
  "You've hit your usage limit. Upgrade to Pro.",
  "5-hour limit reached",
  "Your plan limit is exceeded",
  "Monthly spending cap reached",
  "You've hit your session limit, resets 3am (America/Los_Angeles)",
];

const perMinute = {
  error: {
    code: 429,
    status: "RESOURCE_EXHAUSTED",
    message:
      "You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits. To monitor your current usage, head to: https://ai.dev/usage?tab=rate-limit. Quota exceeded for metric: generate_content_free_tier_requests, limit: 10",
  },
};

describe("a body with a code of success", () => {
  const words = "prompt is too long: maximum context length is 10 tokens";

  it("keeps its words if it has no content", () => {
    const body = JSON.stringify({ code: 0, message: words });
    assert.include(ErrorBody.read(body).messages, words);
  });

  it("is no error with content", () => {
    const body = JSON.stringify({ code: 200, msg: "ok", data: [1] });
    assert.strictEqual(classify(200, body).kind, "protocol");
  });
});

describe("an exhausted account", () => {
  for (const [title, body] of balances) {
    for (const status of [200, 400, 429, 500]) {
      it(`${title}, under ${status}`, () => {
        expectFailure(classify(status, JSON.stringify(body)), quota);
      });
    }
    it(`${title}, in a stream`, () => expectFailure(classifyEvent(body), { ...quota, in_band: true }));
  }

  for (const message of plans) {
    it(`"${message}"`, () => {
      for (const status of [429, 500, 529]) expectFailure(classify(status, { error: { message } }), quota);
      expectFailure(classifyEvent({ type: "error", error: { type: "rate_limit_error", message } }), quota);
    });
  }

  it("is recognised by a plan's code as by its sentence", () => {
    for (const code of ["usage_limit_exceeded", "WeeklyLimitReached", "plan_limit_reached"])
      expectFailure(classify(429, { error: { code, message: "no" } }), quota);
  });
});

describe("a refusal that names its end", () => {
  const rows: ReadonlyArray<readonly [string, number]> = [
    ["You have reached your weekly limit. It will reset after 27h41m36s", 99_696_000],
    ["Usage limit reached, resets 12am (UTC)", 9_000_000],
    ["Usage limit reached, resets at 2026-11-30 00:00", 9_000_000],
    ["Weekly limit reached, try again in 20s", 20_000],
  ];
  for (const [message, wait] of rows) {
    it(`"${message}" is a wait and not an exhausted account`, () => {
      // Like a quota, a plan's limit blocks no other run.
      const found = { kind: "rate_limited", retry_after_ms: wait, only_this: true };
      expectFailure(classify(429, { error: { message } }, { date }), found);
      expectFailure(classify(500, { error: { message } }, { date }), { kind: "server_error", retry_after_ms: wait });
    });
  }

  it("is read against the response's own date, not this machine's", () => {
    const seen = { status: 429, headers: { date }, body: { error: { message: "resets 12am (UTC)" } } };
    assert.strictEqual(classifyResponse(seen, { nowMs: 0 }).retry_after_ms, 9_000_000);
  });

  it("is recognised in a stream, too", () => {
    const event = { type: "error", error: { type: "overloaded_error", message: "Overloaded, try again in 20s" } };
    expectFailure(classifyEvent(event), { kind: "overloaded", retry_after_ms: 20_000 });
  });
});

describe("a prompt that is too long", () => {
  const codes = [
    "overloaded_error",
    "rate_limit_error",
    "permission_error",
    "server_is_overloaded",
    "invalid_request_error",
  ];
  it.each(codes)("is not %s, whatever code accompanies the sentence: it never fits", (type) => {
    const event = { type: "error", error: { type, message: "prompt is too long: 210000 tokens > 200000 maximum" } };
    expectFailure(classifyEvent(event), { kind: "rejected", reason: "context_overflow" });
  });
});

describe("a per-minute limit", () => {
  it("stays one even if it mentions quota, plan and billing, with or without a wait", () => {
    expectFailure(classify(429, perMinute), { kind: "rate_limited", retryable: true });
    const details = [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "48s" }];
    const told = classify(429, { error: { ...perMinute.error, details } });
    expectFailure(told, { kind: "rate_limited", retry_after_ms: 48_000 });
  });

  it("is recognised if it names a minute, and if the provider asks to retry", () => {
    for (const message of ["Usage limit exceeded: 5 requests per minute", "Token usage limit reached (TPM)"])
      expectFailure(classify(429, { error: { message } }), { kind: "rate_limited" });
    const asked = classify(429, { error: { message: "Usage limit reached" } }, { "x-should-retry": "true" });
    expectFailure(asked, { kind: "rate_limited", retryable: true });
  });

  it("is not read from a proxy's page with status 5xx", () => {
    const page = { status: 503, headers: {}, body: "<html>weekly limit reached, insufficient balance</html>" };
    expectFailure(classifyResponse(page), { kind: "server_error" });
  });
});
