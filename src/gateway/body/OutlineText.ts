/**
 * Writes JSON again as it is scanned, without what is long or asked to be left out: a text that is parsed in no time.
 *
 * What is left out leaves its kind behind: an empty object, an empty list, a text. Blanks go too. Everything else keeps its bytes, so
 * that `JSON.parse` says what the outline means: which of two members of one name counts, what a number is, and what `__proto__` is.
 */
import { type JsonListener, levelsMax, sign } from "../../adapters/relay/form/JsonScan.ts";

/** What is left out. */
export interface OutlineTerms {
  /** Longest outline, in bytes. */
  readonly bytesMax: number;
  /**
   * Whether the value of a member is left out: an object or a list with all that it holds, and the letters of a text.
   *
   * @param name its name as it is written; empty for one that is escaped or long
   * @param level of the object that it stands in: 1 for the outermost
   */
  readonly leavesOut: (name: string, level: number) => boolean;
  /** The longest text that is kept as the value of a member of a name, in bytes. */
  readonly textMax: (name: string) => number;
}

/** A text that is too long is this one: it is not empty. */
export const standIn = "(left out)";

/** Longest name that is looked at, in bytes. */
const nameMax = 64;

const { BACKSLASH, COLON, COMMA, QUOTE } = sign;

const encoded = new TextEncoder();
const standInBytes = encoded.encode(JSON.stringify(standIn));
const noText = encoded.encode('""');

/** Writes one outline. */
export class OutlineText implements JsonListener {
  readonly #bytes: Uint8Array;
  readonly #terms: OutlineTerms;
  #out = new Uint8Array(1_024);
  #length = 0;
  /** Whether each level has a part already. */
  readonly #begun = new Uint8Array(levelsMax + 2);
  #level = 0;
  /** Levels that are open within what is left out. */
  #within = 0;
  #name = "";
  #leftOut = false;
  #full = false;
  #parts = 0;

  /** @param bytes what is scanned */
  constructor(bytes: Uint8Array, terms: OutlineTerms) {
    this.#bytes = bytes;
    this.#terms = terms;
  }

  /** More was to be kept than may be. */
  get isFull(): boolean {
    return this.#full;
  }

  /** Objects and lists that were read, also of what is left out. */
  get parts(): number {
    return this.#parts;
  }

  /** Bytes that were written. */
  get length(): number {
    return this.#length;
  }

  /** What was written, as text. */
  get text(): string {
    return new TextDecoder().decode(this.#out.subarray(0, this.#length));
  }

  readonly isDone = (): boolean => this.#full;

  readonly open = (bracket: number): void => {
    this.#parts += 1;
    if (this.#within === 0) {
      this.#separate();
      this.#byte(bracket);
      if (!this.#leftOut) {
        this.#level += 1;
        this.#begun[this.#level] = 0;
        this.#name = "";
        return;
      }
    }
    this.#within += 1;
  };

  readonly close = (bracket: number): void => {
    if (this.#within > 0) {
      this.#within -= 1;
      if (this.#within > 0) return;
      this.#leftOut = false;
    } else this.#level -= 1;
    this.#byte(bracket);
    this.#name = "";
  };

  readonly key = (from: number, to: number): void => {
    if (this.#within > 0) return;
    if (this.#begun[this.#level] === 1) this.#byte(COMMA);
    // The value that follows is no part of its own.
    this.#begun[this.#level] = 0;
    this.#span(from, to);
    this.#byte(COLON);
    this.#name = nameOf(this.#bytes, from, to);
    this.#leftOut = this.#terms.leavesOut(this.#name, this.#level);
  };

  readonly scalar = (from: number, to: number): void => {
    if (this.#within > 0) return;
    this.#separate();
    if (this.#bytes[from] !== QUOTE) this.#span(from, to);
    else if (this.#leftOut) this.#take(noText);
    else if (to - from > this.#terms.textMax(this.#name)) this.#take(standInBytes);
    else this.#span(from, to);
    this.#leftOut = false;
    this.#name = "";
  };

  /** Writes the comma before a part that is not its level's first one. */
  #separate(): void {
    if (this.#begun[this.#level] === 1) this.#byte(COMMA);
    this.#begun[this.#level] = 1;
  }

  #span(from: number, to: number): void {
    if (this.#reserve(to - from)) this.#take(this.#bytes.subarray(from, to));
  }

  #take(bytes: Uint8Array): void {
    if (!this.#reserve(bytes.length)) return;
    this.#out.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  #byte(byte: number): void {
    if (!this.#reserve(1)) return;
    this.#out[this.#length] = byte;
    this.#length += 1;
  }

  #reserve(count: number): boolean {
    const length = this.#length + count;
    if (length > this.#terms.bytesMax) this.#full = true;
    if (this.#full) return false;
    if (length > this.#out.length) {
      const more = new Uint8Array(Math.min(this.#terms.bytesMax, Math.max(length, 2 * this.#out.length)));
      more.set(this.#out.subarray(0, this.#length));
      this.#out = more;
    }
    return true;
  }
}

/** A name by which something is left out; empty where none is called so: it is escaped, or long. */
export const nameOf = (bytes: Uint8Array, from: number, to: number): string => {
  if (to - from - 2 > nameMax) return "";
  const letters = bytes.subarray(from + 1, to - 1);
  return letters.includes(BACKSLASH) ? "" : String.fromCharCode(...letters);
};
