/**
 * Follows the part of a response that was sent to the client: its items and texts, which of them are open, and the next free output index
 * and sequence number.
 *
 * It reads the events of the first attempt and those of a splice (a continuation that was joined to the response) in the same way. So a
 * further continuation can join either, and the final response can list the items of both.
 */
import * as Json from "../../domain/Json.ts";
import type { ShownResponse } from "../../seam/ShownText.ts";
import { ShownText } from "../../seam/ShownText.ts";
import { shownCharactersMax } from "../../seam/TextSeam.ts";
import * as ResponsesItem from "./Item.ts";
import { itemsMax, keyOf } from "./Slots.ts";

/** Maximum size of the items other than messages that are held for the final response, as JSON, in UTF-16 code units. */
export const itemCharactersMax = 1024 * 1024;

/** Maximum text of a continuation, in UTF-16 code units, because the final response repeats all of it. */
export const joinedCharactersMax = 1024 * 1024;

/** Maximum remembered annotations of a content part. */
export const annotationsMax = 4096;

/** A content part of a message. */
export interface ShownPart {
  readonly index: unknown;
  /** The part as it began, with an empty text. */
  readonly json: Json.JsonRecord;
  text: string;
  annotations: Array<unknown>;
  /** True after its `content_part.added` (`begun`), `output_text.done` (`said`) or `content_part.done` (`done`) has come. */
  begun: boolean;
  said: boolean;
  done: boolean;
}

/** An output item. */
export interface ShownItem {
  readonly index: unknown;
  readonly id: unknown;
  readonly type: string;
  json: Json.JsonRecord;
  readonly parts: Map<string, ShownPart>;
  done: boolean;
}

const noHead: Json.JsonRecord = {};

const begin = () => ({
  /** The id and creation time from the first lifecycle event. */
  head: noHead,
  /** The number of the last event; -1 if the server does not number events. */
  number: -1,
  items: [] as ShownItem[],
  byKey: new Map<string, ShownItem>(),
  reasoned: 0,
  held: 0,
  hostsXSearch: false,
  finished: false,
});

/** The part of one response that was sent to the client. */
export class Shown {
  readonly text = new ShownText();
  readonly #it = begin();
  readonly #charactersMax: number;

  constructor(charactersMax = shownCharactersMax) {
    this.#charactersMax = charactersMax;
  }

  /** A copy of the items, for a writer whose events were not sent yet. */
  copy(): Shown {
    const copy = new Shown(joinedCharactersMax);
    Object.assign(copy.#it, structuredClone(this.#it));
    return copy;
  }

  get head(): Json.JsonRecord {
    return this.#it.head;
  }

  /** The number of the next event; undefined if the server does not number events. */
  get nextNumber(): number | undefined {
    return this.#it.number < 0 ? undefined : this.#it.number + 1;
  }

  get items(): ReadonlyArray<ShownItem> {
    return this.#it.items;
  }

  get lastItem(): ShownItem | undefined {
    return this.#it.items.at(-1);
  }

  /** The index of the next item. If a server numbers every item 0, items are counted in order. */
  get nextIndex(): number {
    return this.#it.items.reduce(
      (next, { index }) => Math.max(next, (Json.natural(index) ?? -1) + 1),
      this.#it.items.length,
    );
  }

  get hostsXSearch(): boolean {
    return this.#it.hostsXSearch;
  }

  /** Length of the text and reasoning that were sent, in UTF-16 code units. */
  get produced(): number {
    return this.text.characters + this.#it.reasoned;
  }

  itemOf(frame: Json.JsonRecord): ShownItem | undefined {
    return this.#it.byKey.get(String(keyOf(frame)));
  }

  response(): ShownResponse {
    const shown = this.text.response();
    return { ...shown, refusal: shown.refusal ?? this.#refusal() };
  }

  apply(json: unknown, event = "message"): void {
    const record = Json.record(json);
    if (record === undefined || this.#it.finished) return;
    // Some servers put the type in the `event:` line only.
    const frame = record.type === undefined && event !== "message" ? { ...record, type: event } : record;
    const number = Json.natural(frame.sequence_number);
    if (number !== undefined) this.#it.number = Math.max(this.#it.number, number);
    const type = Json.string(frame.type);
    const response = Json.record(frame.response);
    if (response !== undefined) this.#onLifecycle(type, response);
    else if (type === "response.output_item.added") this.#beginItem(frame, Json.record(frame.item) ?? {});
    else if (type === "response.output_item.done") this.#endItem(frame, Json.record(frame.item) ?? {});
    else if (type.startsWith("response.reasoning")) this.#addReasoning(frame);
    else if (type.startsWith("response.refusal.")) this.text.refuse("refusal_shown");
    else if (/^response\.(?:output_)?audio/.test(type)) this.text.refuse("not_text_last");
    else this.#onInside(type, frame);
  }

  #refusal(): ShownResponse["refusal"] {
    if (this.#it.held > itemCharactersMax) return "too_long";
    const last = this.lastItem;
    const isOver = last !== undefined && last.type !== "message" && this.text.characters > 0;
    if (isOver || this.#it.finished || this.#it.items.length >= itemsMax) return "not_text_last";
    // A provider's call that was cut or waits for its result cannot be sent back to the provider.
    return this.#it.items.some((item) => item.type !== "message" && !this.#isWhole(item)) ? "not_text_last" : undefined;
  }

  /** True if an item is complete. Open reasoning also counts as complete, because some servers end it after the text that it produced. */
  #isWhole({ done, json, type }: ShownItem): boolean {
    if (type === "reasoning") return true;
    if (!done) return false;
    const read = ResponsesItem.read(json, this.#it.hostsXSearch);
    if (read.role !== "call" || read.settledBy === "item") return true;
    return this.#it.items.some((other) => other.json !== json && other.done && other.json.call_id === json.call_id);
  }

  #onLifecycle(type: string, response: Json.JsonRecord): void {
    if (Object.keys(this.#it.head).length === 0) this.#it.head = { id: response.id, created_at: response.created_at };
    this.#it.hostsXSearch ||= Json.list(response.tools).some((tool) => Json.record(tool)?.type === "x_search");
    this.#it.finished = !/\.(?:created|queued|in_progress)$/.test(type);
  }

  #beginItem(frame: Json.JsonRecord, item: Json.JsonRecord): ShownItem {
    const type = Json.string(item.type);
    const before = this.itemOf(frame);
    if (before !== undefined && !before.done && before.type === type) return before;
    const index = frame.output_index;
    const begun: ShownItem = { index, id: item.id, type, json: item, parts: new Map(), done: false };
    if (this.#it.items.length < itemsMax) this.#it.items.push(begun);
    this.#it.byKey.set(String(keyOf(frame)), begun);
    if (type === "message") this.#onWholeItem(begun, item);
    else {
      // An item other than text ends the text run at its start, because some servers end their reasoning after the text.
      this.text.endRun();
      this.#recordCall(item);
    }
    return begun;
  }

  #endItem(frame: Json.JsonRecord, item: Json.JsonRecord): void {
    const ended = this.#beginItem(frame, item);
    if (ended.done) return;
    ended.done = true;
    ended.json = item;
    if (ended.type === "message") this.#onWholeItem(ended, item);
    else {
      ended.parts.clear();
      this.#recordCall(item);
      this.#it.held += JSON.stringify(item).length;
      if (this.#it.held > itemCharactersMax) ended.json = { id: item.id, type: item.type };
    }
  }

  #onWholeItem(item: ShownItem, json: Json.JsonRecord): void {
    for (const [index, value] of Json.list(json.content).entries())
      this.#onWholePart(item, index, Json.record(value) ?? {});
  }

  #onWholePart(item: ShownItem, index: unknown, json: Json.JsonRecord): ShownPart | undefined {
    if (json.type === "refusal") this.text.refuse("refusal_shown");
    if (json.type !== "output_text" && json.type !== "text") {
      if (json.type !== "refusal" && json.type !== undefined) this.text.refuse("not_text_last");
      return undefined;
    }
    const part = this.#openPart(item, index, json);
    if (part.text === "") this.#addText(part, Json.string(json.text));
    const annotations = Json.list(json.annotations);
    if (annotations.length > 0) part.annotations = annotations.slice(0, annotationsMax);
    return part;
  }

  #recordCall(item: Json.JsonRecord): void {
    const read = ResponsesItem.read(item, this.#it.hostsXSearch);
    if (read.role !== "call") return;
    if (read.executor === "runtime" || read.picture) this.text.refuse("not_text_last");
  }

  #addReasoning(frame: Json.JsonRecord): void {
    const item = this.itemOf(frame) ?? this.#beginItem(frame, { type: "reasoning", id: frame.item_id });
    if (item.type !== "reasoning") return;
    const text = Json.string(frame.delta);
    this.#it.reasoned += text.length;
    if (frame.type !== "response.reasoning_text.delta" || this.#it.held + text.length > itemCharactersMax) return;
    this.#it.held += text.length;
    this.#openPart(item, frame.content_index, { type: "reasoning_text" }).text += text;
  }

  #onInside(type: string, frame: Json.JsonRecord): void {
    if (frame.output_index === undefined && frame.item_id === undefined) return;
    const part = Json.record(frame.part);
    const texts = type.startsWith("response.output_text.") || type.startsWith("response.content_part.");
    if (Json.string(part?.type).startsWith("reasoning")) return;
    const known = this.itemOf(frame);
    // The server omitted the start of the item.
    const item = known ?? this.#beginItem(frame, { type: texts ? "message" : "unknown", id: frame.item_id });
    if (!texts) return;
    const { content_index: index } = frame;
    switch (type) {
      case "response.output_text.delta":
        this.#addText(this.#openPart(item, index), Json.string(frame.delta));
        return;
      case "response.output_text.annotation.added": {
        const grown = this.#openPart(item, index);
        if (grown.annotations.length < annotationsMax) grown.annotations.push(frame.annotation);
        return;
      }
      case "response.output_text.done": {
        const said = this.#onWholePart(item, index, { type: "output_text", text: frame.text });
        if (said !== undefined) said.said = true;
        return;
      }
      case "response.content_part.added":
      case "response.content_part.done": {
        const whole = this.#onWholePart(item, index, part ?? {});
        if (whole === undefined) return;
        whole.begun = true;
        if (type === "response.content_part.done") whole.done = true;
      }
    }
  }

  #openPart(item: ShownItem, index: unknown, json: Json.JsonRecord = { type: "output_text" }): ShownPart {
    const key = String(index ?? 0);
    const known = item.parts.get(key);
    if (known !== undefined) return known;
    const { annotations, logprobs, text: _text, ...bare } = json;
    // A list that the server omits is not added.
    const lists = {
      ...(annotations === undefined ? {} : { annotations: [] }),
      ...(logprobs === undefined ? {} : { logprobs: [] }),
    };
    const part = {
      index,
      json: { ...bare, ...lists },
      text: "",
      annotations: [],
      begun: false,
      said: false,
      done: false,
    };
    item.parts.set(key, part);
    return part;
  }

  #addText(part: ShownPart, text: string): void {
    this.text.say(text);
    // A response with more than `#charactersMax` of text is not continued, so further text is not kept.
    if (this.text.characters <= this.#charactersMax) part.text += text;
  }
}
