/**
 * Scans JSON bytes in slices and reports each token with its offset. It accepts what `JSON.parse` accepts of the same bytes decoded
 * as UTF-8, including a leading byte order mark and damaged characters in a string.
 *
 * It creates no values: `JSON.parse` turns 60 MB of `{},{},…` into 2 GB of objects within one turn of the event loop. It holds one
 * byte for each level. A slice may end anywhere, even in a string or a number.
 */
import * as Effect from "effect/Effect";

/** Receives the tokens of a scan. Offsets are into the bytes, and a string includes its quotes. */
export interface JsonListener {
  /** @param bracket the opening bracket of an object or a list */
  readonly open: (bracket: number, at: number) => void;
  /** @param to the offset after the bracket */
  readonly close: (bracket: number, to: number) => void;
  readonly key: (from: number, to: number) => void;
  /** Called for a string, a number or a word that is a value. */
  readonly scalar: (from: number, to: number) => void;
  /** Returns true to stop the scan; called between two slices. */
  readonly isDone?: () => boolean;
}

/** The end of a scan. `deep`: too many levels. `done`: the listener stopped it. */
export type JsonEnd = "json" | "damaged" | "deep" | "done";

/** Maximum levels: models' APIs accept some ten or a hundred. */
export const levelsMax = 1_024;

/** Maximum bytes read in one turn of the event loop: about 0.2 ms of text, and 1 ms if every byte is a token. */
export const sliceBytes = 64 * 1_024;

/**
 * Bytes read in the first turn; each further turn doubles them, up to `sliceBytes`. A process that has not read this much JSON yet
 * has not compiled this code, and takes up to a microsecond per byte.
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

/** Scans to the end, and yields to other fibers after every slice. */
export const scanInTurns = (bytes: Uint8Array, listener: JsonListener): Effect.Effect<JsonEnd> =>
  Effect.gen(function* () {
    const scan = new JsonScan(bytes, listener);
    for (let count = firstSliceBytes; ; count = Math.min(sliceBytes, 2 * count)) {
      const end = scan.read(count);
      if (end !== undefined) return end;
      if (listener.isDone?.() === true) return "done";
      yield* Effect.yieldNow;
    }
  });

type Next =
  | "value"
  | "value_or_end"
  | "key"
  | "key_or_end"
  | "colon"
  | "comma_or_end"
  | "nothing"
  | "in_text"
  | "in_word";

/** Scans one JSON text. */
export class JsonScan {
  readonly #bytes: Uint8Array;
  readonly #listener: JsonListener;
  /** The opening bracket of each open level. */
  readonly #levels: Uint8Array;
  #depth = 0;
  #at: number;
  /** Start of the string or number being read. */
  #from = 0;
  #isKey = false;
  #next: Next = "value";
  #fault: "damaged" | "deep" | undefined;

  constructor(bytes: Uint8Array, listener: JsonListener, levels = levelsMax) {
    this.#bytes = bytes;
    this.#listener = listener;
    this.#levels = new Uint8Array(levels);
    this.#at = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  }

  /**
   * Scans further bytes.
   *
   * @param count approximate number of bytes, because an escape is read whole
   * @returns undefined if there is more to read
   */
  read(count: number): Exclude<JsonEnd, "done"> | undefined {
    const until = Math.min(this.#bytes.length, this.#at + count);
    while (this.#at < until) {
      if (this.#next === "in_text") this.#text(until);
      else if (this.#next === "in_word") this.#word(until);
      else this.#token(this.#bytes[this.#at] ?? 0);
      if (this.#fault !== undefined) return this.#fault;
    }
    if (this.#at < this.#bytes.length) return undefined;
    if (this.#next === "in_word") this.#endWord();
    return this.#fault ?? (this.#next === "nothing" ? "json" : "damaged");
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
        else this.#markDamaged();
        break;
      case "comma_or_end":
        if (byte !== COMMA) this.#close(byte);
        else this.#expect(this.#levels[this.#depth - 1] === OPEN_OBJECT ? "key" : "value");
        break;
      default:
        this.#markDamaged();
    }
  }

  #markDamaged(): void {
    this.#fault = "damaged";
  }

  #expect(next: Next): void {
    this.#at += 1;
    this.#next = next;
  }

  #key(byte: number): void {
    if (byte !== QUOTE) this.#markDamaged();
    this.#isKey = true;
    this.#from = this.#at;
    this.#expect("in_text");
  }

  #value(byte: number): void {
    this.#from = this.#at;
    this.#isKey = false;
    if (byte === QUOTE) this.#expect("in_text");
    else if (byte === OPEN_OBJECT || byte === OPEN_LIST) this.#open(byte);
    else if (isWordByte[byte] === 1) this.#expect("in_word");
    else this.#markDamaged();
  }

  #open(bracket: number): void {
    if (this.#depth === this.#levels.length) {
      this.#fault = "deep";
      return;
    }
    this.#levels[this.#depth] = bracket;
    this.#depth += 1;
    this.#listener.open(bracket, this.#at);
    this.#expect(bracket === OPEN_OBJECT ? "key_or_end" : "value_or_end");
  }

  /** In ASCII, the closing bracket of an object or a list is two characters after its opening one. */
  #close(byte: number): void {
    if (byte - 2 !== this.#levels[this.#depth - 1]) {
      this.#markDamaged();
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

  #word(until: number): void {
    while (this.#at < until && isWordByte[this.#bytes[this.#at] ?? 0] === 1) this.#at += 1;
    if (this.#at < until || this.#at - this.#from > wordBytesMax) this.#endWord();
  }

  #endWord(): void {
    const length = this.#at - this.#from;
    if (length <= wordBytesMax && word.test(lettersOf(this.#bytes, this.#from, this.#at))) this.#scalar();
    else this.#markDamaged();
  }

  #text(until: number): void {
    const bytes = this.#bytes;
    let at = this.#at;
    while (at < until) {
      const byte = bytes[at] ?? 0;
      if (byte !== QUOTE && byte !== BACKSLASH && byte >= 0x20) {
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
        this.#markDamaged();
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

/** 1 for the bytes of numbers, `true`, `false` and `null`. */
const isWordByte = Uint8Array.from({ length: 256 }, (_, byte) =>
  /[-+.0-9a-zE]/.test(String.fromCharCode(byte)) ? 1 : 0,
);

/** Maximum size of a number, in bytes. A longer one counts as damaged. */
export const wordBytesMax = 1_024;

const word = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

/** Reads each byte as one character. For a few bytes, joining is faster than spreading. */
export const lettersOf = (bytes: Uint8Array, from: number, to: number): string => {
  let text = "";
  for (let at = from; at < to; at += 1) text += String.fromCharCode(bytes[at] ?? 0);
  return text;
};

/** Length of the escape at an offset, in bytes; 0 if there is none. */
const escapeLength = (bytes: Uint8Array, at: number): number => {
  const letter = bytes[at + 1] ?? 0;
  if ('"\\/bfnrt'.includes(String.fromCharCode(letter))) return 2;
  if (letter !== 0x75) return 0;
  for (let digit = at + 2; digit < at + 6; digit += 1) if (!isHex(bytes[digit] ?? 0)) return 0;
  return 6;
};

const isHex = (byte: number): boolean =>
  (byte >= 0x30 && byte <= 0x39) || (byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66);
