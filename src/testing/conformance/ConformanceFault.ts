/**
 * Holds the faults that a runtime is judged by: what the provider does to the first request of a turn.
 *
 * The first response breaks; the next ones are healthy, so that one repetition is enough. A turn with a tool gets the call twice
 * at most and plain text from the third request on: a runtime that goes on after its tool finds an end.
 */
import { Schema } from "effect";
import type { ProtocolId } from "../../provider/Protocols.ts";
import { render } from "../answers/Answers.ts";
import type { Block, Break, FaultScriptInput } from "../script/FaultScript.ts";

/** The faults, in the order of a scoreboard. */
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

/** A fault, in words and as the script of a provider. */
export interface ConformanceFault {
  readonly id: ConformanceFaultId;
  readonly title: string;
  /** The response is healthy: a runtime that fails here, or asks twice, aborts falsely. */
  readonly healthy: boolean;
  /** The response is a tool call. */
  readonly calls: boolean;
  /**
   * @param protocol the wire protocol
   * @param silenceMs how long `silence` is silent, in milliseconds
   */
  readonly script: (protocol: ProtocolId, silenceMs: number) => FaultScriptInput;
}

/** The tool of every turn. */
export const conformanceTool = "book_room";

/** Deltas of the text responses. */
const deltas = 6;

/** Deltas that are sent before a text response breaks. */
const deltasBefore = 3;

/** Time between text and the error behind it, in milliseconds: the client has shown the text by then. */
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

/** Breaks a text response behind its third delta, wherever that is among the events of a protocol. */
const inText = (protocol: ProtocolId, kind: Break["kind"]): Answer => {
  const events = render(protocol, 1, { content: text });
  const last = events.findIndex((event) => event.serials.includes(`r1.${deltasBefore - 1}·`));
  return { content: text, break: { kind, at: "event", n: last + 1 } };
};

const callBreak = (kind: Break["kind"], at: Break["at"]) => (): Answer => ({ content: call, break: { kind, at } });

/** Every fault, each once. */
export const conformanceFaults: ReadonlyArray<ConformanceFault> = [
  fault("healthy", "nothing: a text", { healthy: true }, () => ({ content: text })),
  fault("healthy_call", "nothing: a tool call", { healthy: true, calls: true }, () => ({ content: call })),
  fault("reset_before_head", "reset before the head", {}, () => ({ break: { kind: "rst", at: "before_head" } })),
  fault("reset_after_head", "reset after the head", {}, () => ({ break: { kind: "rst", at: "after_head" } })),
  fault("text_cut", "text cut", {}, (protocol) => inText(protocol, "rst")),
  fault("text_clean_end", "text, clean end", {}, (protocol) => inText(protocol, "end")),
  fault("args_cut", "arguments cut", { calls: true }, callBreak("rst", "tool_arguments")),
  fault("args_clean_end", "arguments, clean end", { calls: true }, callBreak("end", "tool_arguments")),
  fault("call_then_cut", "call complete, then cut", { calls: true }, callBreak("rst", "terminal")),
  fault("silence", "a long silence, then the answer", { healthy: true }, (_, first_delay_ms) => ({
    content: text,
    first_delay_ms,
  })),
  fault("stall", "silence for ever in the text", {}, (protocol) => inText(protocol, "stall")),
  fault("rate_limited", "429, Retry-After 1 s", {}, () => ({ status: 429, headers: { "retry-after": "1" } })),
  fault("overload_first", "overload event at once", {}, () => ({ content: [{ error: "overloaded" }] })),
  fault("overload_in_text", "overload event in the text", {}, () => ({
    content: [{ text: deltasBefore }, { error: "overloaded" }],
    delay_ms: apartMs,
  })),
  fault("server_error", "500", {}, () => ({ status: 500 })),
  fault("overloaded", "529", {}, () => ({ status: 529 })),
];
