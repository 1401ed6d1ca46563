/**
 * Scenarios over OpenAI Chat Completions.
 */
import { continuation, guarded, type Scenario, silentRetry, singleAttempt, unguarded } from "./Scenario.ts";

const protocol = "openai-chat";
const call = { tool: "bash", input: { cmd: "make deploy" } };
const proxyPage = "<html><body><h1>503 Service Unavailable</h1>nginx</body></html>";

/** The OpenAI Chat Completions scenarios. */
export const scenariosChat: ReadonlyArray<Scenario> = [
  {
    name: "reset-after-head",
    fault: "reset after the head",
    protocol,
    answers: [{ break: { kind: "rst", at: "after_head" } }, {}],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "clean-end-held-back",
    fault: "clean end, text held back",
    protocol,
    reveal: "on_complete",
    answers: [{ content: [{ text: 6 }], break: { kind: "end", at: "event", n: 4 } }, { content: [{ text: 6 }] }],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "clean-end-live",
    fault: "clean end, text shown",
    protocol,
    answers: [{ content: [{ text: 6 }], delay_ms: 10, break: { kind: "end", at: "event", n: 4 } }],
    expect: singleAttempt("partial, asked", "ask_user text_shown"),
  },
  {
    name: "text-goes-on",
    fault: "reset in text, continued",
    protocol,
    goesOn: {},
    answers: [{ content: [{ text: 20 }], delay_ms: 10, break: { kind: "rst", at: "event", n: 12 } }, { goes_on: {} }],
    expect: continuation("anchor"),
  },
  {
    name: "text-goes-on-prefill",
    fault: "reset in text, by a prefill",
    protocol,
    goesOn: { prefill: "prefix" },
    answers: [{ content: [{ text: 20 }], delay_ms: 10, break: { kind: "rst", at: "event", n: 12 } }, { goes_on: {} }],
    expect: continuation("prefill"),
  },
  {
    name: "text-not-joined",
    fault: "reset in text, words added",
    protocol,
    goesOn: {},
    answers: [
      { content: [{ text: 20 }], delay_ms: 10, break: { kind: "rst", at: "event", n: 12 } },
      { goes_on: { preface: "Sure, here is the rest: " } },
    ],
    expect: {
      ...singleAttempt("partial, asked", "auto_retry_once continue_text"),
      decisions: ["auto_retry_once continue_text", "ask_user text_shown"],
      attempts: 2,
      requests: 2,
      seams: ["unproven"],
    },
  },
  {
    name: "text-refused",
    fault: "reset in text of JSON mode",
    protocol,
    goesOn: { more: { response_format: { type: "json_object" } } },
    answers: [{ content: [{ text: 20 }], delay_ms: 10, break: { kind: "rst", at: "event", n: 12 } }],
    expect: singleAttempt("partial, asked", "ask_user text_shown", { seams: ["structured_output"] }),
  },
  {
    name: "rate-limited-429",
    fault: "status 429, retry-after 1 s",
    protocol,
    answers: [{ status: 429, headers: { "retry-after": "1" } }, {}],
    expect: silentRetry("not_processed", { waits: ["cooldown"] }),
  },
  {
    name: "cooldown-of-a-sibling",
    fault: "another run got 429, 1 s",
    protocol,
    sibling: true,
    answers: [{ status: 429, headers: { "retry-after": "1" } }, {}],
    expect: { saw: "whole answer", decisions: [], attempts: 1, requests: 1, toolRuns: 0, waits: ["cooldown"] },
  },
  {
    name: "proxy-503",
    fault: "status 503, a proxy's page",
    protocol,
    answers: [{ status: 503, body: proxyPage }, {}],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "stall-before-head",
    fault: "silence before the head",
    protocol,
    clocks: { first_progress: 300 },
    answers: [{ break: { kind: "stall", at: "before_head" } }, {}],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "arguments-reset",
    fault: "arguments cut by a reset",
    protocol,
    tools: [guarded],
    answers: [{ content: [call], delay_ms: 10, break: { kind: "rst", at: "tool_arguments" } }, { content: [call] }],
    expect: silentRetry("tool_calls_fenced", { saw: "draft, then whole", toolRuns: 1 }),
  },
  {
    name: "arguments-reset-unguarded",
    fault: "arguments cut, not guarded",
    protocol,
    tools: [unguarded],
    answers: [{ content: [call], delay_ms: 10, break: { kind: "rst", at: "tool_arguments" } }],
    expect: singleAttempt("no text, asked", "ask_user tool_input_shown"),
  },
  {
    name: "arguments-broken-json",
    fault: "arguments broken, finish fine",
    protocol,
    tools: [guarded],
    answers: [{ content: [{ ...call, cut: true }], delay_ms: 10 }, { content: [call] }],
    expect: silentRetry("tool_calls_fenced", { saw: "draft, then whole", toolRuns: 1 }),
  },
  {
    name: "stale-socket-reset",
    fault: "kept connection had died",
    protocol,
    warmUp: "kept",
    answers: [{ break: { kind: "rst", at: "next_request" } }, {}],
    expect: silentRetry("nothing_shown", { connections: ["kept", "fresh"] }),
  },
  {
    name: "stale-socket-recycled",
    fault: "connection had idled too long",
    protocol,
    warmUp: "recycled",
    // The server would reset the idle connection. The keep-alive that it announces must not stop the client from recycling the connection.
    answers: [{ headers: { "keep-alive": "timeout=600" }, break: { kind: "rst", at: "next_request" } }, {}],
    expect: {
      saw: "whole answer",
      decisions: [],
      attempts: 1,
      requests: 1,
      toolRuns: 0,
      connections: ["recycled"],
    },
  },
  {
    name: "reset-every-time",
    fault: "reset at every attempt",
    protocol,
    answers: [{ break: { kind: "rst", at: "after_head" } }],
    expect: {
      saw: "no text, asked",
      decisions: [
        "auto_retry_once nothing_shown",
        "auto_retry_once nothing_shown",
        "auto_retry_once nothing_shown",
        "ask_user budget_exhausted",
      ],
      attempts: 4,
      requests: 4,
      toolRuns: 0,
    },
  },
  {
    name: "overloaded-first-event",
    fault: "overloaded as the first event",
    protocol,
    answers: [
      { raw: 'data: {"error":{"message":"Overloaded","type":"server_error","code":"server_is_overloaded"}}\n\n' },
      {},
    ],
    expect: silentRetry("not_processed"),
  },
  {
    name: "context-overflow",
    fault: "status 400, context too long",
    protocol,
    answers: [
      {
        status: 400,
        body: {
          error: {
            message: "This model's maximum context length is 128000 tokens.",
            type: "invalid_request_error",
            param: "messages",
            code: "context_length_exceeded",
          },
        },
      },
    ],
    expect: singleAttempt("provider's error", "do_not_retry not_retryable"),
  },
  {
    name: "slow-but-healthy",
    fault: "slow but healthy",
    protocol,
    clocks: { first_progress: 900, idle: 900 },
    answers: [{ content: [{ reasoning: 4 }, { text: 6 }], head_delay_ms: 200, delay_ms: 150 }],
    expect: { saw: "whole answer", decisions: [], attempts: 1, requests: 1, toolRuns: 0 },
  },
];
