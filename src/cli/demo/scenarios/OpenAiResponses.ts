/**
 * Scenarios over OpenAI Responses.
 */
import {
  continuation,
  type DemoTool,
  guarded,
  type Scenario,
  silentRetry,
  singleAttempt,
  unguarded,
} from "./Scenario.ts";

const protocol = "openai-responses";
const call = { tool: "bash", input: { cmd: "make deploy" } };
const atOnce: DemoTool = { ...guarded, runs: "at_once" };

/** The OpenAI Responses scenarios. */
export const scenariosResponses: ReadonlyArray<Scenario> = [
  {
    name: "text-goes-on-responses",
    fault: "clean end in text, continued",
    protocol,
    goesOn: {},
    answers: [{ content: [{ text: 20 }], break: { kind: "end", at: "event", n: 12 } }, { goes_on: {} }],
    expect: continuation("anchor"),
  },
  {
    name: "port-refused",
    fault: "connection refused",
    protocol,
    refusedFirst: true,
    tools: [unguarded],
    answers: [{}],
    expect: silentRetry("not_sent", { requests: 1 }),
  },
  {
    name: "outage-while-it-asks",
    fault: "provider down for 1.5 s",
    protocol,
    outageMs: 1_500,
    answers: [{}],
    expect: silentRetry("not_sent", { requests: 1, waits: ["path"] }),
  },
  {
    name: "stall-before-first-event",
    fault: "silence before any event",
    protocol,
    clocks: { first_progress: 300 },
    answers: [{ break: { kind: "stall", at: "after_head" } }, {}],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "credentials-expired",
    fault: "status 401, new credentials",
    protocol,
    canRefresh: true,
    answers: [{ status: 401 }, {}],
    expect: silentRetry("credentials_refreshed"),
  },
  {
    name: "server-error-500",
    fault: "status 500",
    protocol,
    answers: [{ status: 500 }, {}],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "tool-ran-then-cut",
    fault: "tool had run, then cut",
    protocol,
    tools: [atOnce],
    canContinue: true,
    answers: [
      { content: [call, { reasoning: 4 }], delay_ms: 30, break: { kind: "rst", at: "terminal" } },
      { content: [{ text: 4 }] },
    ],
    expect: silentRetry("tools_settled", { saw: "whole, continued", toolRuns: 1 }),
  },
  {
    name: "tool-ran-cannot-continue",
    fault: "tool had run, cannot continue",
    protocol,
    tools: [atOnce],
    answers: [{ content: [call, { reasoning: 4 }], delay_ms: 30, break: { kind: "rst", at: "terminal" } }],
    expect: singleAttempt("no text, asked", "ask_user tool_ran", { toolRuns: 1 }),
  },
  {
    name: "tool-ran-unguarded",
    fault: "tool had run, not guarded",
    protocol,
    tools: [{ ...unguarded, runs: "at_once" }],
    canContinue: true,
    answers: [{ content: [call, { reasoning: 4 }], delay_ms: 30, break: { kind: "rst", at: "terminal" } }],
    expect: singleAttempt("no text, asked", "ask_user tool_call_handed_over", { toolRuns: 1 }),
  },
  {
    name: "hosted-tool-begun",
    fault: "provider's own tool had run",
    protocol,
    answers: [
      { content: [{ provider_tool: "mcp" }, { reasoning: 3 }], delay_ms: 20, break: { kind: "fin", at: "terminal" } },
    ],
    expect: singleAttempt("no text, asked", "ask_user provider_tool_activity"),
  },
  {
    name: "overloaded-after-text",
    fault: "overloaded after text",
    protocol,
    answer: "accept",
    answers: [{ content: [{ text: 4 }, { error: "overloaded" }], delay_ms: 10 }],
    expect: singleAttempt("partial, asked", "ask_user text_shown"),
  },
  {
    name: "reset-person-retries",
    fault: "reset in text, person: retry",
    protocol,
    answer: "retry",
    answers: [
      { content: [{ text: 6 }], delay_ms: 20, break: { kind: "rst", at: "event", n: 7 } },
      { content: [{ text: 6 }] },
    ],
    expect: { saw: "draft, then whole", decisions: ["ask_user text_shown"], attempts: 2, requests: 2, toolRuns: 0 },
  },
];
