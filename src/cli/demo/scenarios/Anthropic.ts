/**
 * Scenarios over Anthropic Messages.
 */
import { continuation, guarded, type Scenario, silentRetry, singleAttempt } from "./Scenario.ts";

const protocol = "anthropic-messages";
const call = { tool: "bash", input: { cmd: "make deploy" } };

/** The Anthropic Messages scenarios. */
export const scenariosAnthropic: ReadonlyArray<Scenario> = [
  {
    name: "reset-before-head",
    fault: "reset before the head",
    protocol,
    tools: [guarded],
    answers: [{ break: { kind: "rst", at: "before_head" } }, {}],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "reset-in-thinking",
    fault: "reset while it was thinking",
    protocol,
    tools: [guarded],
    answers: [
      { content: [{ reasoning: 4 }, { text: 4 }], delay_ms: 20, break: { kind: "rst", at: "event", n: 6 } },
      { content: [{ reasoning: 4 }, { text: 4 }] },
    ],
    expect: silentRetry("only_reasoning_shown", { saw: "draft, then whole" }),
  },
  {
    name: "overloaded-529",
    fault: "status 529, overloaded",
    protocol,
    answers: [{ status: 529 }, {}],
    expect: silentRetry("not_processed"),
  },
  {
    name: "overloaded-in-stream",
    fault: "overloaded while thinking",
    protocol,
    answers: [{ content: [{ reasoning: 3 }, { error: "overloaded" }], delay_ms: 10 }, {}],
    expect: silentRetry("only_reasoning_shown", { saw: "draft, then whole" }),
  },
  {
    name: "arguments-clean-end",
    fault: "arguments cut by a clean end",
    protocol,
    tools: [guarded],
    answers: [{ content: [call], delay_ms: 10, break: { kind: "end", at: "tool_arguments" } }, { content: [call] }],
    expect: silentRetry("tool_calls_fenced", { saw: "draft, then whole", toolRuns: 1 }),
  },
  {
    name: "call-complete-then-cut",
    fault: "call complete, then cut",
    protocol,
    tools: [guarded],
    answers: [{ content: [call], delay_ms: 10, break: { kind: "rst", at: "terminal" } }, { content: [call] }],
    expect: silentRetry("tool_calls_fenced", { saw: "draft, then whole", toolRuns: 1 }),
  },
  {
    name: "text-then-call-cut",
    fault: "text, then a call cut",
    protocol,
    tools: [guarded],
    canContinue: true,
    answers: [
      { content: [{ text: 3 }, call], delay_ms: 10, break: { kind: "rst", at: "tool_arguments" } },
      { content: [call] },
    ],
    expect: silentRetry("text_closed_by_call", { saw: "whole, continued", toolRuns: 1 }),
  },
  {
    name: "pings-for-ever",
    fault: "thinking, then pings forever",
    protocol,
    clocks: { idle: 300 },
    answers: [
      {
        content: [{ reasoning: 3 }],
        keep_alive: { every_ms: 40, style: "event" },
        break: { kind: "keep_alive", at: "event", n: 5 },
      },
      {},
    ],
    expect: silentRetry("only_reasoning_shown", { saw: "draft, then whole" }),
  },
  {
    name: "machine-asleep",
    fault: "10 minutes asleep in text",
    protocol,
    clocks: { idle: 300 },
    sleepsMs: 600_000,
    answers: [{ content: [{ text: 6 }], delay_ms: 150 }],
    expect: { saw: "whole answer", decisions: [], attempts: 1, requests: 1, toolRuns: 0 },
  },
  {
    name: "late-error",
    fault: "connection lost after the end",
    protocol,
    answers: [{ content: [{ text: 4 }], break: { kind: "fin", at: "event", n: 1_000 } }],
    expect: singleAttempt("whole answer", "do_not_retry already_complete"),
  },
  {
    name: "text-goes-on-anthropic",
    fault: "stall in text, continued",
    protocol,
    clocks: { idle: 300 },
    goesOn: {},
    answers: [{ content: [{ text: 20 }], break: { kind: "stall", at: "event", n: 12 } }, { goes_on: {} }],
    expect: continuation("anchor"),
  },
  {
    name: "client-comes-back",
    fault: "client leaves and comes back",
    protocol,
    leavesAfter: 4,
    answers: [{ content: [{ reasoning: 2 }, { text: 12 }], delay_ms: 10 }],
    expect: { saw: "whole answer", decisions: [], attempts: 1, requests: 1, toolRuns: 0 },
  },
  {
    name: "user-cancels",
    fault: "the user cancels",
    protocol,
    cancelAfter: 3,
    answers: [{ content: [{ text: 40 }], delay_ms: 50 }],
    expect: singleAttempt("partial, stopped", "do_not_retry user_cancelled"),
  },
];
