/**
 * Follows the part of an Anthropic message that was sent to the client: the open blocks, the next free index and the text.
 *
 * It reads the events of the first attempt and those of a splice (a continuation that was joined to the message) in the same way, so that a
 * further continuation can join either.
 */
import * as Json from "../../domain/Json.ts";
import { ShownText } from "../../seam/ShownText.ts";
import { readReason as reasonOf } from "../stream/Payload.ts";

/** Maximum citations remembered per block, and maximum open blocks remembered per message. */
const rememberedMax = 1024;

interface OpenBlock {
  /** The index, as the server wrote it. */
  readonly index: unknown;
  readonly type: string;
  /** The citations as JSON text, so that no citation is repeated. */
  readonly citations: Set<string>;
  /** True after some text of the block has arrived. */
  spoken: boolean;
}

/** The cost that a message has reported so far. */
export interface ToldUsage {
  /** The input fields, if one of them is above zero. */
  readonly input: Json.JsonRecord | undefined;
  readonly output: number;
}

/** The usage fields that report the cost of the input. */
export const inputFields = [
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "cache_creation",
] as const;

/** An event with its type, which some servers put in the `event:` line only. */
export const withType = (frame: Json.JsonRecord, event = "message"): Json.JsonRecord =>
  typeof frame.type === "string" || event === "message" ? frame : { ...frame, type: event };

/** The type of an event. If it has none, it is inferred from its members. */
export const typeOf = (frame: Json.JsonRecord): string => {
  if (typeof frame.type === "string") return frame.type;
  if (frame.message !== undefined) return "message_start";
  if (frame.content_block !== undefined) return "content_block_start";
  const delta = Json.record(frame.delta);
  if (delta !== undefined) return delta.type === undefined ? "message_delta" : "content_block_delta";
  return frame.index === undefined ? "" : "content_block_stop";
};

const noUsage: ToldUsage = { input: undefined, output: 0 };

const begin = () => ({
  thought: 0,
  /** The open blocks by index as a string, the latest last. */
  open: new Map<string, OpenBlock>(),
  begun: 0,
  next: 0,
  usage: noUsage,
  finished: false,
});

/** The part of one message that was sent to the client. */
export class Shown {
  readonly text = new ShownText();
  readonly #it = begin();

  /** A copy of the blocks, for a writer whose events were not sent yet. */
  copy(): Shown {
    const copy = new Shown();
    Object.assign(copy.#it, structuredClone(this.#it));
    return copy;
  }

  /** The open block that began last; undefined if none is open. */
  get open(): OpenBlock | undefined {
    // Runs for every delta, so it avoids building a list.
    let last: OpenBlock | undefined;
    for (const block of this.#it.open.values()) last = block;
    return last;
  }

  isOpen(index: unknown): boolean {
    return this.#it.open.has(String(index));
  }

  /** The index of the next block. If a server numbers every block 0, blocks are counted in order. */
  get next(): number {
    return Math.max(this.#it.next, this.#it.begun);
  }

  get usage(): ToldUsage {
    return this.#it.usage;
  }

  /** Length of the text and thinking that were sent, in UTF-16 code units. */
  get produced(): number {
    return this.text.characters + this.#it.thought;
  }

  apply(json: unknown, event?: string): void {
    const record = Json.record(json);
    if (record === undefined || this.#it.finished) return;
    const frame = withType(record, event);
    switch (typeOf(frame)) {
      case "message_start":
        this.#recordInput(Json.record(frame.message)?.usage);
        return;
      case "content_block_start":
        this.#beginBlock(frame.index, Json.record(frame.content_block) ?? {});
        return;
      case "content_block_delta":
        this.#takeDelta(frame.index, Json.record(frame.delta) ?? {});
        return;
      case "content_block_stop":
        this.#endBlock(String(frame.index));
        return;
      case "message_delta":
        this.#recordInput(frame.usage);
        this.#finish(reasonOf(Json.record(frame.delta)?.stop_reason));
        return;
    }
  }

  #finish(reason: string): void {
    if (reason === "") return;
    this.#it.finished = true;
    this.text.refuse(reason === "refusal" ? "refusal_shown" : "not_text_last");
  }

  #beginBlock(index: unknown, block: Json.JsonRecord): void {
    const type = Json.string(block.type);
    const key = String(index);
    // If a server numbers every block 0, a block may begin under the index of an open block.
    this.#it.open.delete(key);
    if (this.#it.open.size < rememberedMax)
      this.#it.open.set(key, { index, type, citations: new Set(), spoken: false });
    this.#it.begun += 1;
    this.#it.next = Math.max(this.#it.next, (Json.natural(index) ?? -1) + 1);
    if (type === "text") {
      this.#addText(Json.string(block.text));
      for (const citation of Json.list(block.citations)) this.#rememberCitation(citation);
      return;
    }
    this.text.endRun();
    this.#it.thought += Json.string(block.thinking).length;
    if (type === "tool_use") this.text.refuse("not_text_last");
    else if (type.endsWith("tool_use")) this.text.recordHostedTool(Json.string(block.id), false);
    else if (type.endsWith("tool_result")) this.text.recordHostedTool(Json.string(block.tool_use_id), true);
  }

  /**
   * Ends the block with this index. If no open block has it, ends the block that began last, because some servers number the end
   * differently.
   */
  #endBlock(key: string): void {
    if (!this.#it.open.delete(key)) this.#it.open.delete([...this.#it.open.keys()].at(-1) ?? "");
  }

  #takeDelta(index: unknown, delta: Json.JsonRecord): void {
    switch (delta.type) {
      case "text_delta":
        // The server omitted the start of the block.
        if (this.open?.type !== "text") this.#beginBlock(index, { type: "text" });
        this.#addText(Json.string(delta.text));
        return;
      case "citations_delta":
        this.#rememberCitation(delta.citation);
        return;
      case "thinking_delta":
        this.#it.thought += Json.string(delta.thinking).length;
        return;
    }
  }

  #addText(text: string): void {
    const { open } = this;
    if (text !== "" && open !== undefined) open.spoken = true;
    this.text.say(text);
  }

  #rememberCitation(citation: unknown): void {
    const { open } = this;
    if (open === undefined || citation === undefined || open.citations.size >= rememberedMax) return;
    open.citations.add(JSON.stringify(citation));
  }

  #recordInput(value: unknown): void {
    const told = Json.record(value);
    if (told === undefined) return;
    const input = Object.fromEntries(inputFields.filter((name) => name in told).map((name) => [name, told[name]]));
    const says = inputFields.some((name) => (Json.natural(told[name]) ?? 0) > 0);
    this.#it.usage = {
      input: this.#it.usage.input ?? (says ? input : undefined),
      output: Math.max(this.#it.usage.output, Json.natural(told.output_tokens) ?? 0),
    };
  }
}
