/**
 * Follows what has left of a response: its items and their texts, which of them are open, which numbers are free.
 *
 * It reads the events of the first attempt and those that a splice wrote alike, so that a further continuation joins either, and
 * so that the final response can name all items of both.
 */
import * as Json from "../../domain/Json.ts";
import { type ShownResponse, shownCharactersMax } from "../seam/Splice.ts";
import * as ResponsesItem from "./Item.ts";
import { itemsMax, keyOf } from "./Slots.ts";

/** Longest items beside the messages that are held for the final response, as JSON, in UTF-16 code units. */
export const itemCharactersMax = 1024 * 1024;

/** Most annotations of a text that are remembered. */
export const annotationsMax = 4096;

/** A content part of a message. */
export interface ShownPart {
  readonly index: unknown;
  /** As it began; its text is empty. */
  readonly json: Json.JsonRecord;
  text: string;
  annotations: Array<unknown>;
  /** Its `content_part.added` has come, its `output_text.done`, its `content_part.done`. */
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

/** What has left of one response. */
export class Shown {
  /** What the first lifecycle event says of the response. */
  #head: Json.JsonRecord = {};
  #number: number | undefined;
  #items: Array<ShownItem> = [];
  #byKey = new Map<string, ShownItem>();
  #run = "";
  #characters = 0;
  #reasoned = 0;
  #held = 0;
  #hostsXSearch = false;
  #refused = false;
  #media = false;
  #called = false;
  #finished = false;

  /** The same state for somebody who writes on without its having left. */
  copy(): Shown {
    const copy = new Shown();
    copy.#head = this.#head;
    copy.#number = this.#number;
    const copies = new Map(
      this.#items.map((item) => {
        const parts = new Map(
          [...item.parts].map(([key, part]) => [key, { ...part, annotations: [...part.annotations] }]),
        );
        return [item, { ...item, parts }];
      }),
    );
    copy.#items = [...copies.values()];
    for (const [key, item] of this.#byKey) copy.#byKey.set(key, copies.get(item) ?? item);
    copy.#run = this.#run;
    copy.#characters = this.#characters;
    copy.#reasoned = this.#reasoned;
    copy.#held = this.#held;
    copy.#hostsXSearch = this.#hostsXSearch;
    copy.#refused = this.#refused;
    copy.#media = this.#media;
    copy.#called = this.#called;
    copy.#finished = this.#finished;
    return copy;
  }

  get head(): Json.JsonRecord {
    return this.#head;
  }

  /** The number of the next event; undefined where the server numbers none. */
  get nextNumber(): number | undefined {
    return this.#number === undefined ? undefined : this.#number + 1;
  }

  get items(): ReadonlyArray<ShownItem> {
    return this.#items;
  }

  get lastItem(): ShownItem | undefined {
    return this.#items.at(-1);
  }

  /** The index that the next item gets. Servers that number every item 0 are read by their order. */
  get nextIndex(): number {
    return this.#items.reduce((next, { index }) => Math.max(next, (Json.natural(index) ?? -1) + 1), this.#items.length);
  }

  get hostsXSearch(): boolean {
    return this.#hostsXSearch;
  }

  /** Text and reasoning that have left, in UTF-16 code units. */
  get produced(): number {
    return this.#characters + this.#reasoned;
  }

  /** An item by the index and id that its events have. */
  itemOf(frame: Json.JsonRecord): ShownItem | undefined {
    return this.#byKey.get(String(keyOf(frame)));
  }

  response(): ShownResponse {
    return { run: this.#run, characters: this.#characters, refusal: this.#refusal() };
  }

  /** Takes an event that leaves. */
  apply(json: unknown, event = "message"): void {
    const record = Json.record(json);
    if (record === undefined || this.#finished) return;
    // Some servers say the type in the `event:` line alone.
    const frame = record.type === undefined && event !== "message" ? { ...record, type: event } : record;
    const number = Json.natural(frame.sequence_number);
    if (number !== undefined) this.#number = Math.max(this.#number ?? 0, number);
    const type = Json.string(frame.type);
    const response = Json.record(frame.response);
    if (response !== undefined) this.#lifecycle(type, response);
    else if (type === "response.output_item.added") this.#begins(frame, Json.record(frame.item) ?? {});
    else if (type === "response.output_item.done") this.#ends(frame, Json.record(frame.item) ?? {});
    else if (type.startsWith("response.reasoning")) this.#reasons(frame);
    else if (type.startsWith("response.refusal.")) this.#refused = true;
    else if (/^response\.(?:output_)?audio/.test(type)) this.#media = true;
    else this.#inside(type, frame);
  }

  #refusal(): ShownResponse["refusal"] {
    if (this.#refused) return "refusal_shown";
    if (this.#characters > shownCharactersMax || this.#held > itemCharactersMax) return "too_long";
    if (this.#media || this.#called || this.#finished || this.#items.length >= itemsMax) return "not_text_last";
    const last = this.lastItem;
    if (last !== undefined && last.type !== "message" && this.#characters > 0) return "not_text_last";
    // A call of the provider's that is cut, or waits for its result, cannot go back to the provider.
    return this.#items.some((item) => item.type !== "message" && !this.#isWhole(item)) ? "not_text_last" : undefined;
  }

  /** Some servers end their reasoning behind the text that came of it, so an open one says nothing. */
  #isWhole({ done, json, type }: ShownItem): boolean {
    if (type === "reasoning") return true;
    if (!done) return false;
    const read = ResponsesItem.read(json, this.#hostsXSearch);
    if (read.role !== "call" || read.settledBy === "item") return true;
    return this.#items.some((other) => other.json !== json && other.done && other.json.call_id === json.call_id);
  }

  #lifecycle(type: string, response: Json.JsonRecord): void {
    if (Object.keys(this.#head).length === 0) this.#head = { id: response.id, created_at: response.created_at };
    this.#hostsXSearch ||= Json.list(response.tools).some((tool) => Json.record(tool)?.type === "x_search");
    this.#finished = !/\.(?:created|queued|in_progress)$/.test(type);
  }

  #begins(frame: Json.JsonRecord, item: Json.JsonRecord): ShownItem {
    const type = Json.string(item.type);
    const before = this.itemOf(frame);
    if (before !== undefined && !before.done && before.type === type) return before;
    const index = frame.output_index;
    const begun: ShownItem = { index, id: item.id, type, json: item, parts: new Map(), done: false };
    if (this.#items.length < itemsMax) this.#items.push(begun);
    this.#byKey.set(String(keyOf(frame)), begun);
    if (type === "message") this.#whole(begun, item);
    else {
      // Something that is no text ends the run of it: where it begins, for some servers end their reasoning behind the text.
      this.#run = "";
      this.#reads(item);
    }
    return begun;
  }

  #ends(frame: Json.JsonRecord, item: Json.JsonRecord): void {
    const ended = this.#begins(frame, item);
    if (ended.done) return;
    ended.done = true;
    ended.json = item;
    if (ended.type === "message") this.#whole(ended, item);
    else {
      ended.parts.clear();
      this.#reads(item);
      this.#held += JSON.stringify(item).length;
      if (this.#held > itemCharactersMax) ended.json = { id: item.id, type: item.type };
    }
  }

  /** The texts of a message that comes whole, as far as they are new. */
  #whole(item: ShownItem, json: Json.JsonRecord): void {
    for (const [index, value] of Json.list(json.content).entries())
      this.#partWhole(item, index, Json.record(value) ?? {});
  }

  #partWhole(item: ShownItem, index: unknown, json: Json.JsonRecord): ShownPart | undefined {
    if (json.type === "refusal") this.#refused = true;
    if (json.type !== "output_text" && json.type !== "text") {
      this.#media ||= json.type !== "refusal" && json.type !== undefined;
      return undefined;
    }
    const part = this.#part(item, index, json);
    if (part.text === "") this.#says(part, Json.string(json.text));
    const annotations = Json.list(json.annotations);
    if (annotations.length > 0) part.annotations = annotations.slice(0, annotationsMax);
    return part;
  }

  #reads(item: Json.JsonRecord): void {
    const read = ResponsesItem.read(item, this.#hostsXSearch);
    if (read.role !== "call") return;
    this.#called ||= read.executor === "runtime";
    this.#media ||= read.picture;
  }

  #reasons(frame: Json.JsonRecord): void {
    const item = this.itemOf(frame) ?? this.#begins(frame, { type: "reasoning", id: frame.item_id });
    if (item.type !== "reasoning") return;
    const text = Json.string(frame.delta);
    this.#reasoned += text.length;
    if (frame.type !== "response.reasoning_text.delta" || this.#held + text.length > itemCharactersMax) return;
    this.#held += text.length;
    this.#part(item, frame.content_index, { type: "reasoning_text" }).text += text;
  }

  #inside(type: string, frame: Json.JsonRecord): void {
    if (frame.output_index === undefined && frame.item_id === undefined) return;
    const part = Json.record(frame.part);
    const texts = type.startsWith("response.output_text.") || type.startsWith("response.content_part.");
    if (Json.string(part?.type).startsWith("reasoning")) return;
    const known = this.itemOf(frame);
    // The server has left the start of the item out.
    const item = known ?? this.#begins(frame, { type: texts ? "message" : "unknown", id: frame.item_id });
    if (!texts) return;
    const { content_index: index } = frame;
    switch (type) {
      case "response.output_text.delta":
        this.#says(this.#part(item, index), Json.string(frame.delta));
        return;
      case "response.output_text.annotation.added": {
        const grown = this.#part(item, index);
        if (grown.annotations.length < annotationsMax) grown.annotations.push(frame.annotation);
        return;
      }
      case "response.output_text.done": {
        const said = this.#partWhole(item, index, { type: "output_text", text: frame.text });
        if (said !== undefined) said.said = true;
        return;
      }
      case "response.content_part.added":
      case "response.content_part.done": {
        const whole = this.#partWhole(item, index, part ?? {});
        if (whole === undefined) return;
        whole.begun = true;
        if (type === "response.content_part.done") whole.done = true;
      }
    }
  }

  #part(item: ShownItem, index: unknown, json: Json.JsonRecord = { type: "output_text" }): ShownPart {
    const key = String(index ?? 0);
    const known = item.parts.get(key);
    if (known !== undefined) return known;
    const { annotations, logprobs, text: _text, ...bare } = json;
    // A server that lists neither is not made to.
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

  #says(part: ShownPart, text: string): void {
    this.#characters += text.length;
    const held = this.#characters <= shownCharactersMax;
    // Longer than that it is not gone on with, and is not held.
    this.#run = held ? this.#run + text : "";
    part.text = held ? part.text + text : part.text;
  }
}
