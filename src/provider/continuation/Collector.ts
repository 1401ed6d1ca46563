/**
 * Collects the items that a continuation needs from the parts of a response. Drops items that the caller had to discard.
 *
 * Memory is bounded: text is held once, and each delta adds only one mark, its position, at which the text can be cut later.
 */
import { callKey } from "../../domain/AttemptFacts.ts";
import { type Content, type ItemPiece, keyOfCall, running, single, textOf as textIn } from "../stream/Content.ts";
import type { Part } from "../stream/Protocol.ts";
import type { ReceivedAnswer, ReceivedItem } from "./Received.ts";

/** Maximum size of a collector, in bytes: two per UTF-16 code unit, plus the size of its marks. */
export const collectedBytesMax = 64 * 1024 * 1024;

/** Limits of a collector. */
export interface Options {
  /** Maximum bytes; default `collectedBytesMax`. */
  readonly bytesMax?: number;
}

/** Collects the parts of one response, across the attempts that resumed it. */
export interface Collector<Id extends string = string> {
  /**
   * Adds a delivered part.
   *
   * @param attempt the attempt's number
   * @param ordinal the part's ordinal in the attempt, from 1
   */
  readonly take: (attempt: number, ordinal: number, part: Part) => void;
  /** Discards everything after an ordinal of an attempt, as `AttemptDiscarded` reports it; 0 discards the whole attempt. */
  readonly discard: (attempt: number, keepThrough: number) => void;
  /** The items kept so far, as plain JSON. */
  readonly received: () => ReceivedAnswer<Id>;
}

/** Creates a collector for one response. */
export const make = <Id extends string>(protocol: Id, options: Options = {}): Collector<Id> =>
  new ItemCollector(protocol, options);

interface Moment {
  readonly attempt: number;
  readonly ordinal: number;
}

/** A growing text. For every delta, `ends` holds the attempt, the ordinal, and the length of the text after the delta. */
interface Text {
  text: string;
  readonly ends: Array<number>;
}

interface Slot extends Moment {
  readonly type: ReceivedItem["type"];
  readonly call: string | undefined;
  readonly texts: Map<string, Text>;
  readonly sets: Array<Moment & { readonly json: object }>;
  closed: Moment | undefined;
}

/** Overhead of a slot (one collected item) and of a mark (the position of one delta), in bytes. */
const slotBytes = 128;
const markBytes = 24;

class ItemCollector<Id extends string> implements Collector<Id> {
  readonly #protocol: Id;
  readonly #bytesMax: number;
  /** The slots, in the order in which they began. */
  #slots: Array<Slot> = [];
  readonly #byKey = new Map<string, Slot>();
  readonly #choices = new Set<number>();
  #bytes = 0;
  #overflow = false;
  #whole: Moment | undefined;
  /** Set if the response is complete when the bytes end cleanly after the last part. */
  #atEnd: Moment | undefined;

  constructor(protocol: Id, options: Options) {
    this.#protocol = protocol;
    this.#bytesMax = options.bytesMax ?? collectedBytesMax;
  }

  readonly take = (attempt: number, ordinal: number, part: Part): void => {
    if (this.#overflow) return;
    const moment = { attempt, ordinal };
    this.#addCalls(moment, part);
    const { failure, keep_alive, shows, terminal, terminal_at_end } = part.observation;
    if (terminal && (failure === undefined || failure.kind === "invalid_tool_input")) this.#whole ??= moment;
    if (!keep_alive) this.#atEnd = terminal_at_end === true ? moment : undefined;
    for (const { choice, item, key, text } of part.content) {
      this.#choices.add(choice);
      if (item !== undefined) this.#addPiece(moment, item.key ?? key, item, text);
    }
    if (shows === "text" && !part.content.some(isSentBack)) this.#addPiece(moment, single, untold, "");
    if (this.#bytes <= this.#bytesMax) return;
    this.#overflow = true;
    this.#slots = [];
    this.#byKey.clear();
  };

  readonly discard = (attempt: number, keepThrough: number): void => {
    const isDiscarded = (moment: Moment) => moment.attempt === attempt && moment.ordinal > keepThrough;
    if (this.#whole !== undefined && isDiscarded(this.#whole)) this.#whole = undefined;
    if (this.#atEnd !== undefined && isDiscarded(this.#atEnd)) this.#atEnd = undefined;
    this.#slots = this.#slots.filter((slot) => !isDiscarded(slot));
    for (const [key, slot] of this.#byKey) if (isDiscarded(slot)) this.#byKey.delete(key);
    for (const slot of this.#slots) {
      if (slot.closed !== undefined && isDiscarded(slot.closed)) slot.closed = undefined;
      const at = slot.sets.findIndex(isDiscarded);
      if (at !== -1) slot.sets.length = at;
      for (const text of slot.texts.values()) truncate(text, attempt, keepThrough);
    }
  };

  readonly received = (): ReceivedAnswer<Id> => ({
    protocol: this.#protocol,
    items: this.#slots.map(itemOf),
    choices: this.#choices.size,
    ...(this.#whole === undefined && this.#atEnd === undefined ? {} : { whole: true }),
    overflow: this.#overflow,
  });

  /** Adds the calls of the caller's own tools, which the decoder reports as signals. */
  #addCalls(moment: Moment, { observation }: Part): void {
    for (const signal of observation.calls) {
      this.#choices.add(signal.choice);
      if (signal.executor !== "runtime") continue;
      const named = {
        ...(signal.id === undefined ? {} : { id: signal.id }),
        ...(signal.tool === undefined ? {} : { name: signal.tool }),
      };
      const ready = signal.phase === "ready";
      const json = ready ? { ...named, input: signal.input ?? "" } : named;
      const slot = this.#slotOf(moment, keyOfCall(signal), { type: "call" }, callKey(signal.choice, signal.ordinal));
      if (slot === undefined) continue;
      this.#set(moment, slot, json);
      if (ready) slot.closed ??= moment;
    }
  }

  #addPiece(moment: Moment, key: string, piece: ItemPiece, text: string): void {
    const slot = this.#slotOf(moment, key, piece);
    if (slot === undefined) return;
    if (piece.json !== undefined) this.#set(moment, slot, piece.json);
    if (piece.field !== undefined) this.#append(moment, slot, piece.field, text);
    for (const field in piece.texts) this.#append(moment, slot, field, piece.texts[field] ?? "");
    if (piece.phase === "ends") slot.closed ??= moment;
  }

  /** Returns the slot that a piece belongs to, or a new slot if the piece begins an item. */
  #slotOf(moment: Moment, key: string, piece: ItemPiece, call?: string): Slot | undefined {
    // A resumed attempt numbers its calls from the start again, so the key includes the attempt.
    const own = key.startsWith("call ") ? `${moment.attempt} ${key}` : key;
    return this.#find(own, piece) ?? this.#open(moment, own, piece.type, call);
  }

  #find(key: string, { phase, type }: ItemPiece): Slot | undefined {
    if (key === single) return undefined;
    const slot = this.#byKey.get(key);
    // Text without a key ends when another item begins.
    if (key === running) return slot === this.#slots.at(-1) ? slot : undefined;
    // If a server skips the events that open its items, an item of another type may arrive under the same key.
    if (slot !== undefined && slot.call === undefined && type !== undefined && type !== slot.type) return undefined;
    // If a server numbers every block 0, the next block begins under the same key after the previous block has ended.
    return phase === "begins" && slot?.closed !== undefined && slot.call === undefined ? undefined : slot;
  }

  #open(moment: Moment, key: string, type: ReceivedItem["type"] | undefined, call?: string): Slot | undefined {
    if (type === undefined) return undefined;
    const slot: Slot = { ...moment, type, call, texts: new Map(), sets: [], closed: undefined };
    this.#slots.push(slot);
    this.#byKey.set(key, slot);
    this.#bytes += slotBytes;
    return slot;
  }

  #append(moment: Moment, slot: Slot, field: string, piece: string): void {
    if (piece === "") return;
    const text = slot.texts.get(field) ?? { text: "", ends: [] };
    text.text += piece;
    text.ends.push(moment.attempt, moment.ordinal, text.text.length);
    slot.texts.set(field, text);
    this.#bytes += 2 * piece.length + markBytes;
  }

  #set(moment: Moment, slot: Slot, json: object): void {
    if (Object.keys(json).length === 0) return;
    slot.sets.push({ ...moment, json });
    this.#bytes += 2 * JSON.stringify(json).length + markBytes;
  }
}

/** Stands for shown content that no request can carry. */
const untold: ItemPiece = { type: "text", phase: "ends", json: { untold: true } };

/** True if any shown content of a part is sent back to the provider. */
const isSentBack = ({ item }: Content): boolean => {
  if (item === undefined) return false;
  return item.type === undefined
    ? item.json !== undefined
    : item.type === "text" || item.type === "hosted" || item.type === "result";
};

/** Returns the visible text of a part, as `characters` counts it. Empty if the part shows none. */
export const textOf = (part: Part): string => textIn(part.content);

/** Cuts text before the first piece after an ordinal of an attempt. */
const truncate = (text: Text, attempt: number, keepThrough: number): void => {
  for (let at = 0; at < text.ends.length; at += 3) {
    if (text.ends[at] !== attempt || (text.ends[at + 1] ?? 0) <= keepThrough) continue;
    text.text = text.text.slice(0, at === 0 ? 0 : text.ends[at - 1]);
    text.ends.length = at;
    return;
  }
};

const itemOf = (slot: Slot): ReceivedItem => {
  const json: Record<string, unknown> = {};
  const citations: Array<unknown> = [];
  for (const set of slot.sets) {
    for (const [name, value] of Object.entries(set.json)) {
      // Citations arrive in pieces, so they are appended. Every other field is replaced.
      if (name === "citations" && Array.isArray(value)) {
        citations.push(...value);
        json[name] = citations;
      } else json[name] = value;
    }
  }
  for (const [field, { text }] of slot.texts) if (text !== "") json[field] = text;
  return {
    type: slot.type,
    whole: slot.closed !== undefined,
    attempt: slot.attempt,
    ...(slot.call === undefined ? {} : { call: slot.call }),
    json,
  };
};
