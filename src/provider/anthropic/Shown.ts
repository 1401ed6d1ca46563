/**
 * Follows what has left of an Anthropic message: which block is open, which index is free, what was said.
 *
 * It reads the events of the first attempt and those that a splice wrote alike, so that a further continuation joins either.
 */
import * as Json from "../../domain/Json.ts";
import { type ShownResponse, shownCharactersMax } from "../seam/Splice.ts";
import { reason as reasonOf } from "../stream/Payload.ts";

/** Most citations of a block, and open blocks and hosted calls of a message, that are remembered. */
const rememberedMax = 1024;

/** A block that has begun and not ended. */
interface OpenBlock {
  /** As the server wrote it. */
  readonly index: unknown;
  readonly type: string;
  /** Its citations as text, so that none is told twice. */
  readonly citations: Set<string>;
  /** Some text of it has come. */
  spoken: boolean;
}

/** What of its cost a message has told so far. */
export interface ToldUsage {
  /** The fields of the input, where one of them is more than nothing. */
  readonly input: Json.JsonRecord | undefined;
  readonly output: number;
}

/** The fields of a usage that say what the input cost. */
export const inputFields = [
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "cache_creation",
] as const;

/** An event with its type, which some servers say in the `event:` line alone. */
export const typed = (frame: Json.JsonRecord, event = "message"): Json.JsonRecord =>
  typeof frame.type === "string" || event === "message" ? frame : { ...frame, type: event };

/** The type of an event; of one that says it nowhere its members tell it. */
export const typeOf = (frame: Json.JsonRecord): string => {
  if (typeof frame.type === "string") return frame.type;
  if (frame.message !== undefined) return "message_start";
  if (frame.content_block !== undefined) return "content_block_start";
  const delta = Json.record(frame.delta);
  if (delta !== undefined) return delta.type === undefined ? "message_delta" : "content_block_delta";
  return frame.index === undefined ? "" : "content_block_stop";
};

/** What has left of one message. */
export class Shown {
  #run = "";
  #characters = 0;
  #thought = 0;
  /** By their index as text, the latest last. */
  #open = new Map<string, OpenBlock>();
  #begun = 0;
  #next = 0;
  #usage: ToldUsage = { input: undefined, output: 0 };
  #called = false;
  #hosted = new Set<string>();
  #finish = "";
  /** The block that came last is no text. */
  #other = false;

  /** The same state for somebody who writes on without its having left. */
  copy(): Shown {
    const copy = new Shown();
    copy.#run = this.#run;
    copy.#characters = this.#characters;
    copy.#thought = this.#thought;
    for (const [key, block] of this.#open) copy.#open.set(key, { ...block, citations: new Set(block.citations) });
    copy.#begun = this.#begun;
    copy.#next = this.#next;
    copy.#usage = this.#usage;
    copy.#called = this.#called;
    copy.#hosted = new Set(this.#hosted);
    copy.#finish = this.#finish;
    copy.#other = this.#other;
    return copy;
  }

  /** The block that has begun last, where it is open. */
  get open(): OpenBlock | undefined {
    // Asked with every delta: a list of them would be made each time.
    let last: OpenBlock | undefined;
    for (const block of this.#open.values()) last = block;
    return last;
  }

  isOpen(index: unknown): boolean {
    return this.#open.has(String(index));
  }

  /** The index that the next block gets. Servers that number every block 0 are read by their order. */
  get next(): number {
    return Math.max(this.#next, this.#begun);
  }

  get usage(): ToldUsage {
    return this.#usage;
  }

  /** Text and thinking that have left, in UTF-16 code units. */
  get produced(): number {
    return this.#characters + this.#thought;
  }

  response(): ShownResponse {
    return { run: this.#run, characters: this.#characters, refusal: this.#refusal() };
  }

  /** Takes an event that leaves. */
  apply(json: unknown, event?: string): void {
    const record = Json.record(json);
    if (record === undefined || this.#finish !== "") return;
    const frame = typed(record, event);
    switch (typeOf(frame)) {
      case "message_start":
        this.#cost(Json.record(frame.message)?.usage);
        return;
      case "content_block_start":
        this.#begins(frame.index, Json.record(frame.content_block) ?? {});
        return;
      case "content_block_delta":
        this.#grows(frame.index, Json.record(frame.delta) ?? {});
        return;
      case "content_block_stop":
        this.#ends(String(frame.index));
        return;
      case "message_delta":
        this.#cost(frame.usage);
        this.#finish = reasonOf(Json.record(frame.delta)?.stop_reason);
        return;
    }
  }

  #refusal(): ShownResponse["refusal"] {
    if (this.#finish === "refusal") return "refusal_shown";
    if (this.#characters > shownCharactersMax) return "too_long";
    const behind = this.#other && this.#characters > 0;
    return behind || this.#called || this.#hosted.size > 0 || this.#finish !== "" ? "not_text_last" : undefined;
  }

  #begins(index: unknown, block: Json.JsonRecord): void {
    const type = Json.string(block.type);
    const key = String(index);
    // Servers that number every block 0 begin another one under the index of one that is open.
    this.#open.delete(key);
    if (this.#open.size < rememberedMax) this.#open.set(key, { index, type, citations: new Set(), spoken: false });
    this.#begun += 1;
    this.#next = Math.max(this.#next, (Json.natural(index) ?? -1) + 1);
    if (type === "text") {
      this.#says(Json.string(block.text));
      for (const citation of Json.list(block.citations)) this.#cites(citation);
      return;
    }
    this.#run = "";
    this.#other = true;
    this.#thought += Json.string(block.thinking).length;
    if (type === "tool_use") this.#called = true;
    else if (type.endsWith("tool_use")) this.#hosts(Json.string(block.id), true);
    else if (type.endsWith("tool_result")) this.#hosts(Json.string(block.tool_use_id), false);
  }

  /** A block that was numbered otherwise than its end is the one that has begun last. */
  #ends(key: string): void {
    if (!this.#open.delete(key)) this.#open.delete([...this.#open.keys()].at(-1) ?? "");
  }

  #grows(index: unknown, delta: Json.JsonRecord): void {
    switch (delta.type) {
      case "text_delta":
        // A server has left the start of the block out.
        if (this.open?.type !== "text") this.#begins(index, { type: "text" });
        this.#says(Json.string(delta.text));
        return;
      case "citations_delta":
        this.#cites(delta.citation);
        return;
      case "thinking_delta":
        this.#thought += Json.string(delta.thinking).length;
        return;
    }
  }

  #says(text: string): void {
    const { open } = this;
    if (text !== "") this.#other = false;
    if (text !== "" && open !== undefined) open.spoken = true;
    this.#characters += text.length;
    // Longer than that it is not gone on with, and is not held.
    this.#run = this.#characters > shownCharactersMax ? "" : this.#run + text;
  }

  #cites(citation: unknown): void {
    const { open } = this;
    if (open === undefined || citation === undefined || open.citations.size >= rememberedMax) return;
    open.citations.add(JSON.stringify(citation));
  }

  /** A hosted call waits for its result: without one it cannot go back to the provider. */
  #hosts(id: string, begins: boolean): void {
    if (!begins) this.#hosted.delete(id);
    else if (this.#hosted.size < rememberedMax) this.#hosted.add(id);
    // One that is not remembered would be forgotten to have no result.
    else this.#called = true;
  }

  #cost(value: unknown): void {
    const told = Json.record(value);
    if (told === undefined) return;
    const input = Object.fromEntries(inputFields.filter((name) => name in told).map((name) => [name, told[name]]));
    const says = inputFields.some((name) => (Json.natural(told[name]) ?? 0) > 0);
    this.#usage = {
      input: this.#usage.input ?? (says ? input : undefined),
      output: Math.max(this.#usage.output, Json.natural(told.output_tokens) ?? 0),
    };
  }
}
