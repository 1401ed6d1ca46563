/**
 * Joins continuations to a response that a client has read.
 *
 * The text behind the seam goes on in the content part that is open, else in a new part of the message, else in a new message.
 * Lifecycle events of the continuation are dropped, because SDKs throw at a second identity, and every event that leaves is
 * numbered on. Reasoning in front of the seam belongs to the call that comes of it: it goes behind the joined message where one
 * comes, and is dropped where none does.
 */
import * as Json from "../../domain/Json.ts";
import { AttemptGate } from "../seam/AttemptGate.ts";
import type { Splice, SplicedAttempt, SplicedEvent, TextGate } from "../seam/Splice.ts";
import { done } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import * as Annotations from "./Annotations.ts";
import { ContinuationItems, type PartSlot, type Slot } from "./ContinuationItems.ts";
import { annotationsMax, itemCharactersMax, Shown, type ShownItem, type ShownPart } from "./Shown.ts";
import { responseOf, Writer } from "./Writer.ts";

/** A splice of a response. */
export const splice = (): Splice => {
  const shown = new Shown();
  return {
    left: (json, event) => shown.apply(json, event),
    shown: () => shown.response(),
    continued: (gate) => new Attempt(shown, gate),
  };
};

class Attempt implements SplicedAttempt {
  readonly #gate: AttemptGate;
  readonly #writer: Writer;
  readonly #before: number;
  /** The message and the part that the break has left open. */
  readonly #left: { readonly item: ShownItem | undefined; readonly part: ShownPart | undefined };
  readonly #items = new ContinuationItems();
  #texts: Array<PartSlot> = [];
  #joining: PartSlot | undefined;
  /** Reasoning that came in front of the seam, whole. */
  #reasoning: Array<Json.JsonRecord> = [];
  #reasoningCharacters = 0;
  /** Text given to the gate, and taken from it. */
  #fed = 0;
  #out = 0;
  #finished = false;

  constructor(shown: Shown, gate: TextGate) {
    this.#gate = new AttemptGate(gate);
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
    // The sentinel of OpenRouter behind the end.
    if (part.event.data === done && this.#finished) return [{ event: name, json: done }];
    if (frame === undefined || this.#finished) return [];
    this.#step(name, frame.type === undefined && name !== "message" ? { ...frame, type: name } : frame);
    return this.#writer.taken();
  };

  readonly end = (): ReadonlyArray<SplicedEvent> => {
    if (!this.#finished && this.#gate.joined) this.#says(this.#gate.close());
    return this.#writer.taken();
  };

  #step(name: string, frame: Json.JsonRecord): void {
    switch (frame.type) {
      case "response.created":
      case "response.queued":
      case "response.in_progress":
        break;
      case "response.output_item.added":
        this.#begins(name, frame);
        break;
      case "response.output_item.done":
        this.#ends(name, frame);
        break;
      case "response.completed":
      case "response.incomplete":
      case "response.done":
      case "response.failed":
        this.#finishes(name, frame);
        break;
      default:
        this.#inside(name, frame);
    }
  }

  // items

  #begins(name: string, frame: Json.JsonRecord): void {
    const item = Json.record(frame.item) ?? {};
    const known = this.#items.of(frame);
    // The same item sent twice is one.
    if (known !== undefined && known.type === item.type && known.json.id === item.id) return;
    const slot = this.#opened(frame, item);
    if (slot === undefined) return;
    if (slot.type === "message") {
      if (this.#out > 0) this.#placesMessage(slot, name, frame);
      this.#whole(slot, item);
    } else if (this.#admits(slot)) this.#writer.write(name, this.#moved(slot, frame));
  }

  #ends(name: string, frame: Json.JsonRecord): void {
    const item = Json.record(frame.item) ?? {};
    const known = this.#items.of(frame);
    const slot = known?.type === item.type ? known : this.#opened(frame, item);
    if (slot === undefined) return;
    if (slot.type === "message") {
      this.#whole(slot, item);
      this.#endsMessage(slot, name, frame, item);
    } else if (slot.dropped) this.#keeps(item);
    else if (this.#admits(slot)) this.#writer.write(name, this.#moved(slot, frame));
    slot.closed = true;
  }

  #endsMessage(slot: Slot, name: string, frame: Json.JsonRecord, item: Json.JsonRecord): void {
    slot.ended = item;
    // White space at the end of what was shown may still come, in the next message: until text has left nothing ends here.
    if (this.#out === 0 && slot.message === undefined) return;
    this.#says(this.#gate.close());
    this.#closes(slot, slot.message, name, frame);
  }

  /** Closes a message of the client's, as the continuation's own has ended. */
  #closes(slot: Slot | undefined, message: ShownItem | undefined, name?: string, frame?: Json.JsonRecord): void {
    if (message === undefined) return;
    const content = Json.list(slot?.ended?.content);
    for (const [key, part] of slot?.parts ?? []) this.#annotates(part, Json.record(content[Number(key)]) ?? {});
    this.#writer.endMessage(message, slot?.ended, name, frame);
  }

  /**
   * Whether an item that is no message may be written; then it has its place.
   *
   * Behind the seam it closes the joined message, and reasoning that waited for what comes of it goes in front.
   */
  #admits(slot: Slot): boolean {
    if (slot.at !== undefined) return true;
    if (slot.type === "reasoning" && !this.#gate.joined) {
      slot.dropped = true;
      return false;
    }
    this.#says(this.#gate.close());
    if (!this.#gate.joined) {
      this.#gate.fail("not_text");
      return false;
    }
    this.#closesMessage();
    this.#writer.endReasoning();
    for (const item of this.#reasoning.splice(0)) this.#writer.reasoning(item);
    slot.at = this.#writer.placeOf(slot.json.id);
    return true;
  }

  #keeps(item: Json.JsonRecord): void {
    this.#reasoningCharacters += JSON.stringify(item).length;
    if (this.#reasoningCharacters <= itemCharactersMax) this.#reasoning.push(item);
  }

  #opened(frame: Json.JsonRecord, item: Json.JsonRecord): Slot | undefined {
    const slot = this.#items.open(frame, item);
    if (slot === undefined) this.#gate.fail("unwritable");
    return slot;
  }

  /** An event of an item, where the client reads it. */
  #moved({ at }: Slot, frame: Json.JsonRecord): Json.JsonRecord {
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
   * Closes the message that the break has left open, and those that have ended before their text left; what the continuation's
   * own has left to say of it is said first.
   */
  #closesMessage(): void {
    const { item, part } = this.#left;
    const seam = this.#seamPart();
    if (item?.done === false) {
      if (seam !== undefined && seam.at === undefined && part !== undefined) this.#placesPart(seam);
      this.#closes(seam?.slot, item);
    }
    for (const slot of this.#items.all) if (slot.closed) this.#closes(slot, slot.message);
  }

  #placesMessage(slot: Slot, name = "response.output_item.added", frame: Json.JsonRecord = {}): ShownItem | undefined {
    if (slot.message !== undefined) return slot.message;
    const { item } = this.#left;
    if (slot === this.#joining?.slot && item?.done === false) slot.message = item;
    else {
      this.#closesMessage();
      const json = { status: "in_progress", role: "assistant", ...slot.json };
      slot.message = this.#writer.beginMessage(name, frame, { ...json, status: "in_progress" });
    }
    slot.at = slot.message;
    return slot.message;
  }

  /** Begins a part on the wire, or goes on with the one that is open. */
  #placesPart(part: PartSlot): void {
    const message = this.#placesMessage(part.slot);
    if (message === undefined) return;
    const { item, part: open } = this.#left;
    const goesOn = part === this.#joining && message === item && open !== undefined;
    if (!goesOn)
      for (const before of message.parts.values())
        if (before.begun && !before.done) {
          this.#writer.sayPart(message, before);
          this.#writer.endPart(message, before);
        }
    part.at = goesOn ? open : this.#writer.beginPart(message, part.json);
    if (part === this.#joining) {
      const seam = Annotations.codePoints(part.front.slice(0, this.#gate.cut - part.start));
      part.shift = { seam, by: Annotations.codePoints(part.at?.text ?? "") - seam };
    }
    const waiting = part.waiting;
    part.waiting = [];
    for (const frame of waiting) this.#annotation(part, "response.output_text.annotation.added", frame);
  }

  /** The part that goes on with the last one that the client has read: known once the seam is proven. */
  #seamPart(): PartSlot | undefined {
    if (!this.#gate.joined) return undefined;
    this.#joining ??= this.#texts.findLast((part) => part.first || part.start < this.#gate.cut);
    return this.#joining;
  }

  #partOf(slot: Slot, index: unknown, json: Json.JsonRecord = { type: "output_text" }): PartSlot {
    const key = String(index ?? 0);
    const known = slot.parts.get(key);
    if (known !== undefined) return known;
    const idle = this.#texts.at(-1);
    if (idle?.start === this.#fed && idle.at === undefined && idle.slot !== slot) this.#texts.pop();
    const part: PartSlot = {
      slot,
      json,
      start: this.#fed,
      first: this.#texts.length === 0 && this.#joining === undefined,
      front: "",
      spoken: false,
      annotated: false,
      waiting: [],
      at: undefined,
      shift: undefined,
    };
    // A part that begins behind text which has left is the provider's own, whole.
    const behind = this.#out > 0;
    slot.parts.set(key, part);
    this.#texts.push(part);
    if (behind) this.#placesPart(part);
    return part;
  }

  // events of items

  #inside(name: string, frame: Json.JsonRecord): void {
    const type = Json.string(frame.type);
    if (frame.output_index === undefined && frame.item_id === undefined) {
      if (this.#gate.joined) this.#writer.write(name, frame);
      return;
    }
    const texts = type.startsWith("response.output_text.") || type.startsWith("response.content_part.");
    const part = Json.record(frame.part);
    const reasons = Json.string(part?.type).startsWith("reasoning") || type.startsWith("response.reasoning");
    if (texts && !reasons && (part === undefined || part.type === "output_text" || part.type === "text"))
      this.#text(name, frame);
    else this.#other(name, frame, reasons);
  }

  /** An event of an item that is no text. */
  #other(name: string, frame: Json.JsonRecord, reasons: boolean): void {
    const slot = this.#items.of(frame);
    if (slot?.dropped) return;
    if (slot?.type === "message" || Json.string(frame.type).startsWith("response.refusal.")) {
      // A refusal inside of the joined message has no place that both sides know.
      const own = slot?.message !== undefined && slot.message !== this.#left.item;
      if (own && this.#gate.joined) this.#writer.write(name, this.#moved(slot, frame));
      else this.#gate.fail(this.#gate.joined ? "unwritable" : "not_text");
      return;
    }
    // The server has left the start of the item out.
    const opened = slot ?? this.#opened(frame, { type: reasons ? "reasoning" : "unknown", id: frame.item_id });
    if (opened !== undefined && this.#admits(opened)) this.#writer.write(name, this.#moved(opened, frame));
  }

  #text(name: string, frame: Json.JsonRecord): void {
    const found = this.#items.of(frame);
    const began = { type: "message", role: "assistant", id: frame.item_id };
    const slot = found?.type === "message" ? found : this.#opened(frame, began);
    if (slot === undefined) return;
    const told = Json.record(frame.part);
    const part = this.#partOf(slot, frame.content_index, told);
    switch (frame.type) {
      case "response.output_text.delta":
        this.#spoken(part, Json.string(frame.delta), name, frame);
        return;
      case "response.output_text.annotation.added":
        this.#annotation(part, name, frame);
        return;
      case "response.output_text.done":
        this.#wholePart(part, Json.string(frame.text));
        this.#endsPart(part, (message, at) => this.#writer.sayPart(message, at, frame));
        return;
      case "response.content_part.added":
        this.#wholePart(part, Json.string(told?.text));
        return;
      case "response.content_part.done":
        this.#wholePart(part, Json.string(told?.text));
        this.#endsPart(part, (message, at) => {
          this.#annotates(part, told ?? {});
          this.#writer.endPart(message, at, frame);
        });
        return;
      default:
        if (part.at !== undefined)
          this.#writer.write(name, { ...this.#moved(slot, frame), content_index: part.at.index });
    }
  }

  /** Ends a part that the client reads; what is held of its text leaves first. */
  #endsPart(part: PartSlot, ends: (message: ShownItem, at: ShownPart) => void): void {
    if (this.#out === 0 && part.at === undefined) return;
    this.#says(this.#gate.close());
    const { at, slot } = part;
    if (at !== undefined && slot.message !== undefined) ends(slot.message, at);
  }

  // text

  /** The texts of a message that comes whole. */
  #whole(slot: Slot, item: Json.JsonRecord): void {
    for (const [index, value] of Json.list(item.content).entries()) {
      const json = Json.record(value) ?? {};
      if (json.type === "output_text" || json.type === "text")
        this.#wholePart(this.#partOf(slot, index, json), Json.string(json.text));
      else if (json.type === "refusal" && !this.#gate.joined) this.#gate.fail("not_text");
    }
  }

  /** A text that comes whole is new where no piece of it came. */
  #wholePart(part: PartSlot, text: string): void {
    if (!part.spoken) this.#spoken(part, text, "response.output_text.delta", {});
  }

  #spoken(part: PartSlot, piece: string, name: string, frame: Json.JsonRecord): void {
    if (piece === "") return;
    part.spoken = true;
    if (!this.#gate.joined) part.front += piece;
    this.#fed += piece.length;
    this.#says(this.#gate.text(piece), name, frame);
  }

  /** Writes text that has passed the gate into the parts that it is of. */
  #says(text: string, name = "response.output_text.delta", frame: Json.JsonRecord = {}): void {
    let rest = text;
    while (rest !== "") {
      const from = this.#gate.cut + this.#out;
      this.#seamPart();
      const at = this.#texts.findLastIndex((part) => part.start <= from);
      this.#texts = this.#texts.slice(Math.max(at, 0));
      const [part, next] = this.#texts;
      if (part === undefined) {
        this.#gate.fail("unwritable");
        return;
      }
      const piece = next === undefined ? rest : rest.slice(0, Math.max(1, next.start - from));
      rest = rest.slice(piece.length);
      this.#out += piece.length;
      this.#said(part, piece, name, frame);
    }
  }

  #said(part: PartSlot, piece: string, name: string, frame: Json.JsonRecord): void {
    if (part.at === undefined) this.#placesPart(part);
    const { at, slot } = part;
    if (at === undefined || slot.message === undefined) return;
    const place = { item_id: slot.message.id, output_index: slot.message.index, content_index: at.index };
    // What tokens a text that was cut is made of is not known.
    const logprobs = "logprobs" in frame && piece !== frame.delta ? { logprobs: [] } : {};
    this.#writer.write(name, { ...frame, type: "response.output_text.delta", ...place, delta: piece, ...logprobs });
  }

  // annotations

  #annotation(part: PartSlot, name: string, frame: Json.JsonRecord): void {
    part.annotated = true;
    const annotation = Json.record(frame.annotation) ?? {};
    const { at, slot } = part;
    if (at === undefined || slot.message === undefined) {
      // What came in front of the seam and says no place is of text that the client has read.
      const waits = this.#gate.joined || Annotations.isPlaced(annotation);
      if (waits && part.waiting.length < annotationsMax) part.waiting.push(frame);
      return;
    }
    const [own] = part.shift === undefined ? [annotation] : Annotations.added(at.annotations, [annotation], part.shift);
    if (own === undefined) return;
    const place = { item_id: slot.message.id, output_index: slot.message.index, content_index: at.index };
    this.#writer.write(name, { ...frame, ...place, annotation_index: at.annotations.length, annotation: own });
  }

  /** What the end of a part tells of annotations that no event has told. */
  #annotates({ annotated, at, shift }: PartSlot, told: Json.JsonRecord): void {
    if (at === undefined || annotated || at.done) return;
    const annotations = Json.list(told.annotations);
    at.annotations.push(...(shift === undefined ? annotations : Annotations.added(at.annotations, annotations, shift)));
  }

  // the end

  #finishes(name: string, frame: Json.JsonRecord): void {
    const response = Json.record(frame.response) ?? {};
    if (frame.type !== "response.failed") {
      this.#rest(Json.list(response.output));
      this.#says(this.#gate.close());
    }
    if (!this.#gate.joined) return;
    this.#finished = true;
    if (frame.type !== "response.failed") {
      this.#closesMessage();
      this.#writer.endReasoning();
      for (const item of this.#writer.wire.items) if (item.type === "message") this.#writer.endMessage(item);
    }
    const isWhole = (slot: Slot) =>
      slot !== this.#joining?.slot && (slot.message === undefined || slot.message !== this.#left.item);
    const told = this.#items.told(Json.list(response.output), isWhole);
    const ending = { wire: this.#writer.wire, told, before: this.#before, cut: this.#gate.cut };
    this.#writer.write(name, { ...frame, response: responseOf(response, ending) });
  }

  /** Items that the final response alone tells: they begin first, because SDKs throw at the end of one that has not. */
  #rest(output: ReadonlyArray<unknown>): void {
    for (const [index, item] of this.#items.untold(output).entries())
      for (const type of ["response.output_item.added", "response.output_item.done"])
        this.#step(type, { type, output_index: `final ${index}`, item });
  }
}
