/**
 * Tracks the calls of an Anthropic message from block to block: the side that runs each call, the completion of its arguments, and the
 * result that settles it.
 */

import { lookup, mcpName } from "../../domain/HostedTools.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import type { CallSignal } from "../../domain/Observation.ts";

/** Maximum argument text held for calls whose block is open, in UTF-16 code units. The API's own limit for a message is far lower. */
export const inputCharactersMax = 16 * 1024 * 1024;

/** Maximum calls of a message that are open or waiting for their result. */
export const openCallsMax = 1024;

interface Call {
  readonly ordinal: number;
  readonly id: string;
  readonly tool: string;
  readonly executor: "runtime" | "provider";
}

interface OpenCall extends Call {
  readonly index: string;
  /** True if the block closed without any argument text. The end of the message shows if a limit cut the arguments or the call has none. */
  readonly closed: boolean;
  /** The `partial_json` so far. */
  readonly input: string;
  /** The complete input, if a server sends it with the block instead of in deltas. */
  readonly given: Json.JsonRecord | undefined;
}

/** The immutable calls of one message. */
export interface Calls {
  readonly count: number;
  readonly open: ReadonlyArray<OpenCall>;
  readonly waiting: ReadonlyArray<Call>;
  /** Argument text held in `open`, in UTF-16 code units. */
  readonly characters: number;
  /** True if a block of a runtime call closed over invalid JSON. */
  readonly broken: boolean;
  /** True if argument text arrived for an unknown call. That text may belong to a call that seems to have no arguments. */
  readonly astray: boolean;
}

/** The calls of a message, before its first block. */
export const none: Calls = { count: 0, open: [], waiting: [], characters: 0, broken: false, astray: false };

/** The next calls and their signals; undefined if a limit is exceeded. */
export type Change = readonly [Calls, ReadonlyArray<CallSignal>] | undefined;

/** Opens a `*tool_use` block. The same block sent twice is one call, but a call with an empty id never counts as a repeat. */
export const begin = (calls: Calls, index: string, block: Json.JsonRecord): Change => {
  const id = Json.string(block.id);
  const type = Json.string(block.type);
  if (id !== "" && calls.open.some((call) => !call.closed && call.index === index && call.id === id))
    return [calls, []];
  const executor = type === "tool_use" ? "runtime" : "provider";
  const given = Json.record(block.input) ?? Json.record(Json.parse(Json.string(block.input))?.json);
  const call: Call = { ordinal: calls.count, id, tool: toolOf(block, type), executor };
  const open = {
    ...call,
    index,
    closed: false,
    input: "",
    given: given && Object.keys(given).length > 0 ? given : undefined,
  };
  const waiting = executor === "provider" ? [...calls.waiting, call] : calls.waiting;
  if (calls.open.length >= openCallsMax || waiting.length > openCallsMax) return undefined;
  return [{ ...calls, count: calls.count + 1, open: [...calls.open, open], waiting }, [signal(call, "input_started")]];
};

/**
 * Returns the tool's name. For an unknown block type this is the type itself, which no table of tools contains, so the effect of the call
 * is unknown.
 */
const toolOf = (block: Json.JsonRecord, type: string): string => {
  const name = Json.string(block.name);
  if (type === "mcp_tool_use") return mcpName(Json.string(block.server_name), name);
  return label(type === "tool_use" || type === "server_tool_use" ? name || type : type);
};

/**
 * Appends a piece of arguments. Some gateways number a block and its deltas differently, so if only one call is open, the piece belongs to
 * that call. If no block was opened, we assume the worst case: a call of unknown effect that the provider runs.
 */
export const append = (calls: Calls, index: string, piece: string): Change => {
  const own = calls.open.findLastIndex((call) => call.index === index && !call.closed);
  const running = calls.open.filter((call) => !call.closed);
  const only = running.length === 1 && running[0] !== undefined ? calls.open.indexOf(running[0]) : -1;
  const at = own === -1 ? only : own;
  const call = calls.open[at];
  if (call === undefined && piece === "") return [calls, []];
  if (call === undefined) return begin({ ...calls, astray: true }, index, { type: "lost_tool_use" });
  const characters = calls.characters + piece.length;
  if (characters > inputCharactersMax) return undefined;
  return [{ ...calls, open: calls.open.with(at, { ...call, input: call.input + piece }), characters }, []];
};

/**
 * Closes a block. A runtime call is ready only if its arguments are JSON. A call without arguments stays open until the end of the message,
 * because a limit that is reached before the first character produces the same block.
 */
export const close = (calls: Calls, index: string): readonly [Calls, ReadonlyArray<CallSignal>] => {
  const at = calls.open.findLastIndex((call) => call.index === index && !call.closed);
  const call = calls.open[at];
  if (call === undefined) return [calls, []];
  if (call.executor === "runtime" && call.given === undefined && call.input.trim() === "") {
    const closed = { ...calls, open: calls.open.with(at, { ...call, closed: true }) };
    return [closed, [signal(call, "input_complete")]];
  }
  const next = { ...calls, open: calls.open.toSpliced(at, 1), characters: calls.characters - call.input.length };
  if (call.executor === "provider") return [next, [signal(call, "input_complete")]];
  const ready = readyOf(call);
  return ready.length === 0 ? [{ ...next, broken: true }, []] : [next, ready];
};

/**
 * Settles the oldest waiting call with the id of a `*tool_result` block. If there is none, the result belongs to a call of an earlier turn
 * (after a pause) or to a lost call. It then counts as a separate call, so that it is not missed.
 */
export const settle = (calls: Calls, block: Json.JsonRecord): readonly [Calls, ReadonlyArray<CallSignal>] => {
  const id = Json.string(block.tool_use_id);
  const at = calls.waiting.findIndex((call) => call.id === id);
  const call = calls.waiting[at];
  if (call !== undefined) return [{ ...calls, waiting: calls.waiting.toSpliced(at, 1) }, [signal(call, "settled")]];
  const type = Json.string(block.type);
  const name = type.replace(/_tool_result$/, "");
  const lost: Call = { ordinal: calls.count, id, tool: label(lookup(name) ? name : type), executor: "provider" };
  return [{ ...calls, count: calls.count + 1 }, [signal(lost, "settled")]];
};

/**
 * Ends a message that stopped by itself, for example with `tool_use`. A call whose block was never closed counts as complete if its input
 * is valid JSON. `broken` is true if some call cannot be parsed.
 */
export const finish = (calls: Calls): { readonly ready: ReadonlyArray<CallSignal>; readonly broken: boolean } => {
  const isLost = (call: OpenCall): boolean => calls.astray && call.given === undefined && call.input.trim() === "";
  const unclosed = calls.open
    .filter((call) => call.executor === "runtime")
    .map((call) => (isLost(call) ? [] : readyOf(call)));
  return { ready: unclosed.flat(), broken: calls.broken || unclosed.some((ready) => ready.length === 0) };
};

/** Returns the signal of a complete call; empty if the arguments cannot be parsed. A call without any text has no arguments. */
const readyOf = (call: OpenCall): ReadonlyArray<CallSignal> => {
  const blank = call.input.trim() === "";
  if (!blank && Json.parse(call.input) === undefined) return [];
  return [{ ...signal(call, "ready"), input: blank ? JSON.stringify(call.given ?? {}) : call.input }];
};

const signal = (call: Call, phase: CallSignal["phase"]): CallSignal => ({
  choice: 0,
  ordinal: call.ordinal,
  ...(call.id === "" ? {} : { id: label(call.id) }),
  tool: call.tool,
  executor: call.executor,
  phase,
});
