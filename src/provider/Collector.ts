/**
 * Gathers from the parts of an answer what a continuation needs, and forgets again what a caller had to throw away.
 *
 * Bounded: text is held once and each delta costs one mark, so that everything after an ordinal can be cut off later.
 */
import { callKey } from "../domain/AttemptFacts.ts";
import * as Json from "../domain/Json.ts";
import { anthropicMessages } from "./anthropic/Content.ts";
import { type Change, type Read, running, single } from "./continuation/Reading.ts";
import type { Received, ReceivedItem } from "./continuation/Received.ts";
import { googleGemini } from "./gemini/Content.ts";
import { openAiChat } from "./openai-chat/Content.ts";
import { openAiResponses } from "./openai-responses/Content.ts";
import type { Part, ProtocolId } from "./stream/Protocol.ts";

/** Most that a collector holds, in bytes: two a UTF-16 code unit, and what its marks take. */
export const collectedBytesMax = 64 * 1024 * 1024;

/** What a collector may hold. */
export interface Options {
  /** In bytes; default `collectedBytesMax`. */
  readonly bytesMax?: number;
}

/** Gathers the parts of one answer, also over the attempts that resumed it. */
export interface Collector {
  /**
   * Takes a part that was handed over.
   *
   * @param attempt the attempt's number
   * @param ordinal the part's ordinal in it, from 1
   */
  readonly take: (attempt: number, ordinal: number, part: Part) => void;
  /** Forgets what came after an ordinal of an attempt, as `AttemptDiscarded` says; 0 forgets all of it. */
  readonly discard: (attempt: number, keepThrough: number) => void;
  /** What is kept by now: plain JSON. */
  readonly received: () => Received;
}

/** Makes a collector for one answer. */
export const make = (protocol: ProtocolId, options: Options = {}): Collector => new SlotCollector(protocol, options);

const readers: Record<ProtocolId, (part: Part) => Read> = {
  "openai-chat": openAiChat,
  "openai-responses": openAiResponses,
  "anthropic-messages": anthropicMessages,
  "google-gemini": googleGemini,
};

/** When something was taken. */
interface Moment {
  readonly attempt: number;
  readonly ordinal: number;
}

/** A text that grows: `ends` holds, for every delta, attempt, ordinal and the length after it. */
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

/** What a slot and a mark take beside their text, in bytes. */
const slotBytes = 128;
const markBytes = 24;

class SlotCollector implements Collector {
  readonly #protocol: ProtocolId;
  readonly #bytesMax: number;
  /** In the order in which they began. */
  #slots: Array<Slot> = [];
  readonly #byKey = new Map<string, Slot>();
  readonly #choices = new Set<number>();
  #bytes = 0;
  #overflow = false;
  /** When the terminal marker came. */
  #whole: Moment | undefined;
  /** The last part says that a clean end behind it is the marker. */
  #atEnd: Moment | undefined;

  constructor(protocol: ProtocolId, options: Options) {
    this.#protocol = protocol;
    this.#bytesMax = options.bytesMax ?? collectedBytesMax;
  }

  readonly take = (attempt: number, ordinal: number, part: Part): void => {
    if (this.#overflow) return;
    const moment = { attempt, ordinal };
    this.#signals(moment, part);
    const { changes, choices } = readers[this.#protocol](part);
    const { failure, keep_alive, shows, terminal, terminal_at_end } = part.observation;
    if (terminal && (failure === undefined || failure.kind === "invalid_tool_input")) this.#whole ??= moment;
    if (!keep_alive) this.#atEnd = terminal_at_end === true ? moment : undefined;
    for (const choice of choices) this.#choices.add(choice);
    // The decoder says what is shown: a text that it does not count is a repetition.
    for (const change of changes) if (shows === "text" || !appendsText(change)) this.#change(moment, change);
    if (shows === "text" && !changes.some(isTold))
      this.#change(moment, { op: "close", key: single, type: "text", json: { untold: true } });
    if (this.#bytes <= this.#bytesMax) return;
    this.#overflow = true;
    this.#slots = [];
    this.#byKey.clear();
  };

  readonly discard = (attempt: number, keepThrough: number): void => {
    const gone = (moment: Moment) => moment.attempt === attempt && moment.ordinal > keepThrough;
    if (this.#whole !== undefined && gone(this.#whole)) this.#whole = undefined;
    if (this.#atEnd !== undefined && gone(this.#atEnd)) this.#atEnd = undefined;
    this.#slots = this.#slots.filter((slot) => !gone(slot));
    for (const [key, slot] of this.#byKey) if (gone(slot)) this.#byKey.delete(key);
    for (const slot of this.#slots) {
      if (slot.closed !== undefined && gone(slot.closed)) slot.closed = undefined;
      const at = slot.sets.findIndex(gone);
      if (at !== -1) slot.sets.length = at;
      for (const text of slot.texts.values()) truncate(text, attempt, keepThrough);
    }
  };

  readonly received = (): Received => ({
    protocol: this.#protocol,
    items: this.#slots.map(itemOf),
    choices: this.#choices.size,
    ...(this.#whole === undefined && this.#atEnd === undefined ? {} : { whole: true }),
    overflow: this.#overflow,
  });

  /** Calls of the caller's own tools: the decoder says what they are. */
  #signals(moment: Moment, { observation }: Part): void {
    for (const signal of observation.calls) {
      if (signal.executor !== "runtime") continue;
      const key = callKey(signal.choice, signal.ordinal);
      const slotKey = `call ${key}`;
      const named = {
        ...(signal.id === undefined ? {} : { id: signal.id }),
        ...(signal.tool === undefined ? {} : { name: signal.tool }),
      };
      this.#change(moment, { op: "open", key: slotKey, type: "call", call: key, json: named });
      if (signal.phase === "ready")
        this.#change(moment, { op: "close", key: slotKey, json: { ...named, input: signal.input ?? "" } });
    }
  }

  #change(moment: Moment, change: Change): void {
    // Calls of a resumed attempt are counted anew.
    const key = change.key.startsWith("call ") ? `${moment.attempt} ${change.key}` : change.key;
    const slot = this.#find(key, change) ?? this.#open(moment, key, change);
    if (slot === undefined) return;
    if (change.op === "append") this.#append(moment, slot, change.field, change.text);
    else if (change.json !== undefined) this.#set(moment, slot, change.json);
    if (change.op === "close") slot.closed ??= moment;
  }

  #find(key: string, change: Change): Slot | undefined {
    if (key === single) return undefined;
    const slot = this.#byKey.get(key);
    // A text without a name ends where something else begins.
    if (key === running) return slot === this.#slots.at(-1) ? slot : undefined;
    // A server that skips the events around its items goes on under one key with something else.
    if (slot !== undefined && slot.call === undefined && change.type !== undefined && change.type !== slot.type)
      return undefined;
    // Servers that number every block 0 begin the next one where the one before it has ended.
    return change.op === "open" && slot?.closed !== undefined && slot.call === undefined ? undefined : slot;
  }

  #open(moment: Moment, key: string, change: Change): Slot | undefined {
    if (change.type === undefined) return undefined;
    const call = change.op === "open" ? change.call : undefined;
    const slot: Slot = { ...moment, type: change.type, call, texts: new Map(), sets: [], closed: undefined };
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

const appendsText = (change: Change): boolean => change.op === "append" && change.type === "text";

/** Whether a change holds something of what a part shows, so that a request can hold it too. */
const isTold = (change: Change): boolean =>
  change.type === undefined
    ? change.op === "set"
    : change.type === "text" || change.type === "hosted" || change.type === "result";

/**
 * The visible text of a part, in every spelling of its protocol: what its characters count. Empty for a part that shows none.
 *
 * @param part of one of the four protocols
 */
export const textOf = (part: Part): string =>
  part.observation.shows === "text" && part.observation.characters > 0
    ? readers[part.protocol](part).changes.map(shownBy).join("")
    : "";

const shownBy = (change: Change): string => {
  if (change.op === "append") return change.type === "text" ? change.text : "";
  if (change.op !== "close" || change.key !== single || change.type !== "text") return "";
  const { text, thought } = Json.record(change.json) ?? {};
  return thought === true ? "" : Json.string(text);
};

/** Cuts a text before the first piece that came after an ordinal of an attempt. */
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
      // Lists that come piece by piece (citations) grow; everything else is said anew.
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
