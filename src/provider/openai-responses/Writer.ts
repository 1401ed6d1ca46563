/** Writes the events of a joined response: continues their sequence numbers, places items, and closes open items. */
import * as Json from "../../domain/Json.ts";
import { JoinedUsage } from "../seam/JoinedUsage.ts";
import type { SplicedEvent } from "../seam/Splice.ts";
import type { Shown, ShownItem, ShownPart } from "./Shown.ts";

/** The place of an item in the client's response. */
export interface Place {
  readonly index: unknown;
  readonly id: unknown;
}

/** Writes events that follow those that were already sent. */
export class Writer {
  /** The client's view of the response once everything that was written has been sent. */
  readonly wire: Shown;
  #written: Array<SplicedEvent> = [];

  constructor(shown: Shown) {
    this.wire = shown.copy();
  }

  /** Returns and removes the events written since the last call. */
  takeEvents(): ReadonlyArray<SplicedEvent> {
    const written = this.#written;
    this.#written = [];
    return written;
  }

  write(event: string, frame: Json.JsonRecord): void {
    const { sequence_number: _own, ...bare } = frame;
    const number = this.wire.nextNumber;
    const json = number === undefined ? bare : { ...bare, sequence_number: number };
    this.wire.apply(json);
    this.#written.push({ event, json });
  }

  /**
   * Returns the place of a new item. The item may get a new id, because servers that count their ids from 0 repeat those of the first
   * response.
   */
  placeOf(id: unknown): Place {
    const taken = new Set(this.wire.items.map((item) => item.id));
    let own = id;
    for (let count = 2; typeof id === "string" && taken.has(own); count += 1) own = `${id}_${count}`;
    return { index: this.wire.nextIndex, id: own };
  }

  beginMessage(event: string, frame: Json.JsonRecord, item: Json.JsonRecord): ShownItem | undefined {
    const { id, index } = this.placeOf(item.id);
    const type = "response.output_item.added";
    this.write(event, { ...frame, type, output_index: index, item: { ...item, id, content: [] } });
    return this.wire.lastItem;
  }

  beginPart(item: ShownItem, json: Json.JsonRecord): ShownPart | undefined {
    const content_index = item.parts.size;
    const lists = { ...(json.annotations === undefined ? {} : { annotations: [] }) };
    const part = { ...json, ...lists, text: "" };
    const type = "response.content_part.added";
    this.write(type, { type, item_id: item.id, output_index: item.index, content_index, part });
    return item.parts.get(String(content_index));
  }

  sayPart(item: ShownItem, part: ShownPart, frame: Json.JsonRecord = {}): void {
    if (part.said) return;
    const type = "response.output_text.done";
    const whole = "logprobs" in frame ? { logprobs: [] } : {};
    const at = { item_id: item.id, output_index: item.index, content_index: part.index };
    this.write(type, { ...frame, ...whole, type, ...at, text: part.text });
  }

  endPart(item: ShownItem, part: ShownPart, frame: Json.JsonRecord = {}): void {
    if (part.done) return;
    const type = "response.content_part.done";
    const at = { item_id: item.id, output_index: item.index, content_index: part.index };
    this.write(type, { ...frame, type, ...at, part: partJson(part) });
  }

  /** Closes every open part of a message. A part whose start the server never sent is not ended either. */
  endParts(item: ShownItem): void {
    for (const part of item.parts.values()) {
      if (!part.begun || part.done) continue;
      this.sayPart(item, part);
      this.endPart(item, part);
    }
  }

  reasoning(item: Json.JsonRecord): void {
    for (const event of reasoningEvents(item, this.placeOf(item.id))) this.write(Json.string(event.type), event);
  }

  /** Closes reasoning that was still open at the break. */
  endReasoning(): void {
    for (const item of this.wire.items) {
      if (item.type !== "reasoning" || item.done) continue;
      const { content: _content, id: _id, ...json } = item.json;
      const whole = item.parts.size === 0 ? { ...json, id: item.id } : messageJson(item, {});
      const type = "response.output_item.done";
      this.write(type, { type, output_index: item.index, item: whole });
    }
  }

  /** Closes a message and everything open in it. */
  endMessage(
    item: ShownItem,
    json: Json.JsonRecord = {},
    event = "response.output_item.done",
    frame: Json.JsonRecord = {},
  ): void {
    if (item.done) return;
    this.endParts(item);
    const whole = messageJson(item, { status: "completed", ...json });
    this.write(event, { ...frame, type: "response.output_item.done", output_index: item.index, item: whole });
  }
}

const partJson = ({ annotations, json, text }: ShownPart): Json.JsonRecord => ({
  ...json,
  ...(annotations.length === 0 ? {} : { annotations }),
  text,
});

const messageJson = (item: ShownItem, json: Json.JsonRecord): Json.JsonRecord => ({
  ...item.json,
  ...json,
  id: item.id,
  content: [...item.parts.values()].map(partJson),
});

// reasoning

/** Returns the events that write a complete reasoning item at a new place in the response. The events have no numbers yet. */
const reasoningEvents = (item: Json.JsonRecord, { id, index }: Place): ReadonlyArray<Json.JsonRecord> => {
  const whole = { ...item, id };
  const { content, encrypted_content: _sealed, ...own } = item;
  const at = { item_id: id, output_index: index };
  const begun = { ...own, id, summary: [], ...(content === undefined ? {} : { content: [] }) };
  return [
    { type: "response.output_item.added", output_index: index, item: begun },
    ...textsOf(item.summary).flatMap(({ part, text }, summary_index) => [
      { type: "response.reasoning_summary_part.added", ...at, summary_index, part: { ...part, text: "" } },
      { type: "response.reasoning_summary_text.delta", ...at, summary_index, delta: text },
      { type: "response.reasoning_summary_text.done", ...at, summary_index, text },
      { type: "response.reasoning_summary_part.done", ...at, summary_index, part },
    ]),
    ...textsOf(content).flatMap(({ part, text }, content_index) => [
      { type: "response.content_part.added", ...at, content_index, part: { ...part, text: "" } },
      { type: "response.reasoning_text.delta", ...at, content_index, delta: text },
      { type: "response.reasoning_text.done", ...at, content_index, text },
      { type: "response.content_part.done", ...at, content_index, part },
    ]),
    { type: "response.output_item.done", output_index: index, item: whole },
  ];
};

const textsOf = (parts: unknown): ReadonlyArray<{ readonly part: Json.JsonRecord; readonly text: string }> =>
  Json.list(parts).map((value) => {
    const part = Json.record(value) ?? {};
    return { part, text: Json.string(part.text) };
  });

// the end

/** The state of a joined response at its end. */
export interface Ending {
  readonly wire: Shown;
  /** The items that the continuation's own final response lists, by the id that the client knows. */
  readonly told: ReadonlyMap<unknown, Json.JsonRecord>;
  /** Text and reasoning that were sent before the seam, and text of the continuation before the seam, in UTF-16 code units. */
  readonly before: number;
  readonly cut: number;
}

/** Returns the response for the last event. */
export const responseOf = (response: Json.JsonRecord, ending: Ending): Json.JsonRecord => {
  const { created_at, id } = ending.wire.head;
  const output = ending.wire.items.map((item) => ending.told.get(item.id) ?? itemJson(item));
  return {
    ...response,
    ...(id === undefined ? {} : { id }),
    ...(created_at === undefined ? {} : { created_at }),
    output,
    // Some servers always send this field empty.
    ...(Json.string(response.output_text) === "" ? {} : { output_text: textOf(output) }),
    ...(Json.record(response.usage) === undefined ? {} : { usage: usageOf(response.usage, ending) }),
  };
};

const itemJson = (item: ShownItem): Json.JsonRecord =>
  item.type === "message" && !item.done ? messageJson(item, {}) : item.json;

const textOf = (output: ReadonlyArray<Json.JsonRecord>): string =>
  output
    .flatMap((item) => Json.list(item.content).map(Json.record))
    .map((part) => (part?.type === "output_text" ? Json.string(part.text) : ""))
    .join("");

const usage = new JoinedUsage({
  input: ["input_tokens"],
  output: ["output_tokens"],
  total: "total_tokens",
  ofInput: ["input_tokens_details"],
  summed: ["output_tokens_details"],
});

/**
 * Returns the usage of the whole response. A broken response reported no usage, so the usage is estimated from the text and reasoning that
 * were sent.
 */
const usageOf = (told: unknown, { before, cut }: Ending): Json.JsonRecord =>
  usage.join({ told: undefined, since: before }, Json.record(told) ?? {}, cut);
