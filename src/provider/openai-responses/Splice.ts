/**
 * Joins continuations to a response that a client has read.
 *
 * The seam is the place where a continuation joins the shown text. Text after it continues the open content part, or else a new part of the
 * message, or else a new message. The splice drops the continuation's lifecycle events, because SDKs throw on a second response id, and
 * renumbers every event. Reasoning before the seam belongs to the call that it produces: it moves after the joined message if such a call
 * comes, and is dropped otherwise.
 */
import * as Json from "../../domain/Json.ts";
import type { Splice, SplicedAttempt, SplicedEvent } from "../seam/Splice.ts";
import { TextBlocks } from "../seam/TextBlocks.ts";
import type { TextGate } from "../seam/TextGate.ts";
import { done } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import * as Annotations from "./Annotations.ts";
import { ContinuationItems, type PartSlot, type Slot } from "./ContinuationItems.ts";
import {
  annotationsMax,
  itemCharactersMax,
  joinedCharactersMax,
  Shown,
  type ShownItem,
  type ShownPart,
} from "./Shown.ts";
import { responseOf, Writer } from "./Writer.ts";

/** Creates the splice of one response. */
export const splice = (): Splice => {
  const shown = new Shown();
  return {
    recordSent: (json, event) => shown.apply(json, event),
    response: () => shown.response(),
    startContinuation: (gate) => new Attempt(shown, gate),
  };
};

class Attempt implements SplicedAttempt {
  readonly #gate: TextGate;
  readonly #writer: Writer;
  readonly #before: number;
  /** The message and the part that were open at the break. */
  readonly #left: { readonly item: ShownItem | undefined; readonly part: ShownPart | undefined };
  readonly #items = new ContinuationItems();
  readonly #texts: TextBlocks<PartSlot>;
  /** Complete reasoning items from before the seam. */
  #reasoning: Array<Json.JsonRecord> = [];
  #reasoningCharacters = 0;
  #finished = false;

  constructor(shown: Shown, gate: TextGate) {
    this.#gate = gate;
    this.#texts = new TextBlocks(this.#gate, this.#writeText);
    this.#writer = new Writer(shown);
    this.#before = shown.produced;
    const { lastItem } = this.#writer.wire;
    const item = lastItem?.type === "message" && !lastItem.done ? lastItem : undefined;
    const part = [...(item?.parts.values() ?? [])].at(-1);
    this.#left = { item, part: part?.said === false && !part.done ? part : undefined };
  }

  readonly take = (part: Part): ReadonlyArray<SplicedEvent> => {
    const frame = Json.record(part.json);
    const name = part.event.event;
    // OpenRouter's sentinel may follow the end.
    if (part.event.data === done && this.#finished) return [{ event: name, json: done }];
    if (frame === undefined || this.#finished) return [];
    this.#step(name, frame.type === undefined && name !== "message" ? { ...frame, type: name } : frame);
    return this.#writer.takeEvents();
  };

  readonly end = (): ReadonlyArray<SplicedEvent> => {
    if (!this.#finished && this.#gate.isJoined) this.#texts.close();
    return this.#writer.takeEvents();
  };

  #step(name: string, frame: Json.JsonRecord): void {
    switch (frame.type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        break;
      case "response.output_item.added":
        this.#beginItem(name, frame);
        break;
      case "response.output_item.done":
        this.#endItem(name, frame);
        break;
      case "response.completed":
      case "response.incomplete":
      case "response.done":
      case "response.failed":
        this.#finish(name, frame);
        break;
      default:
        this.#onInside(name, frame);
    }
  }

  // items

  #beginItem(name: string, frame: Json.JsonRecord): void {
    const item = Json.record(frame.item) ?? {};
    const known = this.#items.of(frame);
    // The same item sent twice is one item.
    if (known !== undefined && known.type === item.type && known.json.id === item.id) return;
    const slot = this.#openSlot(frame, item);
    if (slot === undefined) return;
    if (slot.type === "message") {
      if (this.#texts.hasLeft) this.#placeMessage(slot, name, frame);
      this.#onWhole(slot, item);
    } else if (this.#place(slot)) this.#writer.write(name, this.#relocate(slot, frame));
  }

  #endItem(name: string, frame: Json.JsonRecord): void {
    const item = Json.record(frame.item) ?? {};
    const known = this.#items.of(frame);
    const slot = known?.type === item.type ? known : this.#openSlot(frame, item);
    if (slot === undefined) return;
    if (slot.type === "message") {
      this.#onWhole(slot, item);
      this.#endMessage(slot, name, frame, item);
    } else if (slot.dropped) this.#keepReasoning(item);
    else if (this.#place(slot)) this.#writer.write(name, this.#relocate(slot, frame));
    slot.closed = true;
  }

  #endMessage(slot: Slot, name: string, frame: Json.JsonRecord, item: Json.JsonRecord): void {
    slot.ended = item;
    // The next message may still repeat white space that ends the shown text, so no message ends before new text was sent.
    if (!this.#texts.hasLeft && slot.message === undefined) return;
    this.#texts.close();
    this.#closeMessage(slot, slot.message, name, frame);
  }

  /** Closes a message of the client after the continuation's own message has ended. */
  #closeMessage(slot: Slot | undefined, message: ShownItem | undefined, name?: string, frame?: Json.JsonRecord): void {
    if (message === undefined) return;
    const content = Json.list(slot?.ended?.content);
    for (const [key, part] of slot?.parts ?? []) this.#addAnnotations(part, Json.record(content[Number(key)]) ?? {});
    this.#writer.endMessage(message, slot?.ended, name, frame);
  }

  /**
   * Assigns a place to an item that is not a message. Returns false if the item must not be written. After the seam, such an item closes
   * the joined message. Reasoning that waited for the item is written first.
   */
  #place(slot: Slot): boolean {
    if (slot.at !== undefined) return true;
    if (slot.type === "reasoning" && !this.#gate.isJoined) {
      slot.dropped = true;
      return false;
    }
    if (!this.#texts.closeForOther()) return false;
    this.#closeOpenMessages();
    this.#writer.endReasoning();
    for (const item of this.#reasoning.splice(0)) this.#writer.reasoning(item);
    slot.at = this.#writer.placeOf(slot.json.id);
    return true;
  }

  #keepReasoning(item: Json.JsonRecord): void {
    this.#reasoningCharacters += JSON.stringify(item).length;
    if (this.#reasoningCharacters <= itemCharactersMax) this.#reasoning.push(item);
  }

  #openSlot(frame: Json.JsonRecord, item: Json.JsonRecord): Slot | undefined {
    const slot = this.#items.open(frame, item);
    if (slot === undefined) this.#gate.fail("unwritable");
    return slot;
  }

  /** Rewrites an event of an item for the client's place of that item. */
  #relocate({ at }: Slot, frame: Json.JsonRecord): Json.JsonRecord {
    const item = Json.record(frame.item);
    return {
      ...frame,
      output_index: at?.index,
      ...(frame.item_id === undefined ? {} : { item_id: at?.id }),
      ...(item === undefined || item.id === undefined ? {} : { item: { ...item, id: at?.id } }),
    };
  }

  // messages

  /**
   * Writes the rest of the continuation's own message. Then closes the message that was open at the break, and messages that ended before
   * their text was sent.
   */
  #closeOpenMessages(): void {
    const { item, part } = this.#left;
    const seam = this.#texts.findJoining();
    if (item?.done === false) {
      if (seam !== undefined && seam.at === undefined && part !== undefined) this.#placePart(seam);
      this.#closeMessage(seam?.slot, item);
    }
    for (const slot of this.#items.all) if (slot.closed) this.#closeMessage(slot, slot.message);
  }

  #placeMessage(slot: Slot, name = "response.output_item.added", frame: Json.JsonRecord = {}): ShownItem | undefined {
    if (slot.message !== undefined) return slot.message;
    const { item } = this.#left;
    if (slot === this.#texts.findJoining()?.slot && item?.done === false) slot.message = item;
    else {
      this.#closeOpenMessages();
      const json = { status: "in_progress", role: "assistant", ...slot.json };
      slot.message = this.#writer.beginMessage(name, frame, { ...json, status: "in_progress" });
    }
    slot.at = slot.message;
    return slot.message;
  }

  /** Begins a part for the client, or continues the open part. */
  #placePart(part: PartSlot): void {
    const message = this.#placeMessage(part.slot);
    if (message === undefined) return;
    const { item, part: open } = this.#left;
    const joins = part === this.#texts.findJoining();
    const goesOn = joins && message === item && open !== undefined;
    if (!goesOn) this.#writer.endParts(message);
    part.at = goesOn ? open : this.#writer.beginPart(message, part.json);
    if (joins) {
      const seam = Annotations.codePoints(part.front.slice(0, this.#gate.cut - part.start));
      part.shift = { seam, by: Annotations.codePoints(part.at?.text ?? "") - seam };
    }
    const waiting = part.waiting;
    part.waiting = [];
    for (const frame of waiting) this.#onAnnotation(part, "response.output_text.annotation.added", frame);
  }

  #partOf(slot: Slot, index: unknown, json: Json.JsonRecord = { type: "output_text" }): PartSlot {
    const key = String(index ?? 0);
    const known = slot.parts.get(key);
    if (known !== undefined) return known;
    const part: PartSlot = {
      ...this.#texts.next((idle) => idle.at === undefined && idle.slot !== slot),
      slot,
      json,
      front: "",
      spoken: false,
      annotated: false,
      waiting: [],
      at: undefined,
      shift: undefined,
    };
    slot.parts.set(key, part);
    this.#texts.add(part);
    if (this.#texts.hasLeft) this.#placePart(part);
    return part;
  }

  // events of items

  #onInside(name: string, frame: Json.JsonRecord): void {
    const type = Json.string(frame.type);
    if (frame.output_index === undefined && frame.item_id === undefined) {
      if (this.#gate.isJoined) this.#writer.write(name, frame);
      return;
    }
    const texts = type.startsWith("response.output_text.") || type.startsWith("response.content_part.");
    const part = Json.record(frame.part);
    const reasons = Json.string(part?.type).startsWith("reasoning") || type.startsWith("response.reasoning");
    if (texts && !reasons && (part === undefined || part.type === "output_text" || part.type === "text"))
      this.#onText(name, frame);
    else this.#onOther(name, frame, reasons);
  }

  #onOther(name: string, frame: Json.JsonRecord, reasons: boolean): void {
    const slot = this.#items.of(frame);
    if (slot?.dropped) return;
    if (slot?.type === "message" || Json.string(frame.type).startsWith("response.refusal.")) {
      // A refusal inside the joined message has no position that is valid for both responses.
      const own = slot?.message !== undefined && slot.message !== this.#left.item;
      if (own && this.#gate.isJoined) this.#writer.write(name, this.#relocate(slot, frame));
      else this.#gate.fail(this.#gate.isJoined ? "unwritable" : "not_text");
      return;
    }
    // The server omitted the start of the item.
    const opened = slot ?? this.#openSlot(frame, { type: reasons ? "reasoning" : "unknown", id: frame.item_id });
    if (opened !== undefined && this.#place(opened)) this.#writer.write(name, this.#relocate(opened, frame));
  }

  #onText(name: string, frame: Json.JsonRecord): void {
    const found = this.#items.of(frame);
    const began = { type: "message", role: "assistant", id: frame.item_id };
    const slot = found?.type === "message" ? found : this.#openSlot(frame, began);
    if (slot === undefined) return;
    const told = Json.record(frame.part);
    const part = this.#partOf(slot, frame.content_index, told);
    switch (frame.type) {
      case "response.output_text.delta":
        this.#takeText(part, Json.string(frame.delta), name, frame);
        return;
      case "response.output_text.annotation.added":
        this.#onAnnotation(part, name, frame);
        return;
      case "response.output_text.done":
        this.#onWholePart(part, Json.string(frame.text));
        this.#endPart(part, (message, at) => this.#writer.sayPart(message, at, frame));
        return;
      case "response.content_part.added":
        this.#onWholePart(part, Json.string(told?.text));
        return;
      case "response.content_part.done":
        this.#onWholePart(part, Json.string(told?.text));
        this.#endPart(part, (message, at) => {
          this.#addAnnotations(part, told ?? {});
          this.#writer.endPart(message, at, frame);
        });
        return;
      default:
        if (part.at !== undefined)
          this.#writer.write(name, { ...this.#relocate(slot, frame), content_index: part.at.index });
    }
  }

  /** Ends a part that the client reads, after its held text was sent. */
  #endPart(part: PartSlot, ends: (message: ShownItem, at: ShownPart) => void): void {
    if (!this.#texts.hasLeft && part.at === undefined) return;
    this.#texts.close();
    const { at, slot } = part;
    if (at !== undefined && slot.message !== undefined) ends(slot.message, at);
  }

  // text

  #onWhole(slot: Slot, item: Json.JsonRecord): void {
    for (const [index, value] of Json.list(item.content).entries()) {
      const json = Json.record(value) ?? {};
      if (json.type === "output_text" || json.type === "text")
        this.#onWholePart(this.#partOf(slot, index, json), Json.string(json.text));
      else if (json.type === "refusal" && !this.#gate.isJoined) this.#gate.fail("not_text");
    }
  }

  /** Text that arrives whole is new only if no piece of it came before. */
  #onWholePart(part: PartSlot, text: string): void {
    if (!part.spoken) this.#takeText(part, text);
  }

  #takeText(part: PartSlot, piece: string, name?: string, frame?: Json.JsonRecord): void {
    part.spoken ||= piece !== "";
    if (!this.#gate.isJoined) part.front += piece;
    this.#texts.take(piece, name, frame);
  }

  readonly #writeText = (
    part: PartSlot,
    piece: string,
    name = "response.output_text.delta",
    frame: Json.JsonRecord = {},
  ): void => {
    if (part.at === undefined) this.#placePart(part);
    const { at, slot } = part;
    if (at === undefined || slot.message === undefined) return;
    const place = { item_id: slot.message.id, output_index: slot.message.index, content_index: at.index };
    // If the text was cut, its tokens are unknown.
    const logprobs = "logprobs" in frame && piece !== frame.delta ? { logprobs: [] } : {};
    this.#writer.write(name, { ...frame, type: "response.output_text.delta", ...place, delta: piece, ...logprobs });
    if (this.#writer.wire.text.characters > joinedCharactersMax) this.#gate.fail("unwritable");
  };

  // annotations

  #onAnnotation(part: PartSlot, name: string, frame: Json.JsonRecord): void {
    part.annotated = true;
    const annotation = Json.record(frame.annotation) ?? {};
    const { at, slot } = part;
    if (at === undefined || slot.message === undefined) {
      // Before the seam, an annotation without a position is about text that the client has already read, so it is dropped.
      const waits = this.#gate.isJoined || Annotations.isPlaced(annotation);
      if (waits && part.waiting.length < annotationsMax) part.waiting.push(frame);
      return;
    }
    const [own] =
      part.shift === undefined ? [annotation] : Annotations.findNew(at.annotations, [annotation], part.shift);
    if (own === undefined) return;
    const place = { item_id: slot.message.id, output_index: slot.message.index, content_index: at.index };
    this.#writer.write(name, { ...frame, ...place, annotation_index: at.annotations.length, annotation: own });
  }

  /** Adds annotations that only the end of a part contains. */
  #addAnnotations({ annotated, at, shift }: PartSlot, told: Json.JsonRecord): void {
    if (at === undefined || annotated || at.done) return;
    const annotations = Json.list(told.annotations);
    at.annotations.push(
      ...(shift === undefined ? annotations : Annotations.findNew(at.annotations, annotations, shift)),
    );
  }

  // the end

  #finish(name: string, frame: Json.JsonRecord): void {
    const response = Json.record(frame.response) ?? {};
    if (frame.type !== "response.failed") {
      this.#writeUnreported(Json.list(response.output));
      this.#texts.close();
    }
    if (!this.#gate.isJoined) return;
    this.#finished = true;
    if (frame.type !== "response.failed") {
      this.#closeOpenMessages();
      this.#writer.endReasoning();
      for (const item of this.#writer.wire.items) if (item.type === "message") this.#writer.endMessage(item);
    }
    const joining = this.#texts.findJoining()?.slot;
    const isWhole = (slot: Slot) =>
      slot !== joining && (slot.message === undefined || slot.message !== this.#left.item);
    const told = this.#items.finalItemsById(Json.list(response.output), isWhole);
    const ending = { wire: this.#writer.wire, told, before: this.#before, cut: this.#gate.cut };
    this.#writer.write(name, { ...frame, response: responseOf(response, ending) });
  }

  /**
   * Writes items that are only in the final response. The start of each is written first, because SDKs throw on the end of an item that
   * never began.
   */
  #writeUnreported(output: ReadonlyArray<unknown>): void {
    for (const [index, item] of this.#items.findUnreported(output).entries())
      for (const type of ["response.output_item.added", "response.output_item.done"])
        this.#step(type, { type, output_index: `final ${index}`, item });
  }
}
