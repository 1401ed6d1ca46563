/**
 * Assigns the text of a continuation to the blocks in which it came. The gate delays text and drops the text before the seam, so the text
 * that it returns may belong to an earlier block than the newest.
 */
import type * as Json from "../../domain/Json.ts";
import type { TextGate } from "./TextGate.ts";

/** A text block of a continuation. */
export interface TextBlock {
  /** Position of the block in the continuation's text. */
  readonly start: number;
  /** True for the first block. With a prefill, that block begins at the seam and continues the block that was open at the break. */
  readonly first: boolean;
}

/** Writes text into its block. `name` and `frame` are those of the event that contained the text; omitted if there was no such event. */
type WriteText<B> = (block: B, text: string, name?: string, frame?: Json.JsonRecord) => void;

/** The text blocks of one continuation. */
export class TextBlocks<B extends TextBlock> {
  readonly #gate: TextGate;
  readonly #write: WriteText<B>;
  /** Blocks whose text was not completely sent. */
  #blocks: Array<B> = [];
  #joining: B | undefined;
  /** Amounts of text given to the gate and received from it, in UTF-16 code units. */
  #fed = 0;
  #out = 0;

  constructor(gate: TextGate, write: WriteText<B>) {
    this.#gate = gate;
    this.#write = write;
  }

  /** True if text of the continuation was sent. A block that begins after that is written whole, like a block of the provider. */
  get hasLeft(): boolean {
    return this.#out > 0;
  }

  /** The block that continues the last block that the client has read. Undefined until the seam is proven. */
  findJoining(): B | undefined {
    if (!this.#gate.isJoined) return undefined;
    this.#joining ??= this.#blocks.findLast((block) => block.first || block.start < this.#gate.cut);
    return this.#joining;
  }

  /**
   * The position of a block that begins now.
   *
   * @param isIdle returns true for a block that can be forgotten. It is called only for the newest block, if that has no text
   */
  next(isIdle: (block: B) => boolean): TextBlock {
    const newest = this.#blocks.at(-1);
    if (newest?.start === this.#fed && isIdle(newest)) this.#blocks.pop();
    return { start: this.#fed, first: this.#blocks.length === 0 && this.#joining === undefined };
  }

  add(block: B): void {
    this.#blocks.push(block);
  }

  /**
   * Passes a piece of text of the newest block through the gate. `frame`, the event that contained the text, is the template for the events
   * that are written.
   */
  take(piece: string, name?: string, frame?: Json.JsonRecord): void {
    if (piece === "") return;
    this.#fed += piece.length;
    this.#leave(this.#gate.pass(piece), name, frame);
  }

  /** Writes the text that the gate still holds. */
  close(): void {
    this.#leave(this.#gate.close());
  }

  /** Writes held text, because something that is not text follows. Returns false if the seam is not proven, so that the attempt fails. */
  closeForOther(): boolean {
    this.#leave(this.#gate.closeText() ?? "");
    return this.#gate.isJoined;
  }

  /** Writes text that passed the gate into the blocks to which it belongs. */
  #leave(text: string, name?: string, frame?: Json.JsonRecord): void {
    let rest = text;
    while (rest !== "") {
      const from = this.#gate.cut + this.#out;
      // Finds the joining block while it is still listed.
      this.findJoining();
      const at = this.#blocks.findLastIndex((block) => block.start <= from);
      this.#blocks = this.#blocks.slice(Math.max(at, 0));
      const [block, next] = this.#blocks;
      if (block === undefined) {
        this.#gate.fail("unwritable");
        return;
      }
      const piece = next === undefined ? rest : rest.slice(0, Math.max(1, next.start - from));
      rest = rest.slice(piece.length);
      this.#out += piece.length;
      this.#write(block, piece, name, frame);
    }
  }
}
