import { assert, describe, it } from "@effect/vitest";
import { classify, classifyResponse } from "../../../src/failure/FailureClassifier.ts";
import { parseTimestamp } from "../../../src/failure/tables/Instants.ts";
import * as RateLimits from "../../../src/failure/tables/RateLimits.ts";
import * as RetryAfter from "../../../src/failure/tables/RetryAfter.ts";

/** Wed, 21 Oct 2026 07:28:00 GMT, which this machine's clock never shows. */
const nowMs = 1_792_567_680_000;

const date = "Wed, 21 Oct 2026 07:28:00 GMT";

/** The headers that Anthropic sends with every response ("Rate limits"), with the requests that remain. */
const anthropic = (left: string) => ({
  date,
  "anthropic-ratelimit-requests-limit": "50",
  "anthropic-ratelimit-requests-remaining": left,
  "anthropic-ratelimit-requests-reset": "2026-10-21T07:28:30Z",
  "anthropic-ratelimit-input-tokens-remaining": "16000",
  "anthropic-ratelimit-input-tokens-reset": "2026-10-21T07:34:00Z",
});

/** OpenAI's headers ("Rate limits in headers", with the sample values of its table). */
const openai = (requests: string, tokens: string) => ({
  "x-ratelimit-limit-requests": "60",
  "x-ratelimit-remaining-requests": requests,
  "x-ratelimit-reset-requests": "1s",
  "x-ratelimit-limit-tokens": "150000",
  "x-ratelimit-remaining-tokens": tokens,
  "x-ratelimit-reset-tokens": "6m0s",
});

const refusal = (headers: Record<string, string>, message = "slow down") =>
  classifyResponse({ status: 429, headers, body: { error: { type: "rate_limit_error", message } } }, { nowMs });

describe("the wait of a refusal without Retry-After", () => {
  const rows: ReadonlyArray<readonly [string, Record<string, string>, number | undefined]> = [
    ["Anthropic's empty bucket of requests, and not the fuller one's", anthropic("0"), 30_000],
    ["OpenAI's empty bucket of tokens", openai("59", "0"), 360_000],
    ["OpenAI's empty bucket of requests", openai("0", "149984"), 1_000],
    ["the longest of two empty ones", openai("0", "0"), 360_000],
    ["milliseconds", { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms" }, 20],
    [
      "Groq's minutes and fractions",
      { "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "2m59.56s" },
      179_560,
    ],
    ["Azure's seconds", { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "34" }, 34_000],
    [
      "Cerebras, whose buckets name their time",
      { "x-ratelimit-remaining-tokens-minute": "0", "x-ratelimit-reset-tokens-minute": "11.382867" },
      11_383,
    ],
    ["an epoch in seconds", { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(nowMs / 1_000 + 12) }, 12_000],
    [
      "an epoch in milliseconds (OpenRouter)",
      { "x-ratelimit-remaining": "0", "x-ratelimit-reset": String(nowMs + 700) },
      700,
    ],
    ["the seconds of the IETF's draft", { "ratelimit-remaining": "0", "ratelimit-reset": "50" }, 50_000],
    [
      "a plan's window that is used up",
      {
        "anthropic-ratelimit-unified-status": "rejected",
        "anthropic-ratelimit-unified-reset": String(nowMs / 1_000 + 3_600),
      },
      3_600_000,
    ],
    ["nothing where no bucket is empty", openai("59", "149984"), undefined],
    [
      "nothing of a plan's window that is open",
      {
        "anthropic-ratelimit-unified-status": "allowed_warning",
        "anthropic-ratelimit-unified-reset": String(nowMs / 1_000 + 3_600),
      },
      undefined,
    ],
    [
      "nothing where Azure does not know what is left",
      { "x-ratelimit-remaining-tokens": "-1", "x-ratelimit-reset-tokens": "60" },
      undefined,
    ],
    ["nothing of a reset without what is left", { "x-ratelimit-reset-tokens": "6m0s" }, undefined],
    [
      "no wait for a reset that is over",
      { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "2020-01-01T00:00:00Z" },
      0,
    ],
    [
      "at most thirty days",
      { "x-ratelimit-remaining": "0", "x-ratelimit-reset": "9999-01-01T00:00:00Z" },
      RetryAfter.retryAfterMsMax,
    ],
    ...["-5", "NaN", "Infinity", "soon", "", "1e9", "9".repeat(40), "2026-13-01T00:00:00Z", "-1s"].map(
      (reset) =>
        [
          `nothing of a reset of ${JSON.stringify(reset)}`,
          { "x-ratelimit-remaining": "0", "x-ratelimit-reset": reset },
          undefined,
        ] as const,
    ),
  ];
  for (const [name, headers, expected] of rows)
    it(`is ${name}`, () => assert.strictEqual(refusal(headers).retry_after_ms, expected));

  it("is Retry-After's if there is one, even a shorter one", () => {
    assert.strictEqual(refusal({ ...openai("0", "0"), "retry-after": "2" }).retry_after_ms, 2_000);
    assert.strictEqual(refusal({ ...openai("0", "0"), "retry-after-ms": "300" }).retry_after_ms, 300);
    assert.strictEqual(refusal(openai("0", "0"), "Please try again in 1.5s.").retry_after_ms, 1_500);
  });

  it("is the bucket's in an overload and in the provider's own 503, and not in a proxy's page", () => {
    const headers = openai("0", "1");
    const body = { error: { type: "overloaded_error", message: "Overloaded" } };
    assert.deepInclude(classifyResponse({ status: 529, headers, body }), { kind: "overloaded", retry_after_ms: 1_000 });
    const unavailable = { error: { code: 503, status: "UNAVAILABLE", message: "later" } };
    assert.strictEqual(classifyResponse({ status: 503, headers, body: unavailable }).retry_after_ms, 1_000);
    assert.notProperty(classifyResponse({ status: 503, headers, body: "<html>" }), "retry_after_ms");
  });

  it("is absent without a refusal: the same headers are part of every success", () => {
    for (const [status, body] of [
      [200, "not a stream"],
      [400, { error: { type: "invalid_request_error", message: "bad" } }],
      [500, { error: { type: "api_error", message: "broken" } }],
      [502, "<html>"],
    ] as const)
      assert.notProperty(
        classifyResponse({ status, headers: openai("0", "0"), body }),
        "retry_after_ms",
        String(status),
      );
  });

  it("is read from an SDK's error like from a response", () => {
    class RateLimitError extends Error {
      readonly status = 429;
      readonly headers = new Headers(openai("0", "12"));
      readonly error = { type: "rate_limit_error", message: "slow down" };
    }
    assert.deepInclude(classify(new RateLimitError("429")), { kind: "rate_limited", retry_after_ms: 1_000 });
    const called = Object.assign(new Error("429"), { statusCode: 429, responseHeaders: openai("0", "12") });
    assert.deepInclude(classify(called), { kind: "rate_limited", retry_after_ms: 1_000 });
  });

  it("is read from headers that OpenRouter passes on in the body", () => {
    const metadata = {
      headers: { "X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "40" },
    };
    const body = { error: { code: 429, message: "Rate limit exceeded: free-models-per-min. ", metadata } };
    assert.strictEqual(classifyResponse({ status: 429, headers: {}, body }).retry_after_ms, 40_000);
  });
});

describe("the clock of this machine, if it is an hour off", () => {
  for (const [name, off] of [
    ["slow", -3_600_000],
    ["fast", 3_600_000],
  ] as const) {
    const at = (headers: Record<string, string>) =>
      classifyResponse({ status: 429, headers: { date, ...headers } }, { nowMs: nowMs + off }).retry_after_ms;

    it(`changes no wait if it is ${name}: dates and epochs are read against the response's own Date`, () => {
      assert.strictEqual(at({ "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" }), 30_000);
      assert.strictEqual(at({ "retry-after": "Wednesday, 21-Oct-26 07:29:00 GMT" }), 60_000);
      assert.strictEqual(at({ "retry-after": String(nowMs / 1_000 + 12) }), 12_000);
      assert.strictEqual(at(anthropic("0")), 30_000);
      assert.strictEqual(at({ "retry-after": "20" }), 20_000);
    });
  }

  it("is not read at all if the response has a Date", () => {
    const headers = { date, "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" };
    assert.strictEqual(classifyResponse({ status: 429, headers }).retry_after_ms, 30_000);
  });

  it("is used if the response's Date is invalid", () => {
    const headers = { date: "yesterday", "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" };
    assert.strictEqual(classifyResponse({ status: 429, headers }, { nowMs }).retry_after_ms, 30_000);
  });
});

describe("a wait that concerns one request alone", () => {
  const alone = (headers: Record<string, string>, message?: string) => refusal(headers, message).only_this;

  it("applies if reported buckets are not empty: shorter requests pass", () => {
    assert.isTrue(alone({ ...openai("59", "2000"), "retry-after": "20" }));
    assert.isTrue(alone({ ...anthropic("12"), "retry-after": "20" }));
  });

  it("does not apply if a bucket is empty, or none is reported", () => {
    for (const headers of [openai("59", "0"), anthropic("0"), {}, { "x-ratelimit-remaining-tokens": "-1" }])
      assert.isUndefined(alone({ ...headers, "retry-after": "20" }));
  });

  it("applies if the request is larger than its limit, and not if it only came too early", () => {
    const said = (requested: number) =>
      `Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 14567, Requested ${requested}. Please try again in 18.642s.`;
    assert.isTrue(alone({}, said(45_000)));
    assert.isUndefined(alone({}, said(24_754)));
  });

  it("applies if there is no room for a long context (Anthropic, a 429)", () => {
    assert.isTrue(alone({ "retry-after": "60" }, "Extra usage is required for long context requests."));
  });

  it("applies to a quota, so that no other run waits for it", () => {
    const body = { error: { code: "insufficient_quota", message: "You exceeded your current quota" } };
    const quota = classifyResponse({ status: 429, headers: { "retry-after": "3600" }, body });
    assert.deepInclude(quota, { kind: "rejected", reason: "quota", only_this: true });
    const violations = [{ quotaId: "GenerateRequestsPerDayPerProjectPerModel-FreeTier" }];
    const daily = {
      error: { code: 429, status: "RESOURCE_EXHAUSTED", details: [{ violations }, { retryDelay: "48s" }] },
    };
    assert.deepInclude(classifyResponse({ status: 429, headers: {}, body: daily }), {
      reason: "quota",
      only_this: true,
    });
  });

  it("does not apply to an overload, because the provider has no room for any request", () => {
    const body = { error: { type: "overloaded_error", message: "Overloaded" } };
    const headers = { ...openai("59", "2000"), "retry-after": "20" };
    assert.notProperty(classifyResponse({ status: 529, headers, body }), "only_this");
  });

  it("does not apply to Gemini's RetryInfo of a minute", () => {
    const details = [
      {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        violations: [{ quotaId: "GenerateRequestsPerMinute" }],
      },
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "48s" },
    ];
    const body = { error: { code: 429, status: "RESOURCE_EXHAUSTED", message: "quota, billing", details } };
    const limited = classifyResponse({ status: 429, headers: {}, body });
    assert.deepInclude(limited, { kind: "rate_limited", retry_after_ms: 48_000 });
    assert.notProperty(limited, "only_this");
  });
});

describe("buckets", () => {
  it("survive headers that throw and invalid headers", () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error("no");
        },
      },
    );
    assert.deepStrictEqual(RateLimits.read([undefined, null, "x", hostile], nowMs), { reported: 0, empty: 0 });
  });
});

describe("a timestamp of RFC 3339", () => {
  for (const text of [
    "2026-10-21T07:28:30Z",
    "2024-02-29T23:59:59.5Z",
    "2026-10-21T09:28:30+02:00",
    "2026-10-20t22:28:30.125-09:00",
  ])
    it(`is parsed like Date parses ${text}`, () => assert.strictEqual(parseTimestamp(text), new Date(text).getTime()));

  for (const text of ["2026-10-21", "2026-10-21T07:28", "2026-13-21T07:28:30Z", "2026-10-21T07:28:30", "now"])
    it(`is not ${text}`, () => assert.isUndefined(parseTimestamp(text)));
});
