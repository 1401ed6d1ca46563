/** Cases of the rows about tools and text. */
import { empty } from "../../src/domain/SideEffects.ts";
import { type Case, can, guarded, hosted, limited, malformed, provider, row, sent, text } from "./Case.ts";

export const toolCases: ReadonlyArray<Case> = [
  // Rows 8 to 15.
  {
    name: "a tool of unknown outcome",
    facts: { ...sent, tools: [row("mutating", "outcome_unknown")] },
    is: "ask tool_outcome_unknown",
  },
  {
    name: "a tool of unknown outcome beats a cursor",
    facts: { ...sent, tools: [row("unknown", "outcome_unknown")] },
    run: { resumable: true },
    is: "ask tool_outcome_unknown",
  },
  {
    name: "a read that was lost is only read again",
    facts: { ...sent, tools: [row("read_only", "outcome_unknown")] },
    is: "replay only_read_only_tools",
  },
  { name: "a cursor after text", facts: text, run: { resumable: true }, is: "resume resume_cursor" },
  {
    name: "a cursor while a tool runs",
    facts: { ...sent, tools: [row("mutating", "dispatched")] },
    run: { resumable: true },
    is: "resume resume_cursor",
  },
  {
    name: "a cursor does not help against a rate limit",
    facts: { delivery: "accepted" },
    failure: limited,
    run: { resumable: true },
    is: "replay not_processed",
  },
  {
    name: "a cursor after the provider's own cancel",
    facts: text,
    failure: { kind: "cancelled", by: "provider" },
    run: { resumable: true },
    is: "resume resume_cursor",
  },
  {
    name: "a malformed call after a tool ran, marker seen",
    facts: { ...sent, terminal_seen: true, tools: [row("read_only", "settled")] },
    failure: malformed,
    run: can,
    is: "stop already_complete",
  },
  {
    name: "a malformed call, marker seen, nothing else",
    facts: { ...sent, terminal_seen: true },
    failure: malformed,
    is: "replay nothing_shown",
  },
  {
    name: "a malformed call after text, marker seen",
    facts: { ...text, terminal_seen: true },
    failure: malformed,
    is: "stop already_complete",
  },
  { name: "a malformed call after text, no marker", facts: text, failure: malformed, is: "ask text_shown" },
  {
    name: "an empty answer, marker seen, budget spent",
    facts: { ...sent, terminal_seen: true },
    failure: { kind: "empty" },
    run: { auto_retries: 3 },
    is: "stop already_complete",
  },
  {
    name: "a tool that was dispatched",
    facts: { ...sent, side_effects: guarded, tools: [row("mutating", "dispatched")] },
    is: "ask tool_outcome_unknown",
  },
  {
    name: "a read that was dispatched",
    facts: { ...sent, tools: [row("read_only", "dispatched")] },
    is: "replay only_read_only_tools",
  },
  {
    name: "an unguarded call handed over",
    facts: { ...sent, tools: [row("mutating", "handed_over")] },
    is: "ask tool_call_handed_over",
  },
  {
    name: "a missing snapshot guards nothing",
    facts: { ...sent, side_effects: null, tools: [row("mutating", "handed_over")] },
    is: "ask tool_call_handed_over",
  },
  {
    name: "an unguarded call whose input is complete",
    facts: { ...sent, tools: [row("unknown", "input_complete")] },
    is: "ask tool_input_shown",
  },
  {
    name: "an unguarded call whose input was cut",
    facts: { ...sent, tools: [row("mutating", "input_started")] },
    is: "ask tool_input_shown",
  },
  {
    name: "an unguarded read whose input was cut",
    facts: { ...sent, tools: [row("read_only", "input_started")] },
    is: "replay only_read_only_tools",
  },
  {
    name: "a guarded call handed over",
    facts: { ...sent, side_effects: guarded, tools: [row("mutating", "handed_over")] },
    is: "replay tool_calls_fenced",
  },
  {
    name: "a guarded call whose input was cut",
    facts: { ...sent, side_effects: guarded, tools: [row("unknown", "input_started")] },
    is: "replay tool_calls_fenced",
  },
  {
    name: "a provider's own mutating tool",
    facts: { ...sent, side_effects: guarded, tools: [provider("unknown", "input_started")] },
    is: "ask provider_tool_activity",
  },
  {
    name: "a provider's own search",
    facts: { ...sent, tools: [provider("read_only", "settled")] },
    is: "replay only_read_only_tools",
  },
  {
    name: "hosted tools exposed, the rest was never seen",
    facts: { delivery: "ambiguous", side_effects: hosted },
    is: "ask side_effects_unprovable",
  },
  { name: "hosted tools exposed, not sent", facts: { side_effects: hosted }, is: "replay not_sent" },
  {
    name: "hosted tools exposed, not processed",
    facts: { delivery: "accepted", side_effects: hosted },
    failure: limited,
    is: "replay not_processed",
  },
  {
    name: "hosted tools exposed, not processed but it answered",
    facts: { ...sent, side_effects: hosted },
    failure: limited,
    is: "ask side_effects_unprovable",
  },
  {
    name: "hosted tools exposed, the error came in order",
    facts: { ...sent, side_effects: hosted },
    failure: { kind: "server_error", in_band: true },
    is: "replay nothing_shown",
  },
  {
    name: "no snapshot and a processed 500",
    facts: { delivery: "accepted", side_effects: null },
    failure: { kind: "server_error", status: 500 },
    is: "ask side_effects_unprovable",
  },
  {
    name: "unknown runtime tools merely exposed",
    facts: { ...sent, side_effects: { ...empty, complete: false, runtime: { read_only: 0, mutating: 2, unknown: 9 } } },
    is: "replay nothing_shown",
  },
  // Rows 16 to 18.
  {
    name: "tools settled, no text after them",
    facts: { ...text, settled_through: 2, tools: [row("mutating", "settled")] },
    run: can,
    is: "continue tools_settled",
  },
  {
    name: "tools settled, text after them",
    facts: { ...text, text_through: 3, settled_through: 2, tools: [row("mutating", "settled")] },
    run: can,
    is: "ask tool_ran",
  },
  {
    name: "tools settled, text after them, free to continue",
    facts: { ...text, text_through: 3, settled_through: 2, tools: [row("mutating", "settled")] },
    run: { ...can, continue_text: "auto" },
    is: "continue tools_settled",
  },
  {
    name: "one settled, one still running",
    facts: { ...sent, settled_through: 2, tools: [row("mutating", "settled"), row("mutating", "dispatched")] },
    run: can,
    is: "ask tool_outcome_unknown",
  },
  {
    name: "a tool ran and the runtime cannot continue",
    facts: { ...sent, settled_through: 2, tools: [row("mutating", "settled")] },
    is: "ask tool_ran",
  },
  {
    name: "a read ran and the runtime cannot continue",
    facts: { ...sent, settled_through: 2, tools: [row("read_only", "settled")] },
    is: "replay only_read_only_tools",
  },
  { name: "text was shown", facts: text, is: "ask text_shown" },
  {
    name: "text was shown, then a call began, guarded",
    facts: { ...text, call_through: 2, side_effects: guarded },
    run: can,
    is: "continue text_closed_by_call",
  },
  {
    name: "text was shown, then a call began, unguarded",
    facts: { ...text, call_through: 2 },
    run: can,
    is: "ask text_shown",
  },
  {
    name: "a call began, then text was shown",
    facts: { ...text, text_through: 3, call_through: 2, side_effects: guarded },
    run: can,
    is: "ask text_shown",
  },
  {
    name: "text was shown, free to continue",
    facts: text,
    run: { ...can, continue_text: "auto" },
    is: "continue continue_text",
  },
  { name: "free to continue without the means", facts: text, run: { continue_text: "auto" }, is: "ask text_shown" },
  {
    name: "reasoning that cannot be discarded is text",
    facts: { ...sent, shown: "reasoning" },
    run: { discardable: false },
    is: "ask text_shown",
  },
];
