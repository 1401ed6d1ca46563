/**
 * Classification rules that earlier systems got wrong, with a test for each.
 */
import { assert, describe, it } from "@effect/vitest";
import { classify, classifyEvent, classifyResponse } from "../../src/failure/FailureClassifier.ts";
import { expectFailure } from "./ExpectFailure.ts";

const coded = (code: string, message = code): Error => Object.assign(new Error(message), { code });
const wrapped = (cause: unknown, message = "fetch failed"): TypeError => new TypeError(message, { cause });
const aborted = (cause?: unknown): Error =>
  Object.assign(new Error("This operation was aborted"), { name: "AbortError", cause });
const http = (status: number, body?: unknown, headers: Record<string, string> = {}) =>
  classifyResponse({ status, headers, body });

describe("a connection that broke", () => {
  for (const code of [
    "ECONNRESET",
    "EPIPE",
    "ECONNREFUSED",
    "ECONNABORTED",
    "ETIMEDOUT",
    "EHOSTUNREACH",
    "ENETUNREACH",
    "EAI_AGAIN",
    "UND_ERR_SOCKET",
    "UND_ERR_CONNECT_TIMEOUT",
    "UND_ERR_HEADERS_TIMEOUT",
    "UND_ERR_BODY_TIMEOUT",
  ])
    it(`${code} is retryable transport, as an error, a cause or text`, () => {
      expectFailure(classify(coded(code)), { kind: "transport", code, retryable: true, not_processed: false });
      expectFailure(classify(wrapped(coded(code))), { kind: "transport", code, retryable: true });
      expectFailure(classify(new Error(`read ${code}`)), { kind: "transport", code, retryable: true });
      expectFailure(classify(`connect ${code} 10.0.0.1:443`), { kind: "transport", code, retryable: true });
    });

  for (const message of ["terminated", "socket hang up", "premature close", "Premature close", "unexpected EOF"])
    it(`the text "${message}" is retryable transport`, () => {
      expectFailure(classify(new Error(message)), { kind: "transport", retryable: true });
      expectFailure(classify(message), { kind: "transport", retryable: true });
      expectFailure(classify(new Error("stream failed", { cause: new Error(message) })), { kind: "transport" });
    });

  it("fetch failed is classified by its cause, and as transport if the cause says nothing", () => {
    expectFailure(classify(wrapped(coded("CERT_HAS_EXPIRED"))), { kind: "transport", retryable: false });
    expectFailure(classify(wrapped(undefined)), { kind: "transport", retryable: true });
  });

  it("terminated of undici is a broken body", () => {
    expectFailure(classify(new TypeError("terminated", { cause: coded("UND_ERR_SOCKET", "other side closed") })), {
      kind: "transport",
      code: "UND_ERR_SOCKET",
    });
    expectFailure(classify(new TypeError("terminated")), { kind: "transport", operation: "body", retryable: true });
  });

  it("ENOTFOUND is retryable only if this process reached the host before", () => {
    const error = wrapped(Object.assign(coded("ENOTFOUND"), { syscall: "getaddrinfo" }));
    expectFailure(classify(error), { kind: "transport", code: "ENOTFOUND", operation: "connect", retryable: false });
    expectFailure(classify(error, { reachedHostBefore: true }), { kind: "transport", retryable: true });
    expectFailure(classify("getaddrinfo ENOTFOUND host", { reachedHostBefore: true }), { retryable: true });
  });

  for (const code of [
    "CERT_HAS_EXPIRED",
    "DEPTH_ZERO_SELF_SIGNED_CERT",
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "EPROTO",
    "ERR_SSL_WRONG_VERSION_NUMBER",
  ])
    it(`${code} of TLS is not retryable`, () =>
      expectFailure(classify(wrapped(coded(code))), { kind: "transport", code, retryable: false }));

  it("the cause of a closed socket is its certificate, and the cause of a network error its failed lookup", () => {
    const closed = Object.assign(coded("UND_ERR_SOCKET"), { cause: coded("CERT_HAS_EXPIRED") });
    expectFailure(classify(closed), { kind: "transport", code: "CERT_HAS_EXPIRED", retryable: false });
    const lookup = Object.assign(coded("ERR_NETWORK"), { cause: coded("ENOTFOUND") });
    expectFailure(classify(lookup), { kind: "transport", code: "ENOTFOUND", retryable: false });
  });

  it("a timeout of undici or AbortSignal.timeout is retryable transport and no cancel", () => {
    expectFailure(classify(new DOMException("The operation was aborted due to timeout", "TimeoutError")), {
      kind: "transport",
      retryable: true,
    });
    expectFailure(classify(aborted(new DOMException("timed out", "TimeoutError"))), { kind: "transport" });
  });
});

describe("a status", () => {
  it("outranks every shape: an abort that wraps a 500 is a server error, one that wraps a 401 is rejected", () => {
    expectFailure(classify(aborted({ status: 500 })), { kind: "server_error", status: 500, retryable: true });
    expectFailure(classify(aborted(aborted({ statusCode: 401 }))), { kind: "rejected", reason: "auth", status: 401 });
    expectFailure(classify(wrapped(Object.assign(coded("ECONNRESET"), { status: 403 }))), {
      kind: "rejected",
      reason: "permission",
    });
  });

  it("outranks every shape up to the eighth cause, and is not read beyond it", () => {
    const nested = (depth: number): unknown => (depth === 0 ? { status: 500 } : aborted(nested(depth - 1)));
    expectFailure(classify(nested(8)), { kind: "server_error", status: 500 });
    expectFailure(classify(nested(9)), { kind: "cancelled", by: "provider" });
  });

  for (const status of [408, 409, 425, 429, 500, 502, 503, 504, 507, 509, 520, 521, 522, 523, 524, 529, 530])
    it(`${status} is retryable`, () => expectFailure(http(status), { status, retryable: true }));

  for (const status of [408, 409, 425])
    it(`${status} is a server error by kind`, () => expectFailure(http(status), { kind: "server_error" }));

  for (const status of [400, 401, 402, 403, 404, 405, 406, 410, 411, 412, 413, 414, 415, 422, 424, 431, 451])
    it(`${status} is rejected and not retryable`, () =>
      expectFailure(http(status), { kind: "rejected", status, retryable: false }));

  for (const status of [501, 505, 506, 508, 510, 511, 525, 526])
    it(`${status} is not retryable`, () => expectFailure(http(status), { retryable: false }));

  it("402 is a quota and not a lost connection", () => {
    expectFailure(classify(new Error("Connection lost", { cause: { status: 402 } })), {
      kind: "rejected",
      reason: "quota",
    });
    expectFailure(http(402, { error: { message: "Insufficient Balance" } }), { kind: "rejected", reason: "quota" });
  });

  it("499 of Google is the provider's own cancel", () => {
    expectFailure(http(499, { error: { code: 499, status: "CANCELLED", message: "The operation was cancelled." } }), {
      kind: "cancelled",
      by: "provider",
      retryable: true,
    });
    expectFailure(classifyEvent({ error: { code: 499, status: "CANCELLED" } }), { kind: "cancelled", by: "provider" });
  });

  it("403 with an expired token is auth, and without one permission", () => {
    expectFailure(http(403, { __type: "ExpiredTokenException", message: "expired" }), { reason: "auth" });
    expectFailure(http(403, { message: "The security token included in the request is expired" }), { reason: "auth" });
    expectFailure(http(403, undefined, { "www-authenticate": 'Bearer error="invalid_token"' }), { reason: "auth" });
    expectFailure(http(403, { error: { message: "Your access token has expired", type: "permission_error" } }), {
      reason: "auth",
    });
    expectFailure(http(403, { error: { message: "No access to this model" } }), { reason: "permission" });
  });

  it("413 and a context overflow keep their reasons, so that a runtime can compact", () => {
    expectFailure(http(413, { error: { type: "request_too_large" } }), { reason: "payload_too_large" });
    expectFailure(http(400, { error: { code: "context_length_exceeded" } }), { reason: "context_overflow" });
  });

  it("x-should-retry is obeyed in both directions", () => {
    expectFailure(http(500, undefined, { "x-should-retry": "false" }), { kind: "server_error", retryable: false });
    expectFailure(http(400, undefined, { "x-should-retry": "true" }), { kind: "rejected", retryable: true });
    expectFailure(classify({ status: 529, headers: new Headers({ "x-should-retry": "false" }) }), { retryable: false });
    expectFailure(http(500, undefined, { "x-should-retry": "maybe" }), { retryable: true });
  });
});

describe("a 429", () => {
  const violation = (quotaId: string) => ({
    error: {
      code: 429,
      status: "RESOURCE_EXHAUSTED",
      message: "You exceeded your current quota, please check your plan and billing details.",
      details: [
        { "@type": "type.googleapis.com/google.rpc.QuotaFailure", violations: [{ quotaId }] },
        { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "48s" },
      ],
    },
  });

  it("is never a quota because of the words quota or billing: Gemini's per-minute limit has both", () => {
    expectFailure(http(429, violation("GenerateContentPaidTierInputTokensPerModelPerMinute")), {
      kind: "rate_limited",
      retry_after_ms: 48_000,
      retryable: true,
      not_processed: true,
    });
  });

  it("is a quota if its quotaId is daily", () =>
    expectFailure(http(429, violation("GenerateRequestsPerDayPerProjectPerModel-FreeTier")), {
      kind: "rejected",
      reason: "quota",
      retryable: false,
    }));

  for (const code of ["insufficient_quota", "billing_hard_limit_reached", "billing_not_active"])
    it(`is a quota by the code ${code}`, () => {
      expectFailure(http(429, { error: { code, type: code, message: "x" } }), { kind: "rejected", reason: "quota" });
      expectFailure(classifyEvent({ type: "error", error: { code } }), { kind: "rejected", reason: "quota" });
    });
});

describe("not_processed", () => {
  const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
  const html = "<html><body><h1>503 Service Temporarily Unavailable</h1><hr>nginx</body></html>";

  it("is trusted in the provider's own error schema", () => {
    expectFailure(http(503, { error: { code: 503, status: "UNAVAILABLE", message: "x" } }), { not_processed: true });
    expectFailure(http(529, overloaded), { kind: "overloaded", not_processed: true });
    expectFailure(http(429, { error: { type: "rate_limit_error", message: "x" } }), { not_processed: true });
  });

  for (const [status, kind] of [
    [503, "server_error"],
    [429, "rate_limited"],
    [529, "overloaded"],
    [403, "rejected"],
  ] as const)
    it(`is not trusted in a proxy's HTML ${status}, which keeps its kind`, () =>
      expectFailure(http(status, html), { kind, status, not_processed: false }));

  it("is not trusted in a 503 without a provider's signature", () => {
    expectFailure(http(503), { retryable: true, not_processed: false });
    expectFailure(http(503, "upstream connect error or disconnect/reset before headers"), { not_processed: false });
    expectFailure(http(503, { message: "Service Unavailable" }), { not_processed: false });
  });

  it("does not apply to a code that the provider sends after it has begun", () => {
    for (const status of [400, 503])
      expectFailure(http(status, { error: { type: "insufficient_system_resource", message: "x" } }), {
        kind: "overloaded",
        not_processed: false,
      });
  });

  it("does not apply to 500, 502 and 504", () => {
    for (const status of [500, 502, 504])
      expectFailure(http(status, { error: { code: "server_error", message: "x" } }), { not_processed: false });
  });
});

describe("a cancel", () => {
  it("that is merely abort-shaped is the provider's, and retryable", () => {
    for (const error of [
      new DOMException("This operation was aborted", "AbortError"),
      aborted(),
      coded("ABORT_ERR"),
      coded("UND_ERR_ABORTED"),
      "context canceled",
      new Error("Request was aborted."),
    ])
      expectFailure(classify(error), { kind: "cancelled", by: "provider", retryable: true, not_processed: false });
  });

  it("that wraps a transport code is transport", () =>
    expectFailure(classify(aborted(coded("ECONNRESET"))), { kind: "transport", code: "ECONNRESET" }));
});

describe("a tool call that does not parse", () => {
  it("is invalid_tool_input for tool_use_failed, MALFORMED_FUNCTION_CALL and UNEXPECTED_TOOL_CALL", () => {
    expectFailure(http(400, { error: { code: "tool_use_failed", type: "invalid_request_error" } }), {
      kind: "invalid_tool_input",
      retryable: true,
    });
    expectFailure(classifyEvent({ error: { code: "tool_use_failed", status_code: 400 } }), {
      kind: "invalid_tool_input",
    });
    for (const finishReason of ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"])
      expectFailure(classifyEvent({ candidates: [{ finishReason }] }), { kind: "invalid_tool_input", in_band: true });
  });

  it("does not result from max_tokens or length", () => {
    assert.isUndefined(classifyEvent({ candidates: [{ finishReason: "MAX_TOKENS" }] }));
    assert.isUndefined(classifyEvent({ choices: [{ index: 0, finish_reason: "length" }] }));
  });
});

describe("an error without a network", () => {
  const typed = Object.assign(new Error("not in stock"), { _tag: "OutOfStock", item: 7 });
  const rows: ReadonlyArray<readonly [string, unknown]> = [
    ["a missing function", new TypeError("x is not a function")],
    ["a bug that quotes a sentence", new TypeError("Cannot read 'socket hang up' of undefined")],
    [
      "a missing field that is named like a failure",
      new TypeError("Cannot read properties of undefined (reading 'terminated')"),
    ],
    ["a missing name", new ReferenceError("socket hang up is not defined")],
    ["a syntax error of somebody's code", new SyntaxError("Unexpected identifier 'x'")],
    ["a typed error of the user", typed],
    ["a code of the user", Object.assign(new Error("x"), { code: "not_found" })],
    ["a file that may not be read", Object.assign(coded("EACCES"), { syscall: "open", path: "/etc/shadow" })],
    ["a plain object", { hello: "world" }],
    ["undefined", undefined],
    ["null", null],
    ["a number", 500],
    ["an empty text", ""],
    ["a function", () => 1],
    ["a symbol", Symbol("ECONNRESET")],
  ];
  for (const [name, error] of rows)
    it(`is unknown for ${name}`, () => expectFailure(classify(error), { kind: "unknown", retryable: false }));

  it("is a damaged frame if JSON did not parse, because attempts parse what a provider sends", () => {
    try {
      JSON.parse('{"a');
    } catch (error) {
      expectFailure(classify(error), { kind: "protocol", reason: "damaged_frame", retryable: true });
    }
  });
});

describe("a response that is not a stream", () => {
  it("is not_a_stream with status 200 and HTML, and the error itself with status 200 and an error body", () => {
    expectFailure(http(200, "<html>sign in</html>"), { kind: "protocol", reason: "not_a_stream", retryable: true });
    expectFailure(http(200, { error: { code: 429, message: "slow" } }), { kind: "rate_limited", status: 429 });
    expectFailure(http(302), { kind: "rejected", retryable: false, not_processed: false });
  });
});
