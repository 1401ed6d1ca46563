/**
 * Classifies a corpus of error bodies, events and thrown errors, each with every field removed and replaced, and compares what they mean
 * with the recorded meanings. A change of a rule shows in the difference of the record: `vitest -u` writes it again.
 */
import { describe, expect, it } from "@effect/vitest";
import type { Failure } from "../../src/domain/Failure.ts";
import { classify, classifyEvent, classifyResponse } from "../../src/failure/FailureClassifier.ts";

/** Sat, 28 Nov 2026 12:00:00 GMT. */
const nowMs = Date.UTC(2026, 10, 28, 12);
const context = { nowMs };

/** Spells a failure without the words that most failures share. */
const spell = (failure: Failure | undefined): string => {
  if (failure === undefined) return "none";
  const { fingerprint, kind, not_processed, retryable, ...others } = failure;
  const flags = `${retryable === true ? "+" : "-"}${not_processed === true ? "unprocessed" : ""}`;
  const more = Object.entries(others).map(([name, value]) => `${name}=${value}`);
  return [kind, flags, ...more, fingerprint === undefined ? "" : Object.values(fingerprint).join("/")].join(" ").trim();
};

const summary = (failures: ReadonlyArray<Failure | undefined>): string => {
  const counts = new Map<string, number>();
  for (const failure of failures) counts.set(spell(failure), (counts.get(spell(failure)) ?? 0) + 1);
  return [...counts].map(([text, count]) => `    ${count}× ${text}`).join("\n");
};

const replacements = [undefined, null, 0, 1, 200, 429, 4_290, "", "429", "x", true, false, {}, [], [{}], { code: 503 }];

/** The paths of all fields of a value, outermost first. */
const pathsOf = (value: unknown, at: ReadonlyArray<string> = []): ReadonlyArray<ReadonlyArray<string>> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([key, inner]) => [[...at, key], ...pathsOf(inner, [...at, key])]);

const replaced = (value: unknown, [key = "", ...rest]: ReadonlyArray<string>, by: unknown): unknown => {
  const copy: Record<string, unknown> | Array<unknown> = Array.isArray(value) ? [...value] : { ...Object(value) };
  Reflect.set(copy, key, rest.length === 0 ? by : replaced(Reflect.get(Object(value), key), rest, by));
  return copy;
};

const bodies: Readonly<Record<string, unknown>> = {
  openai: { error: { code: "rate_limit_exceeded", type: "tokens", message: "Please try again in 2s.", param: null } },
  "openai context": { error: { code: "context_length_exceeded", type: "invalid_request_error", message: "long" } },
  "openai quota": { error: { code: "insufficient_quota", type: "insufficient_quota", message: "billing" } },
  "openai large": {
    error: {
      code: "rate_limit_exceeded",
      message: "Limit 30000, Requested 45000. Request too large for gpt. Reduce your message size.",
    },
  },
  anthropic: { type: "error", error: { type: "overloaded_error", message: "Overloaded" }, request_id: "r" },
  "anthropic long": { type: "error", error: { type: "invalid_request_error", message: "prompt is too long: 2 > 1" } },
  "anthropic plan": { type: "error", error: { type: "rate_limit_error", message: "You've hit your weekly limit" } },
  azure: { error: { code: "429", message: "retry after 39 seconds", innererror: { code: "content_filter" } } },
  google: {
    error: {
      code: 429,
      status: "RESOURCE_EXHAUSTED",
      message: "quota",
      details: [
        { reason: "RATE_LIMIT_EXCEEDED" },
        { violations: [{ quotaId: "RequestsPerDay" }] },
        { retryDelay: "48s" },
      ],
    },
  },
  "google list": [{ error: { code: 503, status: "UNAVAILABLE", message: "overloaded" } }],
  openrouter: {
    error: {
      code: 403,
      message: "moderated",
      metadata: { reasons: ["hate"], raw: "prompt is too long", error_type: "x", headers: { "retry-after": "3" } },
    },
  },
  minimax: { base_resp: { status_code: 1_002, status_msg: "rate limit" }, choices: null },
  "minimax success": { base_resp: { status_code: 0, status_msg: "" }, choices: [] },
  zhipu: { error: { code: "1113", message: "余额不足" } },
  "zhipu number": { error: { code: 1_301, message: "sensitive" } },
  bedrock: { throttlingException: { message: "slow down" } },
  "bedrock typed": { __type: "com.amazon.coral.service#ThrottlingException", Message: "slow down" },
  fastapi: { detail: [{ msg: "field required", type: "missing" }] },
  "fastapi text": { detail: "Not authenticated" },
  wrapped: { success: false, code: 500, msg: "internal", data: null },
  "wrapped success": { success: true, code: 200, message: "ok", data: { id: 1 } },
  mistral: {
    object: "error",
    message: "Service tier capacity exceeded",
    type: "service_tier_capacity_exceeded",
    code: "3505",
  },
  cohere: { message: "too many tokens: 5", id: "x" },
  xai: { code: "invalid-argument", error: "Incorrect API key provided: x" },
  nested: { error: { error: { error: { error: { code: "insufficient_quota" } } } } },
  errors: { errors: [{ message: "prompt is too long", code: 400 }] },
  cloudflare: { success: false, errors: [{ code: 7_003, message: "no route" }], messages: [] },
  "resets in": { error: { type: "usage_limit_reached", message: "limit", resets_in_seconds: 90 } },
  chunk: { choices: [{ delta: { content: "a" } }], message: "x" },
  other: { id: "r", ok: true },
};

const events: Readonly<Record<string, unknown>> = {
  "response.failed": { type: "response.failed", response: { error: { code: "server_error", message: "x" }, id: "r" } },
  "finish error": { choices: [{ finish_reason: "error", native_finish_reason: "MALFORMED_FUNCTION_CALL" }] },
  "choice error": { choices: [{ error: { code: 502, message: "bad" }, finish_reason: "stop" }] },
  "finish gemini": { candidates: [{ finishReason: "UNEXPECTED_TOOL_CALL" }] },
  "finish zhipu": { choices: [{ finish_reason: "network_error" }] },
  "finish deepseek": { choices: [{ finish_reason: "insufficient_system_resource" }] },
  "bare status": { status: 500, message: "internal", title: "x" },
};

const headerSets: Readonly<Record<string, Record<string, string>>> = {
  none: {},
  "retry-after": { "retry-after": "7" },
  "x-should-retry": { "x-should-retry": "false" },
  "x-should-retry true": { "x-should-retry": "true" },
  "bad x-should-retry": { "x-should-retry": "maybe" },
  html: { "content-type": "text/html; charset=utf-8" },
  xhtml: { "content-type": "application/xhtml+xml" },
  amazon: { "x-amzn-errortype": "ThrottlingException:http://x" },
  challenge: { "www-authenticate": 'Bearer error="invalid_token"' },
  "empty bucket": { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0s" },
  "full bucket": { "x-ratelimit-remaining-tokens": "5", "x-ratelimit-reset-tokens": "1s" },
};

const statuses = [200, 302, 400, 401, 402, 403, 404, 408, 409, 413, 422, 425, 429, 499, 500, 501, 502, 503, 529];

const named = (name: string, fields: object = {}, message = "x"): Error =>
  Object.assign(new Error(message), { name }, fields);
const ofClass = (name: string, fields: object = {}, message = "x"): Error => {
  const made = { [name]: class extends Error {} }[name] ?? Error;
  return Object.assign(new made(message), fields);
};

const thrown: Readonly<Record<string, object>> = {
  reset: named("Error", { code: "ECONNRESET", syscall: "read", errno: -104 }),
  dns: named("Error", { code: "ENOTFOUND", syscall: "getaddrinfo", hostname: "h" }),
  file: named("Error", { code: "EACCES", syscall: "open", path: "/x" }),
  socket: named("Error", { code: "EACCES", syscall: "connect", path: "/x" }),
  "fetch failed": ofClass(
    "TypeError",
    { cause: named("SocketError", { code: "UND_ERR_SOCKET" }, "other side closed") },
    "fetch failed",
  ),
  "fetch refused": ofClass("TypeError", { cause: new Error("bad port") }, "fetch failed"),
  "http2 stream": named(
    "Error",
    { code: "ERR_HTTP2_STREAM_ERROR", rstCode: 7, origin: "peer" },
    "NGHTTP2_REFUSED_STREAM",
  ),
  "http2 session": named(
    "Error",
    { code: "ERR_HTTP2_SESSION_ERROR", lastStreamID: 3, streamId: 5 },
    "NGHTTP2_NO_ERROR",
  ),
  "http2 local": named("Error", { code: "ERR_HTTP2_STREAM_ERROR", remoteReset: false }, "error code NGHTTP2_CANCEL"),
  abort: named("AbortError", { code: 20 }),
  "abort of a status": named("AbortError", { cause: named("Error", { status: 500 }) }),
  timeout: named("TimeoutError", { code: 23 }),
  sdk: ofClass("APIError", { status: 429, headers: { "retry-after": "4" }, error: { code: "rate_limit_exceeded" } }),
  "sdk stream": ofClass("OpenAIError", {}, "request ended without sending any chunks"),
  "sdk finish": ofClass("AnthropicError", {}, "stream ended without producing a Message"),
  "sdk abort": ofClass("APIUserAbortError"),
  "ai sdk": named("AI_APICallError", { isRetryable: true, statusCode: 503, responseBody: "{}", responseHeaders: {} }),
  "ai sdk retry": named("AI_RetryError", {
    lastError: named("AI_APICallError", { statusCode: 500 }),
    errors: [new Error("first")],
  }),
  "ai sdk stream": named("AI_StreamProviderError", {
    statusCode: 503,
    data: { type: "error", error: { type: "overloaded_error" } },
  }),
  "ai sdk value": named("AI_TypeValidationError", { value: { error: { code: "server_error" } } }),
  "ai gateway": named("GatewayError", {
    statusCode: 500,
    [Symbol.for("vercel.ai.gateway.error")]: true,
    cause: named("Error", { code: "ECONNRESET" }),
  }),
  aws: named("ThrottlingException", { $fault: "client", $metadata: { httpStatusCode: 400 }, message: "slow" }),
  axios: named("AxiosError", {
    code: "ERR_BAD_RESPONSE",
    response: { status: 502, data: { error: { message: "x" } }, headers: {} },
  }),
  parser: named("HTTPParserError", {}, "Response does not match the HTTP/1.1 protocol (Invalid EOF state)"),
  "parser head": named("HTTPParserError", {}, "Expected HTTP/"),
  json: named("SyntaxError", {}, "Unexpected token in JSON at position 1"),
  "effect http": named("Error", {
    _tag: "HttpClientError",
    reason: { _tag: "TransportError" },
    response: { status: 500 },
  }),
  "effect ai": named("Error", {
    _tag: "AiError",
    module: "OpenAi",
    reason: { _tag: "RateLimitError", retryAfter: "5s" },
  }),
  "effect ai misfit": named("Error", {
    _tag: "AiError",
    module: "LanguageModel",
    reason: { _tag: "InvalidOutputError" },
  }),
  "effect ai network": named("Error", { _tag: "AiError", reason: { _tag: "NetworkError", reason: "EncodeError" } }),
  "effect ai auth": named("Error", {
    _tag: "AiError",
    reason: { _tag: "AuthenticationError", kind: "InsufficientPermissions" },
  }),
  cause: {
    reasons: [
      { _tag: "Die", defect: new Error("x") },
      { _tag: "Fail", error: named("Error", { code: "ECONNRESET" }) },
      { _tag: "Interrupt" },
    ],
  },
  interrupt: { reasons: [{ _tag: "Interrupt", fiberId: 1 }] },
  "message with a status": new Error("Request failed with status code 503"),
  "message with a body": new Error('429 {"error":{"code":"rate_limit_exceeded","message":"try again in 3s"}}'),
  "message of hyper": new Error("connection closed before message completed"),
  "message of code": new Error("read ECONNRESET"),
  "range error": new RangeError("read ECONNRESET"),
};

/** Wrappers of an error, each of which a library adds. */
const wrappers: Readonly<Record<string, (error: unknown) => unknown>> = {
  bare: (error) => error,
  cause: (error) => new Error("outer", { cause: error }),
  "cause of a connection": (error) => ofClass("APIConnectionError", { cause: error }, "Connection error."),
  aggregate: (error) => new AggregateError([new Error("first"), error], "all"),
  suppressed: (error) =>
    Object.assign(new Error("s"), { name: "SuppressedError", suppressed: error, error: new Error("closing") }),
  fail: (error) => ({ _tag: "Fail", error }),
  die: (error) => ({ _tag: "Die", defect: error }),
  "effect 3": (error) => ({ left: { _tag: "Fail", error }, right: { _tag: "Interrupt" } }),
  response: (error) => Object.assign(new Error("r"), { response: error }),
  "nine deep": (error) => Array.from({ length: 9 }).reduce((inner) => new Error("n", { cause: inner }), error),
  "eight deep": (error) => Array.from({ length: 8 }).reduce((inner) => new Error("n", { cause: inner }), error),
};

const record = (name: string) => `../fixtures/failures/${name}.txt`;
const lines = (rows: ReadonlyArray<readonly [string, ReadonlyArray<Failure | undefined>]>) =>
  `${rows.map(([title, failures]) => `${title}\n${summary(failures)}`).join("\n")}\n`;

const play = (body: unknown): ReadonlyArray<Failure | undefined> => [
  ...[200, 400, 403, 429, 503].map((status) => classifyResponse({ status, headers: {}, body }, context)),
  classifyEvent(body),
  classify(body, context),
  classify(Object.assign(new Error("x"), { error: body }), context),
  classify(JSON.stringify(body), context),
];

describe("the meaning of", () => {
  it("each error body with each status and each header stays as recorded", async () => {
    const at = (title: string, body: unknown, headers: Record<string, string>) =>
      [title, statuses.map((status) => classifyResponse({ status, headers, body }, context))] as const;
    const texts = [
      "",
      " ",
      "<html>",
      "<!DOCTYPE html>",
      "prompt is too long",
      'data: {"error":{"code":"x"}}',
      "[",
      "null",
    ];
    const rows = [...Object.entries(bodies), ...texts.map((text) => [JSON.stringify(text), text] as const)];
    const headed = [
      ["openai", bodies.openai] as const,
      ["no code", { error: { message: "x" } }] as const,
      ['""', ""] as const,
    ];
    await expect(
      lines([
        ...rows.map(([name, body]) => at(name, body, {})),
        ...headed.flatMap(([name, body]) =>
          Object.entries(headerSets).map(([set, headers]) => at(`${name}, headers: ${set}`, body, headers)),
        ),
      ]),
    ).toMatchFileSnapshot(record("statuses"));
  });

  it("each error body and event with each field removed or replaced stays as recorded", async () => {
    const rows = Object.entries({ ...bodies, ...events }).flatMap(([name, body]) => [
      [name, play(body)] as const,
      ...pathsOf(body).map(
        (path) => [`${name}: ${path.join(".")}`, replacements.flatMap((by) => play(replaced(body, path, by)))] as const,
      ),
    ]);
    await expect(lines(rows)).toMatchFileSnapshot(record("fields"));
  });

  it("each thrown error in each wrapper, and with each field removed or replaced, stays as recorded", async () => {
    const rows = Object.entries(thrown).flatMap(([name, error]) => [
      ...Object.entries(wrappers).map(
        ([wrapper, wrap]) => [`${name} in ${wrapper}`, [classify(wrap(error), context)]] as const,
      ),
      ...[...new Set([...Reflect.ownKeys(error), "_tag", "status", "code", "error", "cause"])]
        .filter((key) => key !== "stack")
        .map(
          (key) =>
            [
              `${name}: ${String(key)}`,
              replacements.map((by) => {
                const copy: object = Object.create(
                  Object.getPrototypeOf(error),
                  Object.getOwnPropertyDescriptors(error),
                );
                Reflect.defineProperty(copy, key, { value: by, configurable: true, enumerable: true, writable: true });
                return classify(copy, context);
              }),
            ] as const,
        ),
    ]);
    await expect(lines(rows)).toMatchFileSnapshot(record("thrown"));
  });
});
