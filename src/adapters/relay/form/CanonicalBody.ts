/**
 * Spells a request's JSON in one way, so that a client's repeat is known however it is spelt: Codex writes the keys of an object
 * in another order, claude-code leaves `stream` out.
 *
 * Keys are sorted and blanks between tokens are dropped; nothing else is changed. Numbers, texts and words keep their own bytes,
 * so that two requests which a provider may read differently (`1` and `1.0`, `"/"` and `"\/"`, damaged UTF-8) stay two. Whatever
 * could be read in two ways has no canonical form: a key that comes twice, an escaped key, a text that is no JSON. A form costs
 * a bounded number of steps and levels, because it is made between two turns of the event loop.
 */

/** Deepest nesting that is read, in levels: a tool's schema has ten or twenty. */
export const depthMax = 128;

/**
 * Most steps of the reader: eight for each value, one for each quote or backslash in a text, and one for each blank or digit
 * between texts. As many take some 50 ms; a conversation of a megabyte has about a tenth of them.
 */
export const stepsMax = 500_000;

/** Longest form that is written to the same place each time, in bytes: a buffer of its own costs as much as all the rest of a form. */
export const sharedBytesMax = 16 * 1024;

const shared = new Uint8Array(sharedBytesMax);

/**
 * The canonical form of a body, which is good until the next one is made: a digest takes it in the same step.
 *
 * @param body as it is sent
 * @param leftOut members of the outermost object that make no other request
 * @returns undefined for a body that has none
 */
export const canonical = (body: Uint8Array, leftOut: ReadonlySet<string>): Uint8Array<ArrayBuffer> | undefined => {
  try {
    const whole = new Reader(body).document();
    if (!("members" in whole)) return undefined;
    const writer = new Writer(body);
    writer.write({ members: whole.members.filter(({ key }) => !leftOut.has(key)) });
    return writer.bytes;
  } catch (error) {
    if (error === unclear) return undefined;
    throw error;
  }
};

/** A value without parts, by its place in the body. */
interface Scalar {
  readonly from: number;
  readonly to: number;
}

interface Member {
  /** The bytes between the quotes, a code unit each. */
  readonly key: string;
  readonly name: Scalar;
  readonly value: Value;
}

type Value = Scalar | { readonly items: ReadonlyArray<Value> } | { readonly members: ReadonlyArray<Member> };

/** Ends the reading of a body that has no canonical form. It is made once, because a stack trace costs more than a body. */
const unclear = new Error("no canonical form");

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

const isBlank = (byte: number): boolean => byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** Letters of `true`, `false` and `null`, digits, signs and points. */
const isWord = (byte: number | undefined): boolean =>
  byte !== undefined &&
  ((byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x45 ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e);

/** A code unit for each byte of a part. A few bytes are joined sooner than they are spread. */
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

  /** The next byte that is no blank; undefined at the end. */
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
        return { members: sorted(this.#many(CLOSE_OBJECT, () => this.#member())) };
      case OPEN_LIST:
        return { items: this.#many(CLOSE_LIST, () => this.#value()) };
      case QUOTE:
        return this.#text();
      default:
        return this.#word();
    }
  }

  /** What stands between brackets, separated by commas. */
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

  /** A quote is escaped behind an odd number of backslashes. */
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

/** Longest number, word or key that is read, in bytes. */
export const wordBytesMax = 256;

/** What a value costs beside the bytes that are looked at one by one. */
const valueSteps = 8;

const sorted = (members: ReadonlyArray<Member>): ReadonlyArray<Member> => {
  if (members.length < 2) return members;
  const inOrder = members.toSorted((a, b) => (a.key < b.key ? -1 : 1));
  // Which of two members of one name counts is the provider's to say.
  if (inOrder.some(({ key }, index) => inOrder[index + 1]?.key === key)) throw unclear;
  return inOrder;
};

/** Writes a value; it is never longer than it was. */
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
