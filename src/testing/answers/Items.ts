/**
 * Holds an answer with its serial numbers, before a protocol renders it.
 */
import type { Block, ProviderErrorName } from "../script/FaultScript.ts";

/** Purpose of an event. Scripts place breaks by it. */
export type EventRole = "lifecycle" | "reasoning" | "text" | "arguments" | "call" | "ping" | "error" | "terminal";

/** A call as the server wrote it. `input` is its complete argument JSON. */
export interface ScriptedCall {
  readonly serial: string;
  readonly name: string;
  readonly executor: "runtime" | "provider";
  readonly input: string;
}

/** One event on the wire. */
export interface AnswerEvent {
  /** The whole frame with its blank line, or a script's own bytes unchanged. */
  readonly frame: string | Uint8Array;
  readonly role: EventRole;
  /** Serials of the visible deltas in this event. */
  readonly serials: ReadonlyArray<string>;
  /**
   * The call that this event completes: all of its arguments are sent, and if it is a call to one of the provider's own tools, it has run.
   */
  readonly call?: ScriptedCall;
}

/** A content block with its serial numbers. */
export type Item =
  | { readonly type: "reasoning" | "text" | "refusal"; readonly deltas: ReadonlyArray<string> }
  | {
      readonly type: "call";
      readonly id: string;
      readonly call: ScriptedCall;
      readonly pieces: ReadonlyArray<string>;
      readonly cut: boolean;
    }
  | { readonly type: "error"; readonly error: ProviderErrorName }
  | { readonly type: "ping"; readonly count: number }
  | { readonly type: "bytes"; readonly bytes: Uint8Array };

/** The end of an answer, with the same names for every protocol. `none` writes no terminal event. */
export type FinishName = "stop" | "tool" | "length" | "content_filter" | "none";

/** The input of a protocol writer. */
export interface NumberedAnswer {
  /** Number of the request at its server, from 1. */
  readonly request: number;
  readonly items: ReadonlyArray<Item>;
  readonly finish: FinishName;
  readonly usage: boolean;
  readonly background: boolean;
}

/** The model name in every answer. */
export const model = "fault-model";

/** Length of one piece of arguments, in UTF-16 code units. It is short, so that every call has several pieces. */
const pieceCharacters = 12;

/** Assigns serials to the deltas and calls of a request, in block order. */
export const number = (request: number, blocks: ReadonlyArray<Block>): ReadonlyArray<Item> => {
  let delta = 0;
  let calls = 0;
  const deltas = (count: number) => Array.from({ length: count }, () => `r${request}.${delta++}·`);
  return blocks.map((block): Item => {
    if (block.reasoning !== undefined) return { type: "reasoning", deltas: deltas(block.reasoning) };
    if (block.text !== undefined) {
      const texts = deltas(block.text).map((serial, at) => `${serial}${block.words?.[at] ?? ""}`);
      return { type: "text", deltas: texts };
    }
    if (block.refusal !== undefined) return { type: "refusal", deltas: deltas(block.refusal) };
    if (block.ping !== undefined) return { type: "ping", count: block.ping };
    if (block.error !== undefined) return { type: "error", error: block.error };
    if (block.bytes !== undefined) return { type: "bytes", bytes: Buffer.from(block.bytes, "base64") };
    calls += 1;
    return numberCall(`r${request}.t${calls}`, block);
  });
};

const numberCall = (serial: string, block: Block): Item => {
  const marked = { serial, ...block.input, end: `${serial}·` };
  const input = JSON.stringify(block.unmarked === true ? (block.input ?? {}) : marked);
  const sent = block.cut === true ? input.slice(0, Math.ceil(input.length / 2)) : input;
  const pieces: Array<string> = [];
  for (let at = 0; at < sent.length; at += pieceCharacters) pieces.push(sent.slice(at, at + pieceCharacters));
  const executor = block.provider_tool === undefined ? "runtime" : "provider";
  const name = block.provider_tool ?? block.tool ?? "";
  return {
    type: "call",
    id: `call_${serial}`,
    call: { serial, name, executor, input },
    pieces,
    cut: block.cut === true,
  };
};
