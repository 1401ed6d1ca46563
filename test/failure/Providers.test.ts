/**
 * Error bodies and in-stream error events of providers: documented shapes, and recorded ones if they are available.
 */
import { assert, describe, it } from "@effect/vitest";
import { classifyEvent, classifyResponse } from "../../src/failure/FailureClassifier.ts";
import { errors, read } from "../Recordings.ts";
import { expectFailure } from "./ExpectFailure.ts";

const http = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  classifyResponse({ status, headers, body });

describe("error bodies by provider", () => {
  const rows: ReadonlyArray<readonly [string, number, unknown, object]> = [
    [
      "OpenAI: context",
      400,
      { error: { code: "context_length_exceeded", type: "invalid_request_error" } },
      { reason: "context_overflow" },
    ],
    [
      "OpenAI: content policy",
      400,
      { error: { code: "content_policy_violation", type: "invalid_request_error" } },
      { reason: "content_policy" },
    ],
    [
      "OpenAI: model",
      404,
      { error: { code: "model_not_found", type: "invalid_request_error" } },
      { reason: "not_found" },
    ],
    [
      "OpenAI: slow down",
      503,
      { error: { code: "slow_down", message: "x" } },
      { kind: "overloaded", status: 503, not_processed: true },
    ],
    [
      "Azure: content filter",
      400,
      { error: { code: "x", innererror: { code: "ResponsibleAIPolicyViolation" } } },
      { reason: "content_policy" },
    ],
    [
      "Azure: code as text",
      429,
      { error: { code: "429", message: "Please retry after 39 seconds." } },
      { kind: "rate_limited", retry_after_ms: 39_000 },
    ],
    [
      "OpenAI: larger than its limit of tokens a minute",
      429,
      {
        error: {
          type: "tokens",
          code: "rate_limit_exceeded",
          message:
            "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 45000. The input or output tokens must be reduced in order to run successfully. Please try again in 1s.",
        },
      },
      { kind: "rejected", reason: "payload_too_large", retryable: false },
    ],
    [
      "Groq: larger than its limit of tokens a minute",
      413,
      {
        error: {
          type: "tokens",
          code: "rate_limit_exceeded",
          message:
            "Request too large for model `llama` in organization `org_x` on tokens per minute (TPM): Limit 6000, Requested 8000, please reduce your message size and try again.",
        },
      },
      { kind: "rejected", reason: "payload_too_large", retryable: false },
    ],
    [
      "OpenAI: a rate limit that passes",
      429,
      {
        error: {
          type: "tokens",
          code: "rate_limit_exceeded",
          message: "Rate limit reached for gpt-4o. Try again in 2s.",
        },
      },
      { kind: "rate_limited", retryable: true, retry_after_ms: 2_000 },
    ],
    [
      "Bedrock: input tokens",
      400,
      { message: "Input Tokens Exceeded: Number of input tokens exceeds maximum length." },
      { reason: "context_overflow" },
    ],
    ["Bedrock: input tokens under a 429", 429, { message: "Input Tokens Exceeded" }, { reason: "context_overflow" }],
    [
      "Ollama: prompt too long",
      400,
      { error: "prompt too long; exceeded max context length by 12 tokens" },
      { reason: "context_overflow" },
    ],
    [
      "Ollama: prompt too long as 500",
      500,
      { error: "prompt too long" },
      { reason: "context_overflow", retryable: false },
    ],
    [
      "llama.cpp: no images",
      500,
      {
        error: {
          code: 500,
          message: "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
          type: "server_error",
        },
      },
      { kind: "rejected", reason: "invalid_request", retryable: false },
    ],
    [
      "llama.cpp: no tools",
      500,
      { error: { code: 500, message: "tools param requires --jinja flag", type: "server_error" } },
      { kind: "rejected", reason: "invalid_request", retryable: false },
    ],
    [
      "llama.cpp: batch size",
      500,
      {
        error: {
          code: 500,
          message: "input is too large to process. increase the physical batch size",
          type: "server_error",
        },
      },
      { kind: "rejected", reason: "payload_too_large", retryable: false },
    ],
    [
      "llama.cpp: any other 500",
      500,
      { error: { code: 500, message: "the request failed", type: "server_error" } },
      { kind: "server_error", retryable: true },
    ],
    [
      "a proxy's page with the same words",
      500,
      "<html>prompt too long</html>",
      { kind: "server_error", retryable: true },
    ],
    ["Azure: deployment", 404, { error: { code: "DeploymentNotFound", message: "x" } }, { reason: "not_found" }],
    ["OpenRouter: credits", 402, { error: { code: 402, message: "Insufficient credits" } }, { reason: "quota" }],
    [
      "OpenRouter: moderation",
      403,
      { error: { code: 403, message: "x", metadata: { reasons: ["violence"] } } },
      { reason: "content_policy" },
    ],
    [
      "OpenRouter: upstream overflow",
      400,
      { error: { code: 400, message: "Provider returned error", metadata: { raw: "prompt is too long: 9 > 8" } } },
      { reason: "context_overflow" },
    ],
    [
      "Anthropic: context",
      400,
      {
        type: "error",
        error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
      },
      { reason: "context_overflow" },
    ],
    [
      "Anthropic: credit",
      400,
      {
        type: "error",
        error: {
          type: "invalid_request_error",
          message: "Your credit balance is too low to access the Anthropic API.",
        },
      },
      { reason: "quota" },
    ],
    [
      "Anthropic: size",
      413,
      { type: "error", error: { type: "request_too_large", message: "x" } },
      { reason: "payload_too_large" },
    ],
    [
      "Anthropic: permission",
      403,
      { type: "error", error: { type: "permission_error", message: "x" } },
      { reason: "permission" },
    ],
    [
      "Gemini: context",
      400,
      {
        error: {
          code: 400,
          status: "INVALID_ARGUMENT",
          message: "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        },
      },
      { reason: "context_overflow" },
    ],
    [
      "Gemini: key",
      400,
      { error: { code: 400, status: "INVALID_ARGUMENT", details: [{ reason: "API_KEY_INVALID" }] } },
      { reason: "auth" },
    ],
    [
      "Gemini: overloaded",
      503,
      [{ error: { code: 503, status: "UNAVAILABLE", message: "The model is overloaded." } }],
      { kind: "server_error", not_processed: true },
    ],
    [
      "Vertex: permission",
      403,
      { error: { code: 403, status: "PERMISSION_DENIED", message: "x" } },
      { reason: "permission" },
    ],
    [
      "Vertex: billing",
      403,
      { error: { code: 403, status: "PERMISSION_DENIED", details: [{ reason: "BILLING_DISABLED" }] } },
      { reason: "quota" },
    ],
    [
      "Mistral: tier",
      429,
      { object: "error", message: "x", type: "service_tier_capacity_exceeded", code: "3505" },
      { kind: "rate_limited", not_processed: true },
    ],
    [
      "Mistral: context",
      400,
      {
        object: "error",
        message: "Prompt contains 9 tokens, too large for model with 8 maximum context length",
        type: "invalid_request_error",
        code: 3051,
      },
      { reason: "context_overflow" },
    ],
    [
      "Groq: size",
      413,
      { error: { code: "rate_limit_exceeded", type: "tokens", message: "Request too large" } },
      { reason: "payload_too_large" },
    ],
    ["Groq: over capacity", 498, { error: { message: "x", type: "x" } }, { kind: "rejected", retryable: false }],
    [
      "xAI: context",
      400,
      {
        code: "Client specified an invalid argument",
        error: "This model's maximum prompt length is 8 but the request contains 9 tokens.",
      },
      { reason: "context_overflow" },
    ],
    [
      "Bedrock: throttled",
      429,
      { message: "Too many requests, please wait before trying again." },
      { kind: "rate_limited" },
    ],
    ["Bedrock: context", 400, { message: "Input is too long for requested model." }, { reason: "context_overflow" }],
    [
      "Bedrock: throttled by AWS's 400",
      400,
      { __type: "com.amazon.coral.service#ThrottlingException", message: "Rate exceeded" },
      { kind: "rate_limited", retryable: true },
    ],
    [
      "DeepSeek: balance",
      402,
      { error: { message: "Insufficient Balance", type: "unknown_error", code: "invalid_request_error" } },
      { reason: "quota" },
    ],
    [
      "DeepSeek: content",
      400,
      { error: { message: "Content Exists Risk", type: "invalid_request_error" } },
      { reason: "content_policy" },
    ],
    ...[400, 403].map((status): (typeof rows)[number] => [
      `AWS: security token, ${status}`,
      status,
      { message: "The security token included in the request is invalid." },
      { reason: "auth" },
    ]),
    [
      "AWS: signature",
      403,
      { message: "Signature expired: 20261130T000000Z is now earlier than x" },
      { reason: "auth" },
    ],
    ["xAI: key", 400, { error: "Incorrect API key provided: x" }, { reason: "auth" }],
    ["Gemini: key", 400, { error: { message: "API key not valid. Please pass a valid API key." } }, { reason: "auth" }],
    ["Moonshot: account", 429, { error: { type: "exceeded_current_quota_error", message: "x" } }, { reason: "quota" }],
    ["Moonshot: busy", 429, { error: { type: "engine_overloaded_error", message: "x" } }, { kind: "rate_limited" }],
    ["Zhipu: account", 429, { error: { code: "1113", message: "x" } }, { reason: "quota" }],
    [
      "Zhipu: plan window",
      429,
      { error: { type: "rate_limit_error", code: "1310", message: "x" } },
      { reason: "quota" },
    ],
    ["Zhipu: concurrency", 429, { error: { code: "1302", message: "x" } }, { kind: "rate_limited" }],
    ["one-api: balance", 403, { error: { code: "insufficient_user_quota", message: "x" } }, { reason: "quota" }],
    ["LiteLLM: budget", 400, { error: { type: "budget_exceeded", code: "400", message: "x" } }, { reason: "quota" }],
    [
      "LiteLLM: context",
      400,
      { error: { message: "litellm.ContextWindowExceededError: x", type: null, code: "400" } },
      { reason: "context_overflow" },
    ],
    [
      "xAI: credits",
      403,
      {
        code: "The caller does not have permission to execute the specified operation",
        error: "Your team has used all available credits or reached its monthly spending limit.",
      },
      { reason: "quota" },
    ],
    ["Alibaba: arrears", 400, { code: "Arrearage", message: "x" }, { reason: "quota" }],
    [
      "Alibaba: rate",
      429,
      { code: "Throttling.AllocationQuota", message: "exceeded your current quota" },
      { kind: "rate_limited" },
    ],
    [
      "llama.cpp: context",
      400,
      { error: { code: 400, type: "exceed_context_size_error", message: "x" } },
      { reason: "context_overflow" },
    ],
    [
      "vLLM: context",
      400,
      {
        object: "error",
        message: "This model's maximum context length is 8 tokens.",
        type: "BadRequestError",
        code: 400,
      },
      { reason: "context_overflow" },
    ],
    [
      "Codex: plan",
      429,
      { error: { type: "usage_limit_reached", resets_in_seconds: 120 } },
      { reason: "quota", retry_after_ms: 120_000 },
    ],
    ["FastAPI", 422, { detail: [{ loc: ["body"], msg: "field required" }] }, { reason: "invalid_request" }],
    ["no body", 400, undefined, { reason: "invalid_request" }],
    [
      "a code in a 5xx: overflow stays overflow",
      500,
      { error: { code: "context_length_exceeded" } },
      { reason: "context_overflow", retryable: false },
    ],
    [
      "a code in a 5xx: a bad request does not make it one",
      500,
      { error: { type: "invalid_request_error" } },
      { kind: "server_error", retryable: true },
    ],
  ];
  for (const [name, status, body, expected] of rows)
    it(name, () => {
      expectFailure(http(status, body), { ...expected });
      expectFailure(http(status, body === undefined ? undefined : JSON.stringify(body)), { ...expected });
    });

  it("Bedrock: the exception in a header is the provider's own schema", () =>
    expectFailure(http(503, { message: "x" }, { "x-amzn-errortype": "ServiceUnavailableException:http://internal" }), {
      kind: "overloaded",
      status: 503,
      not_processed: true,
    }));
});

describe("error events of the four protocols", () => {
  const rows: ReadonlyArray<readonly [string, unknown, object]> = [
    [
      "Anthropic: overloaded",
      { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
      { kind: "overloaded", retryable: true, not_processed: true },
    ],
    [
      "Anthropic: api_error",
      { type: "error", error: { type: "api_error", message: "Internal server error" } },
      { kind: "server_error" },
    ],
    [
      "Anthropic: rate limit",
      { type: "error", error: { type: "rate_limit_error", message: "x" } },
      { kind: "rate_limited" },
    ],
    [
      "Anthropic: invalid request",
      { type: "error", error: { type: "invalid_request_error", message: "x" } },
      { kind: "rejected", reason: "invalid_request" },
    ],
    [
      "Anthropic: unknown type",
      { type: "error", error: { type: "martian_error" } },
      { kind: "server_error", retryable: true },
    ],
    [
      "Responses: flat",
      { type: "error", code: "rate_limit_exceeded", message: "x", param: null },
      { kind: "rate_limited", code: "rate_limit_exceeded" },
    ],
    ["Responses: flat without code", { type: "error", message: "x" }, { kind: "server_error" }],
    [
      "Responses: nested",
      { type: "error", error: { type: "service_unavailable_error", code: "server_is_overloaded" } },
      { kind: "overloaded" },
    ],
    [
      "Responses: failed",
      { type: "response.failed", response: { status: "failed", error: { code: "server_error", message: "x" } } },
      { kind: "server_error", code: "server_error" },
    ],
    [
      "Responses: failed without error",
      { type: "response.failed", response: { error: null } },
      { kind: "server_error", retryable: true },
    ],
    [
      "Responses: failed by quota",
      { type: "response.failed", response: { error: { code: "insufficient_quota" } } },
      { reason: "quota" },
    ],
    [
      "Responses: failed by context",
      { type: "response.failed", response: { error: { code: "context_length_exceeded" } } },
      { reason: "context_overflow" },
    ],
    ["chat: error object", { error: { message: "x", type: "server_error", code: null } }, { kind: "server_error" }],
    [
      "chat: numeric code of OpenRouter",
      { error: { code: 429, message: "x" }, choices: [] },
      { kind: "rate_limited", status: 429 },
    ],
    [
      "chat: 502 of OpenRouter",
      { error: { code: 502, message: "Provider disconnected" }, choices: [{ finish_reason: "error" }] },
      { kind: "server_error", status: 502, not_processed: false },
    ],
    ["chat: error text", { error: "model runner has unexpectedly stopped" }, { kind: "server_error" }],
    [
      "chat: object error",
      { object: "error", message: "x", code: 400, type: "BadRequestError" },
      { kind: "rejected", reason: "invalid_request" },
    ],
    [
      "chat: finish_reason error",
      { choices: [{ index: 0, delta: {}, finish_reason: "error" }] },
      { kind: "server_error" },
    ],
    [
      "chat: finish_reason error over a broken call",
      { choices: [{ finish_reason: "error", native_finish_reason: "MALFORMED_FUNCTION_CALL" }] },
      { kind: "invalid_tool_input" },
    ],
    [
      "chat: insufficient_system_resource",
      { choices: [{ finish_reason: "insufficient_system_resource" }] },
      { kind: "overloaded", not_processed: false },
    ],
    [
      "chat: error of a choice",
      { choices: [{ index: 0, error: { code: 503, message: "x" } }] },
      { kind: "server_error", status: 503 },
    ],
    [
      "Gemini: unavailable",
      { error: { code: 503, status: "UNAVAILABLE", message: "x" } },
      { kind: "server_error", status: 503, not_processed: true },
    ],
    [
      "Gemini: exhausted",
      { error: { code: 429, status: "RESOURCE_EXHAUSTED", details: [{ retryDelay: "7s" }] } },
      { kind: "rate_limited", retry_after_ms: 7_000 },
    ],
    ["Gemini: array", [{ error: { code: 500, status: "INTERNAL" } }], { kind: "server_error", status: 500 }],
    ["Bedrock: exception by key", { throttlingException: { message: "x" } }, { kind: "rate_limited" }],
    [
      "Bedrock: model stream",
      { modelStreamErrorException: { message: "x", originalStatusCode: 424 } },
      { kind: "server_error" },
    ],
  ];
  for (const [name, event, expected] of rows)
    it(name, () => expectFailure(classifyEvent(event), { ...expected, in_band: true }));

  const healthy: ReadonlyArray<readonly [string, unknown]> = [
    [
      "a chat chunk",
      { choices: [{ index: 0, delta: { content: "error: rate_limit_exceeded" }, finish_reason: null }] },
    ],
    ["a null error", { id: "x", error: null, choices: [{ delta: {} }] }],
    ["an empty error of a gateway", { error: { message: "", type: "", param: "", code: null }, choices: [] }],
    ["an error without anything", { error: {}, choices: [] }],
    ["a finish", { choices: [{ index: 0, finish_reason: "stop" }] }],
    ["an Anthropic ping", { type: "ping" }],
    ["an Anthropic start", { type: "message_start", message: { id: "m", role: "assistant" } }],
    ["a completed response", { type: "response.completed", response: { status: "completed", error: null } }],
    ["an incomplete response", { type: "response.incomplete", response: { status: "incomplete" } }],
    ["a Gemini chunk", { candidates: [{ finishReason: "STOP", content: { parts: [{ text: "x" }] } }] }],
    [
      "a tool's error inside an item",
      { type: "response.output_item.done", item: { type: "mcp_call", error: { code: 500 } } },
    ],
    ["a text", "error"],
    ["nothing", undefined],
  ];
  for (const [name, event] of healthy) it(`is undefined for ${name}`, () => assert.isUndefined(classifyEvent(event)));
});

describe.skipIf(errors.length === 0)("recorded error responses", () => {
  const rate = { kind: "rate_limited", retryable: true };
  const no = (reason: string) => ({ kind: "rejected", reason, retryable: false });
  const invalid = no("invalid_request");
  /** Expected failures by part of the file's name, read by hand. */
  const expectations: ReadonlyArray<readonly [string, object]> = [
    ["anthropic/400.dd-trace-py.anthropic_completion_error", invalid],
    ["bedrock/400", invalid],
    ["cohere/400", no("context_overflow")],
    ["google-vertex/400.opentelemetry", invalid],
    ["google-vertex/400.ruby_llm", no("context_overflow")],
    ["groq/400", { kind: "invalid_tool_input", retryable: true }],
    ["openai/400.dd-trace-py", invalid],
    ["openai/400.openllmetry", invalid],
    ["openai/400.opentelemetry-python-contrib.test_responses_create_api_error", no("not_found")],
    ["openai/400.pydantic-ai", invalid],
    ["openai/400.ruby_llm", invalid],
    ["perplexity/400", no("context_overflow")],
    ["xai/400", no("auth")],
    ["/401.", no("auth")],
    ["bedrock/403", no("auth")],
    ["/404.", no("not_found")],
    ["azure/429", { ...rate, retry_after_ms: 1_000 }],
    ["google/429", { ...rate, retry_after_ms: 48_000 }],
    ["openrouter/429", rate],
  ];
  for (const { file, status, response_headers: headers } of errors) {
    const expected = expectations.find(([part]) => file.includes(part))?.[1];
    it.skipIf(expected === undefined)(file, () => {
      const failure = http(status, read(file), headers);
      expectFailure(failure, { ...expected, status });
    });
  }

  it("reads the shapes quoted in public reports", () => {
    const { reports } = JSON.parse(read("_errors/public-reports.json"));
    const kinds = reports.map((report: { status?: number; body?: unknown; sse?: string }) => {
      const body = report.body ?? JSON.parse(report.sse?.split("data: ")[1] ?? "");
      return (report.status === undefined ? classifyEvent(body) : http(report.status, body))?.kind;
    });
    assert.deepStrictEqual(kinds.slice(0, 8), [
      "overloaded",
      "overloaded",
      "overloaded",
      "overloaded",
      "rate_limited",
      "server_error",
      "rate_limited",
      "server_error",
    ]);
  });
});
