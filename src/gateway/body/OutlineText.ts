/**
 * Rewrites JSON during a scan without its long or unwanted values, so that the result parses quickly.
 *
 * An omitted value is replaced by an empty object, list or string. Whitespace is dropped. All other bytes are kept, so `JSON.parse`
 * alone decides which duplicate member counts, the value of a number, and the meaning of `__proto__`.
 */
import { type JsonListener, lettersOf, levelsMax, sign } from "../../adapters/relay/form/JsonScan.ts";

/** The limits of an outline, and the values that it leaves out. */
export interface OutlineTerms {
  /** Maximum size of the outline, in bytes. */
  readonly bytesMax: number;
  /**
   * Decides whether the value of a member is left out: an object or a list with its contents, or the characters of a string.
   *
   * @param name the name as written; empty if it is escaped or long
   * @param level nesting level of the object that contains the member; 1 for the outermost object
   */
  readonly shouldOmit: (name: string, level: number) => boolean;
  /** Maximum size of a string that is kept as the value of a member, in bytes. */
  readonly textMax: (name: string) => number;
}

/** Text that replaces a string that is too long. It is not empty, so checks for a non-empty string still succeed. */
export const standIn = "(left out)";

/** Maximum size of a name that is examined, in bytes. */
const nameMax = 64;

const { COLON, COMMA, QUOTE } = sign;

const bytesOf = (text: string): Uint8Array => Buffer.from(text);

const standInBytes = bytesOf(JSON.stringify(standIn));
const noText = bytesOf('""');

/** Each ASCII character as an array of one byte, by its code. */
const signs: ReadonlyArray<Uint8Array> = Array.from({ length: 128 }, (_, code) => Uint8Array.of(code));

/** Writes one outline while a scan of the body reports its tokens. */
export class OutlineText implements JsonListener {
  readonly #bytes: Uint8Array;
  readonly #terms: OutlineTerms;
  readonly #parts: Array<Uint8Array> = [];
  #length = 0;
  /** By level: 1 if something was already written there, so that a comma must precede the next part. */
  readonly #begun = new Uint8Array(levelsMax + 2);
  #level = 0;
  /** The number of open levels within an omitted value. */
  #within = 0;
  #name = "";
  #leftOut = false;
  #full = false;
  #brackets = 0;

  /** @param bytes the scanned bytes */
  constructor(bytes: Uint8Array, terms: OutlineTerms) {
    this.#bytes = bytes;
    this.#terms = terms;
  }

  /** True if the outline exceeded its maximum size. */
  get isFull(): boolean {
    return this.#full;
  }

  /** The number of objects and lists that were read, including omitted ones. */
  get parts(): number {
    return this.#brackets;
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#length;
  }

  get text(): string {
    return Buffer.concat(this.#parts).toString();
  }

  readonly isDone = (): boolean => this.#full;

  readonly open = (bracket: number): void => {
    this.#brackets += 1;
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
    // The value after a name needs no comma.
    this.#begun[this.#level] = 0;
    this.#take(this.#bytes.subarray(from, to));
    this.#byte(COLON);
    this.#name = nameOf(this.#bytes, from, to);
    this.#leftOut = this.#terms.shouldOmit(this.#name, this.#level);
  };

  readonly scalar = (from: number, to: number): void => {
    if (this.#within > 0) return;
    this.#separate();
    if (this.#bytes[from] !== QUOTE) this.#take(this.#bytes.subarray(from, to));
    else if (this.#leftOut) this.#take(noText);
    else if (to - from > this.#terms.textMax(this.#name)) this.#take(standInBytes);
    else this.#take(this.#bytes.subarray(from, to));
    this.#leftOut = false;
    this.#name = "";
  };

  /** Writes a comma unless the part is the first of its level. */
  #separate(): void {
    if (this.#begun[this.#level] === 1) this.#byte(COMMA);
    this.#begun[this.#level] = 1;
  }

  #byte(byte: number): void {
    this.#take(signs[byte] ?? noText);
  }

  #take(bytes: Uint8Array): void {
    if (this.#length + bytes.length > this.#terms.bytesMax) this.#full = true;
    if (this.#full) return;
    this.#length += bytes.length;
    this.#parts.push(bytes);
  }
}

/** Returns the name of a member; empty if the name is escaped or long, because no such name is ever left out. */
export const nameOf = (bytes: Uint8Array, from: number, to: number): string => {
  if (to - from - 2 > nameMax) return "";
  const letters = lettersOf(bytes, from + 1, to - 1);
  return letters.includes("\\") ? "" : letters;
};
