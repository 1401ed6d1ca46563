/**
 * Holds the items of a continuation and their places in the client's response.
 */
import * as Json from "../../domain/Json.ts";
import type { TextBlock } from "../seam/TextBlocks.ts";
import type { Shift } from "./Annotations.ts";
import type { ShownItem, ShownPart } from "./Shown.ts";
import { itemsMax, keyOf } from "./Slots.ts";
import type { Place } from "./Writer.ts";

/** An item of the continuation. */
export interface Slot {
  readonly type: string;
  readonly json: Json.JsonRecord;
  readonly parts: Map<string, PartSlot>;
  closed: boolean;
  /** True if the item's events are not written. Reasoning may be written later, before the item that it produced. */
  dropped: boolean;
  /** The message as reported by the event that ended it. */
  ended: Json.JsonRecord | undefined;
  /** The item's place in the client's response. For a message, this is the place of the client's message that it joins. */
  at: Place | undefined;
  message: ShownItem | undefined;
}

/** A content part of a message of the continuation. */
export interface PartSlot extends TextBlock {
  readonly slot: Slot;
  readonly json: Json.JsonRecord;
  /** The part's text before the seam was proven. */
  front: string;
  /** `spoken`: text of the part has arrived. `annotated`: annotations of the part have arrived. */
  spoken: boolean;
  annotated: boolean;
  waiting: Array<Json.JsonRecord>;
  at: ShownPart | undefined;
  shift: Shift | undefined;
}

/** The items of one continuation, in order. */
export class ContinuationItems {
  readonly #all: Array<Slot> = [];
  readonly #byKey = new Map<string, Slot>();

  get all(): ReadonlyArray<Slot> {
    return this.#all;
  }

  /** Opens an item; undefined if there are too many. */
  open(frame: Json.JsonRecord, item: Json.JsonRecord): Slot | undefined {
    if (this.#all.length >= itemsMax) return undefined;
    const slot: Slot = {
      type: Json.string(item.type),
      json: item,
      parts: new Map(),
      closed: false,
      dropped: false,
      ended: undefined,
      at: undefined,
      message: undefined,
    };
    this.#all.push(slot);
    this.#byKey.set(String(keyOf(frame)), slot);
    return slot;
  }

  /** Returns the open item of an event. If two items share an index, their ids distinguish them. */
  of(frame: Json.JsonRecord): Slot | undefined {
    const id = frame.item_id ?? Json.record(frame.item)?.id;
    const found = this.#byKey.get(String(keyOf(frame)));
    if (found !== undefined && !found.closed) return found;
    return this.#all.findLast((slot) => !slot.closed && id !== undefined && slot.json.id === id);
  }

  /**
   * Returns the items that are only in the final response. Gateways omit some items there, which shifts the others, so items are counted by
   * type.
   */
  findUnreported(output: ReadonlyArray<unknown>): ReadonlyArray<Json.JsonRecord> {
    const items = output.map((value) => Json.record(value) ?? {});
    const ids = new Set(this.#all.flatMap(({ json }) => [json.id, json.call_id]));
    const count = (type: unknown) => items.filter((item) => item.type === type).length;
    const countKnown = (type: unknown) => this.#all.filter((slot) => slot.type === type).length;
    const isKnown = (id: unknown) => id !== undefined && ids.has(id);
    return items.filter(({ call_id, id, type }) => !isKnown(id) && !isKnown(call_id) && countKnown(type) < count(type));
  }

  /**
   * Returns the items that the continuation's own final response lists, by the id that the client knows.
   *
   * @param isWhole returns true if the client reads the slot as a separate item
   */
  finalItemsById(
    output: ReadonlyArray<unknown>,
    isWhole: (slot: Slot) => boolean,
  ): ReadonlyMap<unknown, Json.JsonRecord> {
    const items = output.map((value) => Json.record(value) ?? {});
    const own = new Map(items.map((item) => [`${item.type} ${item.id}`, item]));
    const found = new Map<unknown, Json.JsonRecord>();
    for (const slot of this.#all) {
      const item = slot.json.id === undefined ? undefined : own.get(`${slot.type} ${slot.json.id}`);
      if (item !== undefined && slot.at !== undefined && isWhole(slot))
        found.set(slot.at.id, { ...item, id: slot.at.id });
    }
    return found;
  }
}
