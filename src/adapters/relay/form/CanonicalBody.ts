/**
 * Writes a request's JSON in a canonical form, so that a client's repeat is recognised although it is written differently. Codex changes
 * the order of an object's keys, and claude-code omits `stream`.
 *
 * Keys are sorted, and blanks between tokens are dropped; nothing else changes. Numbers, strings and words keep their own bytes, so that
 * two requests which a provider may read differently (`1` and `1.0`, `"/"` and `"\/"`, damaged UTF-8) stay distinct. Anything ambiguous has
 * no canonical form: a duplicate key, an escaped key, text that is not JSON. Steps and levels are bounded, because a form is computed in
 * one turn of the event loop.
 */
import { sign } from "./JsonScan.ts";

/** Maximum size of a body that is read in one turn of the event loop, in bytes. */
export const canonicalBytesMax = 1_024 * 1_024;

/** Maximum nesting, in levels: a tool's schema has ten or twenty. */
export const depthMax = 128;

/**
 * Maximum steps of the reader: eight for each value, one for each quote or backslash in a string, and one for each blank or digit
 * between strings. This many take about 50 ms; a conversation of a megabyte needs about a tenth of them.
 */
export const stepsMax = 500_000;

/** Maximum size of a form that is written to a shared buffer, in bytes. A new buffer costs as much as the rest of a form. */
export const sharedBytesMax = 16 * 1024;

const shared = new Uint8Array(sharedBytesMax);

/**
 * Returns the canonical form of a body. It is valid until the next one is computed, so it must be digested in the same step.
 *
 * @param body the bytes as sent
 * @param leftOut members of the outermost object that do not distinguish requests
 * @returns undefined if the body has no canonical form
 */
export const canonical = (body: Uint8Array, leftOut: ReadonlySet<string>): Uint8Array<ArrayBuffer> | undefined =>
  canonicalize(body, (whole) => {
    if (!("members" in whole)) throw unclear;
    return { members: whole.members.filter(({ key }) => !leftOut.has(key)) };
  });

/** Returns the canonical form of any JSON value, by the rules of `canonical`. */
export const canonicalValue = (json: Uint8Array): Uint8Array<ArrayBuffer> | undefined =>
  canonicalize(json, (whole) => whole);

const canonicalize = (json: Uint8Array, keep: (whole: Value) => Value): Uint8Array<ArrayBuffer> | undefined => {
  try {
    const kept = keep(new Reader(json).document());
    const writer = new Writer(json);
    writer.write(kept);
    return writer.bytes;
  } catch (error) {
    if (error === unclear) return undefined;
    throw error;
  }
};

/** A value without parts, by its offsets in the body. */
interface Scalar {
  readonly from: number;
  readonly to: number;
}

interface Member {
  /** The bytes between the quotes, one code unit each. */
  readonly key: string;
  readonly name: Scalar;
  readonly value: Value;
}

type Value = Scalar | { readonly items: ReadonlyArray<Value> } | { readonly members: ReadonlyArray<Member> };

/** Thrown for a body without a canonical form. There is one instance, because a stack trace costs more than a body. */
const unclear = new Error("no canonical form");

const { BACKSLASH, CLOSE_LIST, CLOSE_OBJECT, COLON, COMMA, OPEN_LIST, OPEN_OBJECT, QUOTE } = sign;

const isBlank = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** True for lower-case letters, digits, signs and points: the bytes of numbers, `true`, `false` and `null`. */
const isWord = (byte: number | undefined): boolean =>
  byte !== undefined &&
  ((byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x45 ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e);

/** Reads each byte as one code unit. For a few bytes, joining is faster than spreading. */
const unitsOf = (body: Uint8Array, from: number, to: number): string => {
  let text = "";
  for (let at = from; at < to; at += 1) text += String.fromCharCode(body[at] ?? 0);
  return text;
};

const word = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)$/;

class Reader {
  readonly #body: Uint8Array;
  #at = 0;
  #steps = 0;
  #depth = 0;

  constructor(body: Uint8Array) {
    this.#body = body;
  }

  document(): Value {
    const value = this.#value();
    if (this.#next() !== undefined) throw unclear;
    return value;
  }

  /** The next byte that is not blank; undefined at the end. */
  #next(): number | undefined {
    while (this.#at < this.#body.length) {
      const byte = this.#body[this.#at] ?? 0;
      if (!isBlank(byte)) return byte;
      this.#step();
    }
    return undefined;
  }

  #step(): void {
    this.#at += 1;
    this.#count();
  }

  #count(steps = 1): void {
    this.#steps += steps;
    if (this.#steps > stepsMax) throw unclear;
  }

  #value(): Value {
    this.#count(valueSteps);
    switch (this.#next()) {
      case OPEN_OBJECT:
        return { members: sortMembers(this.#many(CLOSE_OBJECT, () => this.#member())) };
      case OPEN_LIST:
        return { items: this.#many(CLOSE_LIST, () => this.#value()) };
      case QUOTE:
        return this.#text();
      default:
        return this.#word();
    }
  }

  /** Reads comma-separated parts up to the closing bracket. */
  #many<A>(close: number, one: () => A): ReadonlyArray<A> {
    if (++this.#depth > depthMax) throw unclear;
    this.#step();
    const found: Array<A> = [];
    if (this.#next() !== close) {
      found.push(one());
      while (this.#next() === COMMA) {
        this.#step();
        found.push(one());
      }
      if (this.#next() !== close) throw unclear;
    }
    this.#step();
    this.#depth -= 1;
    return found;
  }

  #member(): Member {
    if (this.#next() !== QUOTE) throw unclear;
    const name = this.#text();
    if (name.to - name.from - 2 > wordBytesMax) throw unclear;
    const key = unitsOf(this.#body, name.from + 1, name.to - 1);
    if (key.includes("\\")) throw unclear;
    if (this.#next() !== COLON) throw unclear;
    this.#step();
    return { key, name, value: this.#value() };
  }

  #text(): Scalar {
    const from = this.#at;
    let quote = from;
    do {
      this.#count();
      quote = this.#body.indexOf(QUOTE, quote + 1);
      if (quote === -1) throw unclear;
    } while (this.#isEscaped(quote));
    this.#at = quote + 1;
    return { from, to: this.#at };
  }

  /** True if an odd number of backslashes precedes the quote. */
  #isEscaped(quote: number): boolean {
    let at = quote;
    while (this.#body[at - 1] === BACKSLASH) {
      at -= 1;
      this.#count();
    }
    return (quote - at) % 2 === 1;
  }

  #word(): Scalar {
    const from = this.#at;
    while (isWord(this.#body[this.#at])) this.#step();
    const to = this.#at;
    if (to - from > wordBytesMax || !word.test(unitsOf(this.#body, from, to))) throw unclear;
    return { from, to };
  }
}

/** Maximum size of a number, word or key, in bytes. */
const wordBytesMax = 256;

/** Steps that a value costs, in addition to the bytes that are examined one by one. */
const valueSteps = 8;

const sortMembers = (members: ReadonlyArray<Member>): ReadonlyArray<Member> => {
  if (members.length < 2) return members;
  const inOrder = members.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  // Only the provider decides which of two members of one name counts.
  if (inOrder.some(({ key }, index) => inOrder[index + 1]?.key === key)) throw unclear;
  return inOrder;
};

/** Writes a value, which never becomes longer. */
class Writer {
  readonly #body: Uint8Array;
  readonly #out: Uint8Array<ArrayBuffer>;
  #at = 0;

  constructor(body: Uint8Array) {
    this.#body = body;
    this.#out = body.length <= sharedBytesMax ? shared : new Uint8Array(body.length);
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#out.subarray(0, this.#at);
  }

  write(value: Value): void {
    if ("items" in value) this.#between(OPEN_LIST, CLOSE_LIST, value.items, (item) => this.write(item));
    else if ("members" in value)
      this.#between(OPEN_OBJECT, CLOSE_OBJECT, value.members, (member) => {
        this.write(member.name);
        this.#byte(COLON);
        this.write(member.value);
      });
    else {
      this.#out.set(this.#body.subarray(value.from, value.to), this.#at);
      this.#at += value.to - value.from;
    }
  }

  #between<A>(open: number, close: number, all: ReadonlyArray<A>, one: (part: A) => void): void {
    this.#byte(open);
    for (const [index, part] of all.entries()) {
      if (index > 0) this.#byte(COMMA);
      one(part);
    }
    this.#byte(close);
  }

  #byte(byte: number): void {
    this.#out[this.#at] = byte;
    this.#at += 1;
  }
}
