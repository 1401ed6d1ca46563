/**
 * Holds the state of each output item of a response.
 *
 * Items are keyed by `output_index`, because some gateways change ids from event to event.
 */
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import * as Observation from "../../domain/Observation.ts";
import type { Executor } from "../../domain/SideEffects.ts";
import { type Content, nothing } from "../stream/Content.ts";
import type * as ResponsesItem from "./Item.ts";

/** Maximum remembered items of a response. The largest known responses, those of deep research, have a few hundred. */
export const itemsMax = 4096;

/** Maximum argument text held for calls whose item has not finished, in UTF-16 code units. */
export const inputCharactersMax = 16 * 1024 * 1024;

/** An item that is a call, with the names that its signals use. */
export interface Call {
  readonly ordinal: number;
  readonly id: string;
  readonly tool: string;
  readonly executor: Executor;
  readonly settled: boolean;
}

/** The state of one item. */
export interface Slot {
  readonly type: string;
  readonly itemId: string;
  readonly callId: string;
  readonly call?: Call;
  readonly done: boolean;
  /** True if some of its text was shown. */
  readonly visible: boolean;
  /** The complete input, if it arrived before the item finished. */
  readonly input?: string;
  /** The input gathered from deltas, for servers that omit it in later events. */
  readonly streamed?: string;
}

/** The key of an item: a number if the server sends an `output_index`, else a string. */
export type Key = number | string;

/** The immutable state of the output of one response. */
export interface Output {
  readonly slots: ReadonlyMap<Key, Slot>;
  readonly calls: number;
  /** Input text held in `slots` and `growing`, in UTF-16 code units. */
  readonly characters: number;
  /** The input that is streaming now. It is not in its slot, so that a delta does not copy every item of the response (L11). */
  readonly growing?: { readonly key: Key; readonly text: string };
  /** True if a finished runtime call has invalid JSON arguments. */
  readonly broken: boolean;
  readonly hostsXSearch: boolean;
}

/** Moves the growing input into its slot. Call it before every step except a further delta of that input. */
export const flushGrowing = ({ growing, ...output }: Output): Output => {
  const slot = growing && output.slots.get(growing.key);
  if (growing === undefined || slot === undefined) return output;
  return { ...output, slots: new Map(output.slots).set(growing.key, { ...slot, streamed: growing.text }) };
};

/** The output before the first item. */
export const none: Output = { slots: new Map(), calls: 0, characters: 0, broken: false, hostsXSearch: false };

/** The next output, with the observation and content of the part; undefined if a limit is exceeded. */
export type Change = readonly [Output, Observation.Observation, ReadonlyArray<Content>?] | undefined;

/** The observation of output that shows nothing by itself. */
export const produced: Observation.Observation = { ...Observation.none, progress: "output" };

/** A new slot for an item. */
export const newSlot = (type: string, item: Json.JsonRecord = {}): Slot => ({
  type,
  itemId: Json.string(item.id),
  callId: Json.string(item.call_id),
  done: false,
  visible: false,
});

/** Returns the key of an item: its index or, without an index, its id. */
export const keyOf = (frame: Json.JsonRecord): Key =>
  typeof frame.output_index === "number"
    ? frame.output_index
    : Json.string(frame.item_id) || Json.string(Json.record(frame.item)?.id);

/** Returns the key of an event about an item. If two items share an index, their ids distinguish them. */
export const keyFor = (output: Output, frame: Json.JsonRecord): Key => {
  const key = keyOf(frame);
  const id = Json.string(frame.item_id);
  if (id === "" || output.slots.get(key)?.itemId === id) return key;
  for (const [other, slot] of output.slots) if (slot.itemId === id && !slot.done) return other;
  return key;
};

/** True if two calls have different ids, as with servers that number every item 0. */
export const hasOtherId = (slot: Slot, item: Json.JsonRecord): boolean => {
  const id = Json.string(item.call_id);
  return slot.callId !== "" && id !== "" && slot.callId !== id;
};

/** Returns the key of an item of the final response: by its id or, without a match, by its position in the list. */
export const find = (output: Output, index: number, item: Json.JsonRecord): Key | undefined => {
  const id = Json.string(item.call_id);
  for (const [key, slot] of output.slots) if (id !== "" && slot.callId === id && slot.type === item.type) return key;
  return output.slots.get(index)?.type === item.type ? index : undefined;
};

/** Stores a slot. If another call had this key, that call moves to a key that no server sends. */
export const put = (
  output: Output,
  key: Key,
  slot: Slot,
  observation: Observation.Observation,
  said: ReadonlyArray<Content> = nothing,
): Change => {
  const before = output.slots.get(key);
  const slots = new Map(output.slots);
  if (before?.call !== undefined && before.call.ordinal !== slot.call?.ordinal)
    slots.set(`call:${before.call.ordinal}`, before);
  slots.set(key, slot);
  return slots.size > itemsMax ? undefined : [{ ...output, slots }, observation, said];
};

/** Returns the call that an item begins. */
export const callOf = (output: Output, item: Json.JsonRecord, read: ResponsesItem.Call): Call => ({
  ordinal: output.calls,
  id: Json.string(item.call_id) || Json.string(item.id),
  tool: read.tool,
  executor: read.executor,
  settled: false,
});

/** A signal about a call. */
export const signal = (call: Call, phase: Observation.CallSignal["phase"]): Observation.CallSignal => ({
  choice: 0,
  ordinal: call.ordinal,
  ...(call.id === "" ? {} : { id: label(call.id) }),
  ...(call.tool === "" ? {} : { tool: call.tool }),
  executor: call.executor,
  phase,
});

/** True if the response has no items yet. */
export const isEmpty = (output: Output): boolean => output.slots.size === 0;
