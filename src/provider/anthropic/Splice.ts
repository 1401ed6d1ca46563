/**
 * Joins continuations to an Anthropic message that a client has read.
 *
 * The text behind the seam goes on in the block that is open, and what comes behind that gets the next free indexes. The second
 * `message_start` is dropped, because SDKs throw at it, and so is thinking in front of the seam: its signature is of another
 * turn. The blocks of the continuation are its own, so the seam may lie in one of them or between two.
 */
import * as Json from "../../domain/Json.ts";
import { ofCharacters } from "../../domain/Prices.ts";
import { AttemptGate } from "../seam/AttemptGate.ts";
import type { Splice, SplicedAttempt, SplicedEvent, TextGate } from "../seam/Splice.ts";
import { reason as reasonOf } from "../stream/Payload.ts";
import type { Part } from "../stream/Protocol.ts";
import { inputFields, Shown, type ToldUsage, typed, typeOf } from "./Shown.ts";

/** A splice of a message. */
export const splice = (): Splice => {
  const shown = new Shown();
  return {
    left: (json, event) => shown.apply(json, event),
    shown: () => shown.response(),
    continued: (gate) => new Attempt(shown, gate),
  };
};

/** Most citations that wait for their block to be joined. */
const waitingMax = 1024;

/** A block of the continuation. */
interface Slot {
  readonly key: string;
  readonly type: string;
  readonly block: Json.JsonRecord;
  /** How much text of the continuation stands in front of it. */
  readonly start: number;
  /** The first block with text: with a prefill it begins at the seam, and goes on with the block that is open. */
  readonly first: boolean;
  closed: boolean;
  /** It is not written at all. */
  dropped: boolean;
  /** Where the client reads it, once it does. */
  at: { readonly index: unknown } | undefined;
  /** That is a block which the break has left open. */
  goesOn: boolean;
  waiting: Array<Json.JsonRecord>;
}

const isBlank = (text: string): boolean => text.trim() === "";

/** The blocks that a provider signs, and refuses anywhere but where it has put them. */
const isThinking = (type: string): boolean => type === "thinking" || type === "redacted_thinking";

class Attempt implements SplicedAttempt {
  readonly #gate: AttemptGate;
  /** What the client has read when all that is written has left. */
  readonly #wire: Shown;
  /** The block that the break has left open, until it is closed. */
  #left: Shown["open"];
  /** Some of its text had left: what the continuation says of the block that joins is of the same one. */
  readonly #spoken: boolean;
  /** What the response had told of its cost when the continuation began, and what had left then, in UTF-16 code units. */
  readonly #told: ToldUsage;
  readonly #before: number;
  readonly #slots = new Map<string, Slot>();
  /** The text blocks whose text is not all out yet. */
  #texts: Array<Slot> = [];
  #current: Slot | undefined;
  /** The block that the seam lies in or behind. */
  #joining: Slot | undefined;
  /** Text given to the gate, and taken from it. */
  #fed = 0;
  #out = 0;
  /** White space that would be a block of its own: alone it is one that the API refuses in the next turn. */
  #blank = "";
  #written: Array<SplicedEvent> = [];
  #state: "open" | "finished" | "over" = "open";

  constructor(shown: Shown, gate: TextGate) {
    this.#gate = new AttemptGate(gate);
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
    const frame = typed(json, name);
    const type = typeOf(frame);
    // Behind its end a body may hold another message, which is a response of its own.
    if (this.#state === "over") return [{ event: name, json: frame }];
    switch (type) {
      case "message_start":
        break;
      case "content_block_start":
        this.#begins(name, frame);
        break;
      case "content_block_delta":
        this.#grows(name, frame);
        break;
      case "content_block_stop":
        this.#ends(name, frame);
        break;
      case "message_delta":
        this.#finishes(name, frame);
        break;
      case "message_stop":
        if (this.#gate.joined) this.#state = "over";
        this.#passes(name, frame);
        break;
      default:
        this.#passes(name, frame);
    }
    return this.#written;
  };

  readonly end = (): ReadonlyArray<SplicedEvent> => {
    this.#written = [];
    if (this.#state === "open" && this.#gate.joined) this.#says(this.#gate.close());
    return this.#written;
  };

  // events

  #begins(name: string, frame: Json.JsonRecord): void {
    const block = Json.record(frame.content_block) ?? {};
    const type = Json.string(block.type);
    const key = String(frame.index);
    if (type === "text") {
      this.#opened({ key, type, block });
      this.#text(Json.string(block.text));
      return;
    }
    if (isThinking(type) && !this.#gate.joined) {
      this.#opened({ key, type, block }).dropped = true;
      return;
    }
    this.#says(this.#gate.close());
    if (!this.#gate.joined) {
      this.#gate.fail("not_text");
      return;
    }
    this.#closes();
    const slot = this.#opened({ key, type, block });
    this.#blank = "";
    slot.at = { index: this.#wire.next };
    this.#writes(name, { ...frame, index: slot.at.index });
  }

  #grows(name: string, frame: Json.JsonRecord): void {
    const delta = Json.record(frame.delta) ?? {};
    const key = String(frame.index);
    const found = this.#slotOf(key);
    if (delta.type === "text_delta") {
      // A server has left the start of the block out.
      if (found?.type !== "text") this.#opened({ key, type: "text", block: { type: "text", text: "" } });
      this.#text(Json.string(delta.text), name, frame);
      return;
    }
    if (found === undefined) {
      if (delta.type === "input_json_delta") this.#gate.fail(this.#gate.joined ? "unwritable" : "not_text");
      return;
    }
    if (found.dropped) return;
    if (found.at !== undefined) this.#onto(found, name, frame);
    else if (delta.type === "citations_delta" && found.waiting.length < waitingMax) found.waiting.push(frame);
  }

  #ends(name: string, frame: Json.JsonRecord): void {
    const slot = this.#slotOf(String(frame.index));
    if (slot === undefined) return;
    slot.closed = true;
    if (slot.dropped || !this.#gate.joined) return;
    // White space at the end of what was shown may still come, in the next block: until text has left nothing ends here.
    if (slot.type === "text" && this.#out === 0) return;
    if (slot.type === "text") this.#says(this.#gate.close());
    // An empty block that is open on the wire is the next one.
    if (slot === this.#seamBlock() && this.#left?.spoken === true) this.#closes();
    else if (slot.at !== undefined && this.#isOpen(slot)) this.#writes(name, { ...frame, index: slot.at.index });
  }

  #finishes(name: string, frame: Json.JsonRecord): void {
    if (this.#state === "finished") return;
    const reason = reasonOf(Json.record(frame.delta)?.stop_reason);
    if (reason === "") {
      this.#passes(name, this.#costing(frame));
      return;
    }
    if (reason === "refusal" && !this.#gate.joined) {
      this.#gate.fail("not_text");
      return;
    }
    this.#says(this.#gate.close());
    if (!this.#gate.joined) return;
    this.#closes();
    this.#state = "finished";
    this.#writes(name, this.#costing(frame));
  }

  /** An event that is of no block, or that nobody knows. */
  #passes(name: string, frame: Json.JsonRecord): void {
    if (!this.#gate.joined) return;
    const slot = frame.index === undefined ? undefined : this.#slotOf(String(frame.index));
    if (slot === undefined) this.#writes(name, frame);
    else if (slot.at !== undefined) this.#writes(name, { ...frame, index: slot.at.index });
  }

  // blocks

  /** A joined block may have been closed in front of a block that began before its end. */
  #isOpen(slot: Slot): boolean {
    return this.#wire.isOpen(slot.at?.index);
  }

  #opened({ block, key, type }: Pick<Slot, "key" | "type" | "block">): Slot {
    // A block without text is as if it had not been.
    const idle = this.#texts.at(-1);
    if (type === "text" && idle?.start === this.#fed && idle.closed && idle.at === undefined) this.#texts.pop();
    const first = type === "text" && this.#texts.length === 0 && this.#joining === undefined;
    const slot: Slot = {
      key,
      type,
      block,
      start: this.#fed,
      first,
      closed: false,
      dropped: false,
      at: undefined,
      goesOn: false,
      waiting: [],
    };
    this.#current = slot;
    this.#slots.set(key, slot);
    if (type !== "text") return slot;
    // A text block that begins behind text which has left is the provider's own, whole.
    const behind = this.#out > 0;
    this.#texts.push(slot);
    if (behind) this.#places(slot);
    return slot;
  }

  /** The block of an index; servers number a block and its deltas differently, and then it is the one that is open. */
  #slotOf(key: string): Slot | undefined {
    const slot = this.#slots.get(key);
    if (slot !== undefined && !slot.closed) return slot;
    return this.#current?.closed === false ? this.#current : undefined;
  }

  /** The text block of the continuation that goes on with the last one that the client has read: known once the seam is proven. */
  #seamBlock(): Slot | undefined {
    if (!this.#gate.joined) return undefined;
    this.#joining ??= this.#texts.findLast((slot) => slot.first || slot.start < this.#gate.cut);
    return this.#joining;
  }

  /** Begins a block of text on the wire, or goes on with the one that is open. */
  #places(slot: Slot): void {
    const left = this.#left;
    const joins = slot === this.#seamBlock();
    // A block that has begun and said nothing is the next one: closed, it would be one that the API refuses in the next turn.
    if (left !== undefined && (joins || !left.spoken)) {
      slot.at = { index: left.index };
      slot.goesOn = true;
      if (joins && !this.#spoken) slot.waiting = [];
      this.#cites(slot);
      return;
    }
    this.#closes();
    slot.at = { index: this.#wire.next };
    const { citations: _citations, ...bare } = slot.block;
    // Its citations are of the whole block, half of which the client reads as another one.
    const block = joins ? bare : slot.block;
    this.#writes("content_block_start", {
      type: "content_block_start",
      index: slot.at.index,
      content_block: { ...block, text: "" },
    });
    if (joins) slot.waiting = [];
    this.#cites(slot);
    // Its end has come already.
    if (slot.closed) this.#left = this.#wire.open;
  }

  /** Closes the block that the break has left open; what the continuation's own block has left to say of it is said first. */
  #closes(): void {
    const left = this.#left;
    if (left === undefined) return;
    const slot = this.#seamBlock();
    if (slot !== undefined && slot.at === undefined && left.spoken) this.#places(slot);
    // A block of text that has begun cannot be taken back, and the API refuses an empty one in the next turn.
    if (left.type === "text" && !left.spoken && slot?.at === undefined) {
      this.#gate.fail("unwritable");
      return;
    }
    this.#left = undefined;
    this.#writes("content_block_stop", { type: "content_block_stop", index: left.index });
  }

  #cites(slot: Slot): void {
    const waiting = slot.waiting;
    slot.waiting = [];
    for (const frame of waiting) this.#onto(slot, "content_block_delta", frame);
  }

  /** Writes a delta of a block where the client reads it; a citation that stands there already is not told again. */
  #onto(slot: Slot, name: string, frame: Json.JsonRecord): void {
    const { citation, type } = Json.record(frame.delta) ?? {};
    const told = type === "citations_delta" && slot.goesOn ? this.#wire.open?.citations : undefined;
    if (told?.has(JSON.stringify(citation))) return;
    this.#writes(name, { ...frame, index: slot.at?.index });
  }

  // text

  /** Takes a piece of text of the block that has begun last; its event is the mould of what is written for it. */
  #text(piece: string, name = "content_block_delta", frame: Json.JsonRecord = {}): void {
    if (piece === "") return;
    this.#fed += piece.length;
    this.#says(this.#gate.text(piece), name, frame);
  }

  /** Writes text that has passed the gate into the blocks that it is of. */
  #says(text: string, name = "content_block_delta", frame: Json.JsonRecord = {}): void {
    let rest = text;
    while (rest !== "") {
      const from = this.#gate.cut + this.#out;
      const at = this.#texts.findLastIndex((slot) => slot.start <= from);
      const slot = this.#texts[Math.max(at, 0)];
      if (slot === undefined) {
        this.#gate.fail("unwritable");
        return;
      }
      this.#seamBlock();
      this.#texts = this.#texts.slice(Math.max(at, 0));
      const next = this.#texts[1];
      const piece = next === undefined ? rest : rest.slice(0, Math.max(1, next.start - from));
      rest = rest.slice(piece.length);
      this.#out += piece.length;
      this.#said(slot, piece, name, frame);
    }
  }

  #said(slot: Slot, text: string, name: string, frame: Json.JsonRecord): void {
    const piece = this.#blank + text;
    const alone = slot.at === undefined && slot === this.#joining && this.#left?.spoken !== true;
    if (alone && isBlank(piece)) {
      this.#blank = piece;
      return;
    }
    this.#blank = "";
    if (slot.at === undefined) this.#places(slot);
    const delta = { ...Json.record(frame.delta), type: "text_delta", text: piece };
    this.#writes(name, { ...frame, type: "content_block_delta", index: slot.at?.index, delta });
  }

  // the end

  /**
   * The usage of one answer: the input is what the first request has told, the output what both have. Of a response that broke
   * nothing tells the output, so what has left of it is counted, and the anchor that came twice is not.
   */
  #costing(frame: Json.JsonRecord): Json.JsonRecord {
    const told = Json.record(frame.usage);
    if (told === undefined) return frame;
    const { input, output } = this.#told;
    const second = Json.natural(told.output_tokens);
    const first = Math.max(output, ofCharacters(this.#before));
    const both =
      second === undefined ? {} : { output_tokens: first + Math.max(0, second - ofCharacters(this.#gate.cut)) };
    const own = inputFields.filter((field) => input !== undefined && field in told);
    const asked = Object.fromEntries(
      own.map((field) => [field, input?.[field] ?? (field === "cache_creation" ? null : 0)]),
    );
    return { ...frame, usage: { ...told, ...asked, ...both } };
  }

  #writes(event: string, json: Json.JsonRecord): void {
    this.#wire.apply(json);
    this.#written.push({ event, json });
  }
}
