/**
 * Frames one event as server-sent-event text, for all protocol writers.
 */
import type { AnswerEvent, EventRole, Item, ScriptedCall } from "./Items.ts";

interface FrameOptions {
  /** The `event:` field. Omitted by protocols that do not name their events. */
  readonly event?: string;
  readonly serials?: ReadonlyArray<string>;
  readonly call?: ScriptedCall;
}

/** Frames an event. Objects are written as JSON. */
export const frame = (role: EventRole, data: object | string, options: FrameOptions = {}): AnswerEvent => ({
  frame: `${options.event === undefined ? "" : `event: ${options.event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`,
  role,
  serials: options.serials ?? [],
  ...(options.call === undefined ? {} : { call: options.call }),
});

/** An SSE comment: keep-alive bytes that are not an event. */
export const commentFrame: AnswerEvent = { frame: ": keep-alive\n\n", role: "ping", serials: [] };

/** Wraps a script's own bytes unchanged, with the role `lifecycle`. */
export const bytesFrame = (bytes: Uint8Array): AnswerEvent => ({ frame: bytes, role: "lifecycle", serials: [] });

/** Derives token counts from the content: a fixed input, and one output token per delta or other item. */
export const tokens = (items: ReadonlyArray<Item>): { readonly input: number; readonly output: number } => ({
  input: 11,
  output: items.reduce((sum, item) => sum + ("deltas" in item ? item.deltas.length : 1), 0),
});
