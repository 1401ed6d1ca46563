/**
 * Errors as runtimes, SDKs and Effect throw them: HTTP/2, undici, OpenAI, Anthropic, AI SDK, AWS, axios, Effect.
 */
import { describe, it } from "@effect/vitest";
import { Cause, Duration, Effect, Exit } from "effect";
import { AiError } from "effect/ai";
import { HttpClientError, HttpClientRequest, HttpClientResponse } from "effect/http";
import { classify } from "../../src/failure/FailureClassifier.ts";
import { expectFailure } from "./ExpectFailure.ts";

const coded = (code: string, message = code): Error => Object.assign(new Error(message), { code });

describe("HTTP/2", () => {
  const reset = (name: string, extra: object = {}) =>
    Object.assign(coded("ERR_HTTP2_STREAM_ERROR", `Stream closed with error code NGHTTP2_${name}`), extra);

  for (const name of ["NO_ERROR", "INTERNAL_ERROR", "REFUSED_STREAM", "CANCEL", "ENHANCE_YOUR_CALM"]) {
    it(`a reset by the peer with ${name} is retryable`, () =>
      expectFailure(classify(reset(name)), { kind: "transport", http2_code: name, retryable: true }));
    it(`a local reset with ${name} is not`, () =>
      expectFailure(classify(reset(name, { origin: "local" })), {
        http2_code: name,
        retryable: false,
        not_processed: false,
      }));
  }

  for (const name of [
    "PROTOCOL_ERROR",
    "FLOW_CONTROL_ERROR",
    "FRAME_SIZE_ERROR",
    "COMPRESSION_ERROR",
    "INADEQUATE_SECURITY",
  ])
    it(`a reset with ${name} is not retryable`, () =>
      expectFailure(classify(reset(name)), { kind: "transport", http2_code: name, retryable: false }));

  it("REFUSED_STREAM says that nothing was processed, CANCEL does not", () => {
    expectFailure(classify(reset("REFUSED_STREAM")), { not_processed: true });
    expectFailure(classify(reset("CANCEL")), { not_processed: false });
  });

  it("rstCode is read as the number of RFC 9113", () => {
    expectFailure(classify(Object.assign(new Error("reset"), { rstCode: 7 })), { http2_code: "REFUSED_STREAM" });
    expectFailure(classify(Object.assign(new Error("reset"), { rstCode: 1 })), { http2_code: "PROTOCOL_ERROR" });
    expectFailure(classify(coded("ERR_HTTP2_SESSION_ERROR", "Session closed with error code 11")), {
      http2_code: "ENHANCE_YOUR_CALM",
      retryable: true,
    });
  });

  it("a GOAWAY below our stream means not processed, one at or above it may have been processed", () => {
    const goaway = (lastStreamID: number) =>
      Object.assign(coded("ERR_HTTP2_SESSION_ERROR", "Session closed with error code NGHTTP2_NO_ERROR"), {
        lastStreamID,
        streamId: 5,
      });
    expectFailure(classify(goaway(3)), { http2_code: "NO_ERROR", retryable: true, not_processed: true });
    expectFailure(classify(goaway(5)), { http2_code: "NO_ERROR", retryable: true, not_processed: false });
    expectFailure(classify(coded("ERR_HTTP2_GOAWAY_SESSION")), { retryable: true, not_processed: true });
  });

  it("is read from the sentences of undici and Go", () => {
    expectFailure(classify(coded("UND_ERR_SOCKET", 'HTTP/2: "GOAWAY" frame received with code 0')), {
      http2_code: "NO_ERROR",
    });
    expectFailure(classify(coded("UND_ERR_INFO", 'HTTP/2: "stream error" received - code 7')), {
      kind: "transport",
      retryable: true,
    });
    expectFailure(classify("stream error: stream ID 3; INTERNAL_ERROR; received from peer"), {
      kind: "transport",
      http2_code: "INTERNAL_ERROR",
      retryable: true,
    });
    expectFailure(classify("stream error: stream ID 3; CANCEL; local reset"), { retryable: false });
  });
});

describe("SDK errors by structure", () => {
  class OpenAIError extends Error {}
  class APIError extends OpenAIError {
    readonly status: number | undefined;
    readonly error: unknown;
    readonly headers: Headers | undefined;
    readonly code: unknown;
    readonly type: unknown;
    constructor(
      status: number | undefined,
      error: unknown,
      headers: Headers | undefined,
      message = "x",
      cause?: unknown,
    ) {
      super(message, { cause });
      this.status = status;
      this.error = error;
      this.headers = headers;
      this.code = Reflect.get(Object(error), "code");
      this.type = Reflect.get(Object(error), "type");
    }
  }
  class APIConnectionError extends APIError {}
  class APIConnectionTimeoutError extends APIConnectionError {}
  class APIUserAbortError extends APIError {}

  it("OpenAI: status, headers and error body", () => {
    const body = { code: "rate_limit_exceeded", type: "tokens", message: "Please try again in 2s." };
    expectFailure(classify(new APIError(429, body, new Headers({ "retry-after-ms": "750" }))), {
      kind: "rate_limited",
      status: 429,
      code: "rate_limit_exceeded",
      retry_after_ms: 750,
      not_processed: true,
    });
    expectFailure(classify(new APIError(429, body, undefined)), { retry_after_ms: 2_000 });
    expectFailure(classify(new APIError(429, { ...body, code: "insufficient_quota" }, undefined)), { reason: "quota" });
  });

  it("OpenAI and Anthropic: an error in a stream has no status", () => {
    expectFailure(classify(new APIError(undefined, { code: "server_error", message: "x" }, undefined)), {
      kind: "server_error",
    });
    expectFailure(classify(new APIError(undefined, { message: "what nobody knows" }, undefined)), {
      kind: "server_error",
    });
    expectFailure(
      classify(new APIError(undefined, { type: "error", error: { type: "overloaded_error" } }, undefined)),
      {
        kind: "overloaded",
        code: "overloaded_error",
      },
    );
  });

  it("connection errors are transport, classified by their cause first", () => {
    expectFailure(classify(new APIConnectionError(undefined, undefined, undefined, "Connection error.")), {
      kind: "transport",
      retryable: true,
    });
    expectFailure(
      classify(new APIConnectionError(undefined, undefined, undefined, "Connection error.", coded("CERT_HAS_EXPIRED"))),
      {
        kind: "transport",
        retryable: false,
      },
    );
    expectFailure(classify(new APIConnectionTimeoutError(undefined, undefined, undefined, "Request timed out.")), {
      kind: "transport",
    });
    expectFailure(classify(new APIUserAbortError(undefined, undefined, undefined, "Request was aborted.")), {
      kind: "cancelled",
      by: "caller",
    });
    expectFailure(classify(Object.assign(new Error("canceled"), { name: "CanceledError", code: "ERR_CANCELED" })), {
      kind: "cancelled",
      by: "caller",
      retryable: false,
    });
    const limit = new DOMException("The operation timed out.", "TimeoutError");
    expectFailure(classify(new APIUserAbortError(undefined, undefined, undefined, "Request was aborted.", limit)), {
      kind: "transport",
    });
    expectFailure(classify(new APIUserAbortError(500, undefined, undefined, "Request was aborted.")), {
      kind: "server_error",
    });
  });

  const apiCall = (fields: object) => Object.assign(new Error("call"), { name: "AI_APICallError" }, fields);

  it("AI SDK: statusCode, responseHeaders and responseBody", () => {
    const error = apiCall({
      statusCode: 429,
      responseHeaders: { "retry-after": "3" },
      responseBody: '{"error":{"code":"insufficient_quota","message":"x"}}',
    });
    expectFailure(classify(error), { kind: "rejected", reason: "quota", retry_after_ms: 3_000 });
    expectFailure(classify(apiCall({ statusCode: 503, responseBody: "<html></html>" })), { not_processed: false });
    expectFailure(classify(apiCall({ isRetryable: true })), { kind: "transport", retryable: true });
    expectFailure(classify(apiCall({ isRetryable: false })), { kind: "unknown" });
  });

  it("AI SDK: a RetryError is classified by its last error, not its first", () => {
    const first = apiCall({ statusCode: 500 });
    const last = apiCall({ statusCode: 401 });
    const error = Object.assign(new Error("Failed after 3 attempts"), {
      name: "AI_RetryError",
      reason: "maxRetriesExceeded",
      errors: [first, last],
      lastError: last,
    });
    expectFailure(classify(error), { kind: "rejected", reason: "auth", status: 401 });
    const reset = Object.assign(new Error("x"), {
      name: "AI_RetryError",
      errors: [first],
      lastError: coded("ECONNRESET"),
    });
    expectFailure(classify(reset), { kind: "transport", code: "ECONNRESET" });
  });

  it("AI SDK: a broken connection in a tool is the caller's failure", () =>
    expectFailure(
      classify(Object.assign(new Error("tool", { cause: coded("ECONNRESET") }), { name: "AI_ToolExecutionError" })),
      { kind: "caller_failed", retryable: false },
    ));

  it("AI SDK: a status in the message of an error event is ignored in favour of the event itself", () => {
    const wrapped = (data: object, fields: object = {}) =>
      Object.assign(new Error("Overloaded"), { name: "AI_StreamProviderError", statusCode: 503, data, ...fields });
    const failed = { type: "error", error: { type: "internal_server_error", message: "Overloaded" } };
    expectFailure(classify(wrapped(failed)), { kind: "server_error", status: undefined, not_processed: false });
    const unheard = { error: { code: "a_code_of_tomorrow", message: "Overloaded" } };
    expectFailure(classify(wrapped(unheard)), { kind: "server_error", status: undefined });
    const limited = { error: { code: "rate_limit_exceeded", message: "x", status: 429 } };
    expectFailure(classify(wrapped(limited)), { kind: "rate_limited", status: 429 });
  });

  it("AI SDK: an answer of another shape than it knows is not requested again, unless it is the provider's error", () => {
    const misread = (value: unknown) =>
      Object.assign(new Error("Type validation failed", { cause: new Error("[]") }), {
        name: "AI_TypeValidationError",
        value,
      });
    for (const value of [{ id: "c", choices: "none" }, "text", null, undefined, { error: null }])
      expectFailure(classify(misread(value)), { kind: "protocol", reason: "damaged_frame", retryable: false });
    expectFailure(classify(misread({ error: { type: "overloaded_error", message: "x" } })), { kind: "overloaded" });
    expectFailure(classify(misread({ error: "Service overloaded" })), { kind: "server_error", retryable: true });
    expectFailure(classify(misread({ error: { code: "insufficient_quota" } })), { kind: "rejected", reason: "quota" });
    const wrapped = Object.assign(new Error("Failed to process error response", { cause: misread({ id: 1 }) }), {
      name: "AI_APICallError",
      statusCode: 503,
    });
    expectFailure(classify(wrapped), { status: 503, retryable: true });
  });

  it("AWS: the exception's name and $metadata", () => {
    const aws = (name: string, httpStatusCode?: number) =>
      Object.assign(new Error("x"), { name, $fault: "client", $metadata: { httpStatusCode } });
    expectFailure(classify(aws("ThrottlingException", 429)), { kind: "rate_limited", status: 429 });
    expectFailure(classify(aws("ExpiredTokenException", 403)), { reason: "auth" });
    expectFailure(classify(aws("ThrottlingException")), { kind: "rate_limited", code: "ThrottlingException" });
  });

  it("axios: response.status, response.headers and response.data", () => {
    const error = Object.assign(new Error("Request failed with status code 429"), {
      name: "AxiosError",
      code: "ERR_BAD_REQUEST",
      response: { status: 429, headers: { "Retry-After": "2" }, data: { error: { code: "rate_limit_exceeded" } } },
    });
    expectFailure(classify(error), { kind: "rate_limited", retry_after_ms: 2_000, not_processed: true });
  });

  it("fetch: a request or redirect that it refuses by itself would be refused again", async () => {
    const refused = { kind: "rejected", reason: "invalid_request", retryable: false, not_processed: false } as const;
    const thrown = async (url: string, init?: RequestInit) => fetch(url, init).catch((error: unknown) => error);
    for (const url of ["http://127.0.0.1:6000/", "unheard-of://host/", "file:///nothing", "data:x"])
      expectFailure(classify(await thrown(url)), refused);
    for (const message of ["unexpected redirect", "redirect count exceeded", "URL scheme must be a HTTP(S) scheme"])
      expectFailure(classify(new TypeError("fetch failed", { cause: new Error(message) })), refused);
    const proxy = new TypeError("fetch failed", { cause: new Error("proxy authentication required") });
    expectFailure(classify(proxy), { kind: "rejected", reason: "auth", retryable: false });
    // Only whole messages, and only errors that `fetch` itself wraps.
    expectFailure(classify(new TypeError("fetch failed", { cause: new Error("bad port of call") })), {
      retryable: true,
    });
    expectFailure(classify(new Error("bad port")), { kind: "unknown" });
    expectFailure(classify(new TypeError("fetch failed", { cause: new Error("other side closed") })), {
      kind: "transport",
      retryable: true,
    });
  });

  it("undici's HTTP parser: bytes other than HTTP are a protocol failure", () => {
    expectFailure(classify(new TypeError("fetch failed", { cause: coded("HPE_INVALID_CONSTANT") })), {
      kind: "protocol",
      reason: "not_a_stream",
    });
    expectFailure(classify(new TypeError("terminated", { cause: coded("HPE_INVALID_CHUNK_SIZE") })), {
      reason: "damaged_frame",
    });
    expectFailure(classify(coded("UND_ERR_HEADERS_OVERFLOW")), { reason: "oversize", retryable: false });
  });
});

describe("aggregates", () => {
  it("AggregateError: each of its errors counts", () => {
    expectFailure(classify(new AggregateError([coded("ECONNREFUSED"), coded("ENETUNREACH")], "")), {
      kind: "transport",
      code: "ECONNREFUSED",
      operation: "connect",
    });
    expectFailure(classify(new AggregateError([coded("ECONNRESET"), { status: 401 }])), { reason: "auth" });
  });

  it("SuppressedError: the original counts, not the disposal that failed after it", () => {
    const error = Object.assign(new Error("x"), {
      name: "SuppressedError",
      error: Object.assign(new Error("dispose"), { status: 500 }),
      suppressed: Object.assign(new Error("request"), { status: 401 }),
    });
    expectFailure(classify(error), { reason: "auth" });
  });
});

describe("Effect", () => {
  const request = HttpClientRequest.get("https://api.example.com/v1?key=secret");
  const response = (status: number, headers: Record<string, string> = {}) =>
    HttpClientResponse.fromWeb(request, new Response("x", { status, headers }));
  const failed = (reason: HttpClientError.HttpClientErrorReason) => new HttpClientError.HttpClientError({ reason });

  it("HttpClientError: a transport error is classified by its cause, or as transport", () => {
    expectFailure(classify(failed(new HttpClientError.TransportError({ request, cause: coded("ECONNRESET") }))), {
      kind: "transport",
      code: "ECONNRESET",
    });
    expectFailure(classify(failed(new HttpClientError.TransportError({ request }))), {
      kind: "transport",
      retryable: true,
    });
    expectFailure(
      classify(failed(new HttpClientError.TransportError({ request, cause: new DOMException("x", "AbortError") }))),
      {
        kind: "cancelled",
      },
    );
  });

  it("HttpClientError: the status and headers of its response", () => {
    const reason = new HttpClientError.StatusCodeError({ request, response: response(429, { "retry-after": "4" }) });
    expectFailure(classify(failed(reason)), { kind: "rate_limited", status: 429, retry_after_ms: 4_000 });
  });

  it("HttpClientError: values that cannot be encoded or decoded", () => {
    expectFailure(classify(failed(new HttpClientError.InvalidUrlError({ request }))), {
      reason: "invalid_request",
      retryable: false,
    });
    expectFailure(classify(failed(new HttpClientError.DecodeError({ request, response: response(200) }))), {
      reason: "damaged_frame",
    });
    expectFailure(classify(failed(new HttpClientError.EmptyBodyError({ request, response: response(200) }))), {
      kind: "truncated",
    });
  });

  const ai = (reason: AiError.AiErrorReason) => AiError.make({ module: "M", method: "m", reason });

  it("AiError: each reason", () => {
    expectFailure(classify(ai(new AiError.RateLimitError({ retryAfter: Duration.seconds(5) }))), {
      kind: "rate_limited",
      retry_after_ms: 5_000,
    });
    expectFailure(classify(ai(new AiError.QuotaExhaustedError({}))), { reason: "quota" });
    expectFailure(classify(ai(new AiError.AuthenticationError({ kind: "ExpiredKey" }))), { reason: "auth" });
    expectFailure(classify(ai(new AiError.AuthenticationError({ kind: "InsufficientPermissions" }))), {
      reason: "permission",
    });
    expectFailure(classify(ai(new AiError.ContentPolicyError({ description: "x" }))), { reason: "content_policy" });
    expectFailure(classify(ai(new AiError.InternalProviderError({ description: "x" }))), { kind: "server_error" });
    expectFailure(classify(ai(new AiError.InvalidOutputError({ description: "x" }))), {
      kind: "protocol",
      retryable: true,
    });
    expectFailure(classify(ai(new AiError.ToolParameterValidationError({ toolName: "t", description: "x" }))), {
      kind: "invalid_tool_input",
    });
    expectFailure(classify(ai(new AiError.ToolConfigurationError({ toolName: "t", description: "x" }))), {
      kind: "caller_failed",
    });
    expectFailure(classify(ai(new AiError.UnknownError({ description: "x" }))), { kind: "unknown" });
  });

  it("AiError: a status in its http is more exact than its reason", () => {
    const reason = new AiError.UnknownError({
      http: { response: { status: 529, headers: { "retry-after": "9" } }, body: "<html>" },
    });
    expectFailure(classify(ai(reason)), {
      kind: "overloaded",
      status: 529,
      retry_after_ms: 9_000,
      not_processed: false,
    });
  });

  it("AiError: a network error by its cause", () => {
    const from = (cause: unknown) =>
      AiError.NetworkError.fromRequestError(new HttpClientError.TransportError({ request, cause }));
    expectFailure(classify(ai(from(undefined))), { kind: "transport", retryable: true });
    const whole = failed(new HttpClientError.TransportError({ request, cause: coded("EPIPE") }));
    const reason = new AiError.NetworkError({ reason: "TransportError", method: "GET", url: "x", cause: whole });
    expectFailure(classify(ai(reason)), { kind: "transport", code: "EPIPE", operation: "write" });
    const invalid = new AiError.NetworkError({ reason: "InvalidUrlError", method: "GET", url: "x" });
    expectFailure(classify(ai(invalid)), { reason: "invalid_request" });
  });

  it("a Cause: a failure precedes an interrupt, and an interrupt alone is the provider's cancel", () => {
    const reset = Cause.fail(coded("ECONNRESET"));
    expectFailure(classify(Cause.combine(Cause.interrupt(1), reset)), { kind: "transport", code: "ECONNRESET" });
    expectFailure(classify(Cause.combine(Cause.interrupt(1), Cause.fail(new Error("mine")))), { kind: "unknown" });
    expectFailure(classify(Cause.combine(Cause.interrupt(1), Cause.die(new Error("finalizer")))), {
      kind: "cancelled",
    });
    expectFailure(classify(Cause.interrupt(1)), { kind: "cancelled", by: "provider" });
    expectFailure(classify(Cause.die(coded("EPIPE"))), { kind: "transport", code: "EPIPE" });
  });

  it.effect("an Exit and a timeout around the attempt", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(Effect.fail({ status: 503 }));
      expectFailure(classify(exit), { kind: "server_error", status: 503 });
      expectFailure(classify(Exit.fail(new Cause.TimeoutError("late"))), { kind: "transport", retryable: true });
    }),
  );
});

describe("plain texts, as the last resort", () => {
  const rows: ReadonlyArray<readonly [string, object]> = [
    ["429 Too Many Requests", { kind: "rate_limited", status: 429, not_processed: false }],
    ["Request failed with status code 503", { kind: "server_error", status: 503, not_processed: false }],
    ['529 {"type":"error","error":{"type":"overloaded_error"}}', { kind: "overloaded" }],
    ['{"type":"error","error":{"type":"overloaded_error"}}', { kind: "overloaded" }],
    ["prompt is too long: 210000 tokens > 200000 maximum", { reason: "context_overflow" }],
    ["peer closed connection without sending complete message body (incomplete chunked read)", { kind: "transport" }],
    ["upstream connect error or disconnect/reset before headers. reset reason: overflow", { kind: "transport" }],
    ["self-signed certificate in certificate chain", { kind: "transport", retryable: false }],
    ["read tcp 10.0.0.1:5000: connection reset by peer", { kind: "transport", retryable: true }],
    ["The model decided to stop", { kind: "unknown" }],
    ["I have terminated the process", { kind: "unknown" }],
  ];
  for (const [message, expected] of rows)
    it(`"${message.slice(0, 60)}"`, () => {
      expectFailure(classify(message), { ...expected });
      expectFailure(classify(new Error("outer", { cause: new Error(message) })), { ...expected });
    });
});
