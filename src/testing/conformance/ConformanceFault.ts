/**
 * Defines the faults by which a runtime is judged. A fault is the provider's reaction to the first request of a turn.
 *
 * Only the first response breaks, so one retry is enough. A turn with a tool receives the call at most twice, and plain text from the third
 * request on, so that a runtime that continues after its tool can finish.
 */
import { Schema } from "effect";
import type { ProtocolId } from "../../provider/Protocols.ts";
import { render } from "../answers/Answers.ts";
import type { Block, Break, FaultScriptInput } from "../script/FaultScript.ts";

/** Ids of the faults, in scoreboard order. */
export const ConformanceFaultId = Schema.Literals([
  "healthy",
  "healthy_call",
  "reset_before_head",
  "reset_after_head",
  "text_cut",
  "text_clean_end",
  "args_cut",
  "args_clean_end",
  "call_then_cut",
  "silence",
  "stall",
  "rate_limited",
  "overload_first",
  "overload_in_text",
  "server_error",
  "overloaded",
]);
export type ConformanceFaultId = typeof ConformanceFaultId.Type;

/** A fault with its title and the script of its provider. */
export interface ConformanceFault {
  readonly id: ConformanceFaultId;
  readonly title: string;
  /** True if the response is healthy. If a runtime fails here, or sends a second request, that counts as a false abort. */
  readonly healthy: boolean;
  /** True if the response is a tool call. */
  readonly calls: boolean;
  /** @param silenceMs length of the silence in the fault `silence`, in milliseconds */
  readonly script: (protocol: ProtocolId, silenceMs: number) => FaultScriptInput;
}

/** The tool that every turn offers. */
export const conformanceTool = "book_room";

const deltas = 6;

/** Number of deltas that a text response sends before it breaks. */
const deltasBefore = 3;

/**
 * Time between the text and the error after it, in milliseconds. It is long enough for the client to show the text before the error
 * arrives.
 */
const apartMs = 30;

const text: ReadonlyArray<Block> = [{ text: deltas }];
const call: ReadonlyArray<Block> = [{ tool: conformanceTool, input: { room: "A 12", night: "2026-11-21" } }];

type Answer = NonNullable<FaultScriptInput["answers"]>[number];

const fault = (
  id: ConformanceFaultId,
  title: string,
  kind: { readonly healthy?: boolean; readonly calls?: boolean },
  first: (protocol: ProtocolId, silenceMs: number) => Answer,
): ConformanceFault => {
  const calls = kind.calls ?? false;
  const healthy = kind.healthy ?? false;
  return {
    id,
    title,
    healthy,
    calls,
    script: (protocol, silenceMs) => {
      const again = calls && !healthy ? [{ content: call }] : [];
      return { answers: [first(protocol, silenceMs), ...again, { content: text }] };
    },
  };
};

/** Breaks a text response after its third delta. The break is placed at the protocol's event that contains that delta. */
const inText = (protocol: ProtocolId, kind: Break["kind"]): Answer => {
  const events = render(protocol, 1, { content: text });
  const last = events.findIndex((event) => event.serials.includes(`r1.${deltasBefore - 1}·`));
  return { content: text, break: { kind, at: "event", n: last + 1 } };
};

const callBreak = (kind: Break["kind"], at: Break["at"]) => (): Answer => ({ content: call, break: { kind, at } });

/** All faults that the kit plays. */
export const conformanceFaults: ReadonlyArray<ConformanceFault> = [
  fault("healthy", "none, a text response", { healthy: true }, () => ({ content: text })),
  fault("healthy_call", "none, a tool call", { healthy: true, calls: true }, () => ({ content: call })),
  fault("reset_before_head", "reset before the head", {}, () => ({ break: { kind: "rst", at: "before_head" } })),
  fault("reset_after_head", "reset after the head", {}, () => ({ break: { kind: "rst", at: "after_head" } })),
  fault("text_cut", "text cut", {}, (protocol) => inText(protocol, "rst")),
  fault("text_clean_end", "text, clean end", {}, (protocol) => inText(protocol, "end")),
  fault("args_cut", "arguments cut", { calls: true }, callBreak("rst", "tool_arguments")),
  fault("args_clean_end", "arguments, clean end", { calls: true }, callBreak("end", "tool_arguments")),
  fault("call_then_cut", "call complete, then cut", { calls: true }, callBreak("rst", "terminal")),
  fault("silence", "a long silence, then a response", { healthy: true }, (_, first_delay_ms) => ({
    content: text,
    first_delay_ms,
  })),
  fault("stall", "endless silence after text", {}, (protocol) => inText(protocol, "stall")),
  fault("rate_limited", "429, Retry-After 1 s", {}, () => ({ status: 429, headers: { "retry-after": "1" } })),
  fault("overload_first", "overload event before text", {}, () => ({ content: [{ error: "overloaded" }] })),
  fault("overload_in_text", "overload event after text", {}, () => ({
    content: [{ text: deltasBefore }, { error: "overloaded" }],
    delay_ms: apartMs,
  })),
  fault("server_error", "500", {}, () => ({ status: 500 })),
  fault("overloaded", "529", {}, () => ({ status: 529 })),
];
