/**
 * Joins continuations to an Anthropic message that a client has read.
 *
 * The seam is the place where a continuation joins the shown text. Text after it continues the open block, and later blocks get the next
 * free indexes. The splice drops the second `message_start`, because SDKs throw on it, and thinking before the seam, because its signature
 * belongs to another turn. The continuation has its own blocks, so the seam may lie inside one of them or between two.
 */
import * as Json from "../../domain/Json.ts";
import { estimateTokens } from "../../domain/Prices.ts";
import type { Splice, SplicedAttempt, SplicedEvent } from "../seam/Splice.ts";
import { type TextBlock, TextBlocks } from "../seam/TextBlocks.ts";
import type { TextGate } from "../seam/TextGate.ts";
import { readReason as reasonOf } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import { inputFields, Shown, type ToldUsage, typeOf, withType } from "./Shown.ts";

/** Creates the splice of one message. */
export const splice = (): Splice => {
  const shown = new Shown();
  return {
    recordSent: (json, event) => shown.apply(json, event),
    response: () => shown.text.response(),
    startContinuation: (gate) => new Attempt(shown, gate),
  };
};

/** Maximum citations of a block that wait for it to be joined. */
const waitingMax = 1024;

interface Slot extends TextBlock {
  readonly key: string;
  readonly type: string;
  readonly block: Json.JsonRecord;
  closed: boolean;
  dropped: boolean;
  /** The client's index of the block, after it is written. */
  at: { readonly index: unknown } | undefined;
  /** True if `at` is the block that was open at the break. */
  goesOn: boolean;
  waiting: Array<Json.JsonRecord>;
}

const isBlank = (text: string): boolean => text.trim() === "";

/** True for a thinking block. Providers sign thinking blocks and refuse them anywhere but in their original place. */
const isThinking = (type: string): boolean => type === "thinking" || type === "redacted_thinking";

class Attempt implements SplicedAttempt {
  readonly #gate: TextGate;
  /** The client's view of the message once everything that was written has been sent. */
  readonly #wire: Shown;
  /** The block that was open at the break, until it is closed. */
  #left: Shown["open"];
  /**
   * True if some text of that block had been sent when the continuation began. Citations of the joining block then belong to the same
   * block.
   */
  readonly #spoken: boolean;
  /** The reported cost of the response, and the text produced, in UTF-16 code units, when the continuation began. */
  readonly #told: ToldUsage;
  readonly #before: number;
  readonly #slots = new Map<string, Slot>();
  readonly #texts: TextBlocks<Slot>;
  #current: Slot | undefined;
  /** White space that would be a separate block, which the API refuses in the next turn. */
  #blank = "";
  #written: Array<SplicedEvent> = [];
  #state: "open" | "finished" | "over" = "open";

  constructor(shown: Shown, gate: TextGate) {
    this.#gate = gate;
    this.#texts = new TextBlocks(this.#gate, this.#writeText);
    this.#wire = shown.copy();
    this.#left = this.#wire.open;
    this.#spoken = this.#left?.spoken === true;
    this.#told = shown.usage;
    this.#before = shown.produced;
  }

  readonly take = (part: Part): ReadonlyArray<SplicedEvent> => {
    this.#written = [];
    const json = Json.record(part.json);
    const name = part.event.event;
    if (json === undefined) return [];
    const frame = withType(json, name);
    const type = typeOf(frame);
    // After its end, a body may contain another message, which is a separate response.
    if (this.#state === "over") return [{ event: name, json: frame }];
    switch (type) {
      case "message_start":
        break;
      case "content_block_start":
        this.#beginBlock(name, frame);
        break;
      case "content_block_delta":
        this.#takeDelta(name, frame);
        break;
      case "content_block_stop":
        this.#endBlock(name, frame);
        break;
      case "message_delta":
        this.#finish(name, frame);
        break;
      case "message_stop":
        if (this.#gate.isJoined) this.#state = "over";
        this.#forward(name, frame);
        break;
      default:
        this.#forward(name, frame);
    }
    return this.#written;
  };

  readonly end = (): ReadonlyArray<SplicedEvent> => {
    this.#written = [];
    if (this.#state === "open" && this.#gate.isJoined) this.#texts.close();
    return this.#written;
  };

  // events

  #beginBlock(name: string, frame: Json.JsonRecord): void {
    const block = Json.record(frame.content_block) ?? {};
    const type = Json.string(block.type);
    const key = String(frame.index);
    if (type === "text") {
      this.#openSlot({ key, type, block });
      this.#texts.take(Json.string(block.text));
      return;
    }
    if (isThinking(type) && !this.#gate.isJoined) {
      this.#openSlot({ key, type, block }).dropped = true;
      return;
    }
    if (!this.#texts.closeForOther()) return;
    this.#closeOpenBlock();
    const slot = this.#openSlot({ key, type, block });
    this.#blank = "";
    slot.at = { index: this.#wire.next };
    this.#write(name, { ...frame, index: slot.at.index });
  }

  #takeDelta(name: string, frame: Json.JsonRecord): void {
    const delta = Json.record(frame.delta) ?? {};
    const key = String(frame.index);
    const found = this.#slotOf(key);
    if (delta.type === "text_delta") {
      // The server omitted the start of the block.
      if (found?.type !== "text") this.#openSlot({ key, type: "text", block: { type: "text", text: "" } });
      this.#texts.take(Json.string(delta.text), name, frame);
      return;
    }
    if (found === undefined) {
      if (delta.type === "input_json_delta") this.#gate.fail(this.#gate.isJoined ? "unwritable" : "not_text");
      return;
    }
    if (found.dropped) return;
    if (found.at !== undefined) this.#writeDelta(found, name, frame);
    else if (delta.type === "citations_delta" && found.waiting.length < waitingMax) found.waiting.push(frame);
  }

  #endBlock(name: string, frame: Json.JsonRecord): void {
    const slot = this.#slotOf(String(frame.index));
    if (slot === undefined) return;
    slot.closed = true;
    if (slot.dropped || !this.#gate.isJoined) return;
    // The next block may still repeat white space that ends the shown text, so no text block ends before new text was sent.
    if (slot.type === "text" && !this.#texts.hasLeft) return;
    if (slot.type === "text") this.#texts.close();
    // If the block that was open at the break has text, it ends here. If it is empty, the next block continues it.
    if (slot === this.#texts.findJoining() && this.#left?.spoken === true) this.#closeOpenBlock();
    // A joined block may have been closed early, because another block began before its end.
    else if (slot.at !== undefined && this.#wire.isOpen(slot.at.index))
      this.#write(name, { ...frame, index: slot.at.index });
  }

  #finish(name: string, frame: Json.JsonRecord): void {
    if (this.#state === "finished") return;
    const reason = reasonOf(Json.record(frame.delta)?.stop_reason);
    if (reason === "") {
      this.#forward(name, this.#mergeUsage(frame));
      return;
    }
    if (reason === "refusal" && !this.#gate.isJoined) {
      this.#gate.fail("not_text");
      return;
    }
    this.#texts.close();
    if (!this.#gate.isJoined) return;
    this.#closeOpenBlock();
    this.#state = "finished";
    this.#write(name, this.#mergeUsage(frame));
  }

  #forward(name: string, frame: Json.JsonRecord): void {
    if (!this.#gate.isJoined) return;
    const slot = frame.index === undefined ? undefined : this.#slotOf(String(frame.index));
    if (slot === undefined) this.#write(name, frame);
    else if (slot.at !== undefined) this.#write(name, { ...frame, index: slot.at.index });
  }

  // blocks

  #openSlot({ block, key, type }: Pick<Slot, "key" | "type" | "block">): Slot {
    // A closed block that wrote no text can be forgotten.
    const slot: Slot = {
      ...this.#texts.next((idle) => type === "text" && idle.closed && idle.at === undefined),
      key,
      type,
      block,
      closed: false,
      dropped: false,
      at: undefined,
      goesOn: false,
      waiting: [],
    };
    this.#current = slot;
    this.#slots.set(key, slot);
    if (type !== "text") return slot;
    this.#texts.add(slot);
    if (this.#texts.hasLeft) this.#place(slot);
    return slot;
  }

  /** The open block of an index. Some servers number a block and its deltas differently; the block that began last is then used. */
  #slotOf(key: string): Slot | undefined {
    const slot = this.#slots.get(key);
    if (slot !== undefined && !slot.closed) return slot;
    return this.#current?.closed === false ? this.#current : undefined;
  }

  /** Begins a text block for the client, or continues the open block. */
  #place(slot: Slot): void {
    const left = this.#left;
    const joins = slot === this.#texts.findJoining();
    // If the block on the wire has no text yet, the next block continues it, because the API would refuse an empty block in the next turn.
    if (left !== undefined && (joins || !left.spoken)) {
      slot.at = { index: left.index };
      slot.goesOn = true;
      if (joins && !this.#spoken) slot.waiting = [];
      this.#writeCitations(slot);
      return;
    }
    this.#closeOpenBlock();
    slot.at = { index: this.#wire.next };
    const { citations: _citations, ...bare } = slot.block;
    // The citations cover the whole block, but the client reads its first half as another block.
    const block = joins ? bare : slot.block;
    this.#write("content_block_start", {
      type: "content_block_start",
      index: slot.at.index,
      content_block: { ...block, text: "" },
    });
    if (joins) slot.waiting = [];
    this.#writeCitations(slot);
    // The end of the block has already come.
    if (slot.closed) this.#left = this.#wire.open;
  }

  /**
   * Closes the block that was open at the break. Before that, it places the joining block of the continuation if that is not placed yet.
   */
  #closeOpenBlock(): void {
    const left = this.#left;
    if (left === undefined) return;
    const slot = this.#texts.findJoining();
    if (slot !== undefined && slot.at === undefined && left.spoken) this.#place(slot);
    // A text block that was sent cannot be revoked, and the API refuses an empty text block in the next turn.
    if (left.type === "text" && !left.spoken && slot?.at === undefined) {
      this.#gate.fail("unwritable");
      return;
    }
    this.#left = undefined;
    this.#write("content_block_stop", { type: "content_block_stop", index: left.index });
  }

  #writeCitations(slot: Slot): void {
    const waiting = slot.waiting;
    slot.waiting = [];
    for (const frame of waiting) this.#writeDelta(slot, "content_block_delta", frame);
  }

  /** Writes a delta under the client's index of its block. Skips a citation that the client already has. */
  #writeDelta(slot: Slot, name: string, frame: Json.JsonRecord): void {
    const { citation, type } = Json.record(frame.delta) ?? {};
    const told = type === "citations_delta" && slot.goesOn ? this.#wire.open?.citations : undefined;
    if (told?.has(JSON.stringify(citation))) return;
    this.#write(name, { ...frame, index: slot.at?.index });
  }

  // text

  readonly #writeText = (slot: Slot, text: string, name = "content_block_delta", frame: Json.JsonRecord = {}): void => {
    const piece = this.#blank + text;
    const joins = slot === this.#texts.findJoining();
    if (slot.at === undefined && joins && this.#left?.spoken !== true && isBlank(piece)) {
      this.#blank = piece;
      return;
    }
    this.#blank = "";
    if (slot.at === undefined) this.#place(slot);
    const delta = { ...Json.record(frame.delta), type: "text_delta", text: piece };
    this.#write(name, { ...frame, type: "content_block_delta", index: slot.at?.index, delta });
  };

  // the end

  /**
   * The usage of the whole response: the input that the first request reported, and the output of the broken and the continuing request. A
   * broken response never reports its output, so its text is counted instead, without the repeated anchor.
   */
  #mergeUsage(frame: Json.JsonRecord): Json.JsonRecord {
    const told = Json.record(frame.usage);
    if (told === undefined) return frame;
    const { input, output } = this.#told;
    const second = Json.natural(told.output_tokens);
    const first = Math.max(output, estimateTokens(this.#before));
    const both =
      second === undefined ? {} : { output_tokens: first + Math.max(0, second - estimateTokens(this.#gate.cut)) };
    const own = inputFields.filter((field) => input !== undefined && field in told);
    const asked = Object.fromEntries(
      own.map((field) => [field, input?.[field] ?? (field === "cache_creation" ? null : 0)]),
    );
    return { ...frame, usage: { ...told, ...asked, ...both } };
  }

  #write(event: string, json: Json.JsonRecord): void {
    this.#wire.apply(json);
    this.#written.push({ event, json });
  }
}
