/**
 * Reads JSON from its bytes in slices, and tells what stands where. It takes for JSON what `JSON.parse` takes of the same bytes decoded
 * as UTF-8: a byte order mark at their beginning and damaged characters in a text are no mistake.
 *
 * It makes no values: 60 MB of `{},{},…` become 2 GB of objects in `JSON.parse`, within one turn of the event loop. What it holds is a
 * byte for each level. A slice may end anywhere, in a text or a number too.
 */
import * as Effect from "effect/Effect";
import { JsonNumber } from "./JsonNumber.ts";

/** Who is told. Places are offsets into the bytes; a text has its quotes. */
export interface JsonListener {
  /** @param bracket of an object or a list */
  readonly open: (bracket: number, at: number) => void;
  /** @param to behind the bracket */
  readonly close: (bracket: number, to: number) => void;
  readonly key: (from: number, to: number) => void;
  /** A text, a number or a word that is a value. */
  readonly scalar: (from: number, to: number) => void;
  /** It has heard enough; asked between two slices. */
  readonly isDone?: () => boolean;
}

/** How a reading ended. `deep`: the levels are too many. `done`: the listener had heard enough. */
export type JsonEnd = "json" | "damaged" | "deep" | "done";

/** Most levels that are read: models' APIs take some ten or a hundred. */
export const levelsMax = 1_024;

/** Most bytes that are read in one turn of the event loop: some 0.2 ms of text, and 1 ms where every byte is a token. */
export const sliceBytes = 64 * 1_024;

/**
 * Bytes that are read in the first turn; twice as many in each further one. A process that has never read so much JSON has not compiled
 * this code, and takes up to a microsecond for a byte.
 */
export const firstSliceBytes = 4 * 1_024;

/** Bytes of JSON's own signs. */
export const sign = {
  QUOTE: 0x22,
  COMMA: 0x2c,
  COLON: 0x3a,
  BACKSLASH: 0x5c,
  OPEN_LIST: 0x5b,
  CLOSE_LIST: 0x5d,
  OPEN_OBJECT: 0x7b,
  CLOSE_OBJECT: 0x7d,
} as const;

const { BACKSLASH, CLOSE_LIST, CLOSE_OBJECT, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE } = sign;

/** Reads to the end, and lets others have their turn behind every slice. */
export const scanned = (bytes: Uint8Array, listener: JsonListener): Effect.Effect<JsonEnd> =>
  Effect.gen(function* () {
    const scan = new JsonScan(bytes, listener);
    for (let count = firstSliceBytes; ; count = Math.min(sliceBytes, 2 * count)) {
      const end = scan.read(count);
      if (end !== undefined) return end;
      if (listener.isDone?.() === true) return "done";
      yield* Effect.yieldNow;
    }
  });

/** What may come next. */
type Next =
  | "value"
  | "value_or_end"
  | "key"
  | "key_or_end"
  | "colon"
  | "comma_or_end"
  | "nothing"
  | "in_text"
  | "in_number";

/** Reads one text of JSON. */
export class JsonScan {
  readonly #bytes: Uint8Array;
  readonly #listener: JsonListener;
  /** The bracket of each level that is open. */
  readonly #levels = new Uint8Array(levelsMax);
  readonly #number = new JsonNumber();
  #depth = 0;
  #at: number;
  /** Where the text or number begins that is read. */
  #from = 0;
  #isKey = false;
  #next: Next = "value";
  #fault: "damaged" | "deep" | undefined;

  constructor(bytes: Uint8Array, listener: JsonListener) {
    this.#bytes = bytes;
    this.#listener = listener;
    this.#at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  }

  /**
   * Reads on.
   *
   * @param count bytes, about: an escape is read whole
   * @returns undefined where there is more to read
   */
  read(count: number): Exclude<JsonEnd, "done"> | undefined {
    const until = Math.min(this.#bytes.length, this.#at + count);
    while (this.#at < until) {
      if (this.#next === "in_text") this.#text(until);
      else if (this.#next === "in_number") this.#digits(until);
      else this.#token(this.#bytes[this.#at] ?? 0);
      if (this.#fault !== undefined) return this.#fault;
    }
    if (this.#at < this.#bytes.length) return undefined;
    if (this.#next === "in_number" && this.#number.isWhole) this.#scalar();
    return this.#next === "nothing" ? "json" : "damaged";
  }

  #token(byte: number): void {
    if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) {
      this.#at += 1;
      return;
    }
    switch (this.#next) {
      case "value_or_end":
        if (byte === CLOSE_LIST) this.#close(byte);
        else this.#value(byte);
        break;
      case "value":
        this.#value(byte);
        break;
      case "key_or_end":
        if (byte === CLOSE_OBJECT) this.#close(byte);
        else this.#key(byte);
        break;
      case "key":
        this.#key(byte);
        break;
      case "colon":
        if (byte === COLON) this.#expect("value");
        else this.#damaged();
        break;
      case "comma_or_end":
        if (byte !== COMMA) this.#close(byte);
        else this.#expect(this.#levels[this.#depth - 1] === OPEN_OBJECT ? "key" : "value");
        break;
      default:
        this.#damaged();
    }
  }

  #damaged(): void {
    this.#fault = "damaged";
  }

  #expect(next: Next): void {
    this.#at += 1;
    this.#next = next;
  }

  #key(byte: number): void {
    if (byte !== QUOTE) this.#damaged();
    this.#isKey = true;
    this.#from = this.#at;
    this.#expect("in_text");
  }

  #value(byte: number): void {
    this.#from = this.#at;
    this.#isKey = false;
    if (byte === QUOTE) this.#expect("in_text");
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.#open(byte);
    else if (this.#number.begin(byte)) this.#expect("in_number");
    else this.#word(byte === 0x74 ? TRUE : byte === 0x66 ? FALSE : NULL);
  }

  #open(bracket: number): void {
    if (this.#depth === levelsMax) {
      this.#fault = "deep";
      return;
    }
    this.#levels[this.#depth] = bracket;
    this.#depth += 1;
    this.#listener.open(bracket, this.#at);
    this.#expect(bracket === OPEN_OBJECT ? "key_or_end" : "value_or_end");
  }

  /** The bracket of an object is closed two characters behind it in ASCII, and so is a list's. */
  #close(byte: number): void {
    if (byte - 2 !== this.#levels[this.#depth - 1]) {
      this.#damaged();
      return;
    }
    this.#depth -= 1;
    this.#expect(this.#depth === 0 ? "nothing" : "comma_or_end");
    this.#listener.close(byte, this.#at);
  }

  #scalar(): void {
    this.#next = this.#depth === 0 ? "nothing" : "comma_or_end";
    this.#listener.scalar(this.#from, this.#at);
  }

  #word(letters: ReadonlyArray<number>): void {
    if (letters.some((letter, index) => this.#bytes[this.#at + index] !== letter)) this.#damaged();
    else {
      this.#at += letters.length;
      this.#scalar();
    }
  }

  #digits(until: number): void {
    this.#at = this.#number.read(this.#bytes, this.#at, until);
    if (this.#number.isDamaged) this.#damaged();
    else if (this.#at < until) this.#scalar();
  }

  #text(until: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    while (at < until) {
      const byte = bytes[at] ?? 0;
      if (isOrdinary[byte] === 1) {
        at += 1;
        continue;
      }
      if (byte === QUOTE) {
        this.#at = at + 1;
        this.#textEnded();
        return;
      }
      const length = byte === BACKSLASH ? escapeLength(bytes, at) : 0;
      if (length === 0) {
        this.#damaged();
        return;
      }
      at += length;
    }
    this.#at = at;
  }

  #textEnded(): void {
    if (this.#isKey) {
      this.#next = "colon";
      this.#listener.key(this.#from, this.#at);
    } else this.#scalar();
  }
}

/** Bytes of a text that stand for themselves: all but quotes, backslashes and control characters. */
const isOrdinary = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH ? 0 : 1,
);

const lettersOf = (word: string): ReadonlyArray<number> => [...word].map((letter) => letter.charCodeAt(0));

const TRUE = lettersOf("true");
const FALSE = lettersOf("false");
const NULL = lettersOf("null");

const short: ReadonlySet<number> = new Set(lettersOf('"\\/bfnrt'));

/** Bytes of the escape at a place; 0 where it is none. */
const escapeLength = (bytes: Uint8Array, at: number): number => {
  const letter = bytes[at + 1] ?? 0;
  if (short.has(letter)) return 2;
  if (letter !== 0x75) return 0;
  for (let digit = at + 2; digit < at + 6; digit += 1) if (!isHex(bytes[digit] ?? 0)) return 0;
  return 6;
};

const isHex = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);
