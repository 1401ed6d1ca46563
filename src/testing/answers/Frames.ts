/**
 * Builds the frames that the protocol writers share: one event as server-sent-event text.
 */
import type { AnswerEvent, EventRole, Item, ScriptedCall } from "./Items.ts";

interface FrameOptions {
  /** The `event:` field; left out where a protocol names no events. */
  readonly event?: string;
  readonly serials?: ReadonlyArray<string>;
  readonly call?: ScriptedCall;
}

/** An event with JSON data. */
export const frame = (role: EventRole, data: object | string, options: FrameOptions = {}): AnswerEvent => ({
  frame: `${options.event === undefined ? "" : `event: ${options.event}\n`}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`,
  role,
  serials: options.serials ?? [],
  ...(options.call === undefined ? {} : { call: options.call }),
});

/** A comment: keep-alive bytes that are no event. */
export const commentFrame: AnswerEvent = { frame: ": keep-alive\n\n", role: "ping", serials: [] };

/** A script's own bytes: an event of no role. */
export const bytesFrame = (bytes: Uint8Array): AnswerEvent => ({ frame: bytes, role: "lifecycle", serials: [] });

/** Token counts of an answer, made from what it says. */
export const tokens = (items: ReadonlyArray<Item>): { readonly input: number; readonly output: number } => ({
  input: 11,
  output: items.reduce((sum, item) => sum + ("deltas" in item ? item.deltas.length : 1), 0),
});
