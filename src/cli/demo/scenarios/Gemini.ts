/**
 * Scenarios over Google Gemini.
 */
import { continuation, guarded, type Scenario, silentRetry } from "./Scenario.ts";

const protocol = "google-gemini";
const call = { tool: "bash", input: { cmd: "make deploy" } };

/** The Google Gemini scenarios. */
export const scenariosGemini: ReadonlyArray<Scenario> = [
  {
    name: "inside-a-character",
    fault: "reset inside a character",
    protocol,
    reveal: "on_complete",
    answers: [
      { content: [{ text: 6 }], delay_ms: 10, break: { kind: "rst", at: "utf8", n: 3 } },
      { content: [{ text: 6 }] },
    ],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "fin-mid-chunk",
    fault: "FIN in the middle of a chunk",
    protocol,
    answers: [
      { content: [{ reasoning: 5 }, { text: 4 }], delay_ms: 10, break: { kind: "fin", at: "byte", n: 700 } },
      {},
    ],
    expect: silentRetry("only_reasoning_shown", { saw: "draft, then whole" }),
  },
  {
    name: "text-goes-on-gemini",
    fault: "FIN in text, continued",
    protocol,
    goesOn: {},
    answers: [{ content: [{ text: 20 }], break: { kind: "fin", at: "event", n: 12 } }, { goes_on: {} }],
    expect: continuation("anchor"),
  },
  {
    name: "no-finish-reason",
    fault: "clean end, no finishReason",
    protocol,
    reveal: "on_complete",
    answers: [
      { content: [{ reasoning: 2 }, { text: 6 }], finish: "none" },
      { content: [{ reasoning: 2 }, { text: 6 }] },
    ],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "keep-alive-only",
    fault: "keep-alives only, forever",
    protocol,
    clocks: { first_progress: 300 },
    answers: [{ keep_alive: { every_ms: 40 }, break: { kind: "keep_alive", at: "after_head" } }, {}],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "stall-between-events",
    fault: "silence between two events",
    protocol,
    clocks: { idle: 300 },
    answers: [{ content: [{ reasoning: 3 }, { text: 3 }], break: { kind: "stall", at: "event", n: 2 } }, {}],
    expect: silentRetry("only_reasoning_shown", { saw: "draft, then whole" }),
  },
  {
    name: "unavailable-503",
    fault: "status 503, provider's own",
    protocol,
    answers: [{ status: 503 }, {}],
    expect: silentRetry("not_processed"),
  },
  {
    name: "second-route",
    fault: "model not found, second route",
    protocol,
    secondRoute: "second",
    answers: [{ status: 404 }, {}],
    expect: silentRetry("not_processed", { route: "second" }),
  },
  {
    name: "error-after-held-text",
    fault: "overloaded, text held back",
    protocol,
    reveal: "on_complete",
    answers: [{ content: [{ text: 5 }, { error: "overloaded" }] }, { content: [{ text: 5 }] }],
    expect: silentRetry("nothing_shown"),
  },
  {
    name: "malformed-call",
    fault: "MALFORMED_FUNCTION_CALL",
    protocol,
    tools: [guarded],
    answers: [{ content: [{ ...call, cut: true }] }, { content: [call] }],
    expect: silentRetry("nothing_shown", { toolRuns: 1 }),
  },
  {
    name: "call-whole-then-reset",
    fault: "call handed over, then reset",
    protocol,
    tools: [guarded],
    answers: [
      { content: [call, { reasoning: 2 }], delay_ms: 20, break: { kind: "rst", at: "terminal" } },
      { content: [call] },
    ],
    expect: silentRetry("tool_calls_fenced", { saw: "draft, then whole", toolRuns: 1 }),
  },
  {
    name: "read-only-call-then-reset",
    fault: "read-only call, then reset",
    protocol,
    tools: [{ name: "bash", effect: "read_only", guarded: false, runs: "at_end" }],
    answers: [
      { content: [call, { reasoning: 2 }], delay_ms: 20, break: { kind: "rst", at: "terminal" } },
      { content: [call] },
    ],
    expect: silentRetry("only_read_only_tools", { saw: "draft, then whole", toolRuns: 1 }),
  },
];
