/**
 * Breaks the arguments of calls in whole streams, so that the caller cannot parse them.
 */
import { type Content, hasWholeCalls, none, recovered, stopped, type ToolState, waiting, whole } from "../Cell.ts";
import type { Oddity } from "./Oddity.ts";

const tool = (name: string): ToolState => waiting.find((it) => it.name === name) ?? none;
const cutCall: Content = [{ tool: "edit", cut: true }];

/** Arguments that do not parse although the stream ended properly. At an output limit they are merely truncated. */
export const brokenCalls: ReadonlyArray<Oddity> = [
  {
    name: "broken arguments, guarded",
    answers: () => [{ content: cutCall, delay_ms: 25 }, { content: [{ tool: "edit" }] }],
    // Gemini never sends such a call: its finish says that there was one.
    expect: (mode, protocol) =>
      recovered(mode === "live" && !hasWholeCalls(protocol) ? "tool_calls_fenced" : "nothing_shown", { keeps: [] }),
    more: { tools: tool("guarded") },
  },
  {
    name: "broken arguments, unguarded",
    answers: () => [{ content: cutCall, delay_ms: 25 }, { content: [{ tool: "edit" }] }],
    // The caller saw the call begin, which would raise a question, but the marker is there, so the answer is accepted as it is.
    expect: (mode, protocol) =>
      mode === "live" && !hasWholeCalls(protocol)
        ? { ...whole, rules: ["already_complete"], keeps: [] }
        : recovered("nothing_shown", { keeps: [] }),
    more: { tools: tool("unguarded") },
  },
  {
    name: "broken arguments after text",
    answers: () => [{ content: [{ text: 2 }, ...cutCall], delay_ms: 25 }, { content: [{ text: 2 }, { tool: "edit" }] }],
    // A caller that cannot discard would consider the call finished, so it is withheld. Gemini's finish leaves no call in the response.
    expect: (mode, protocol) => {
      if (mode === "on_complete") return recovered("nothing_shown");
      return mode === "parts" && !hasWholeCalls(protocol)
        ? stopped("text_shown", [1])
        : { ...whole, rules: ["already_complete"] };
    },
    more: { tools: tool("guarded") },
  },
  {
    name: "arguments cut by the length limit",
    only: ["openai-chat", "openai-responses", "anthropic-messages"],
    answers: () => [{ content: [{ text: 2 }, ...cutCall], finish: "length" }],
    expect: () => whole,
    more: { tools: tool("guarded") },
  },
];
