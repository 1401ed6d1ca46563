/**
 * Writes a request's JSON in a canonical form, so that a client's repeat is recognised although it is written differently. Codex changes
 * the order of an object's keys, and claude-code omits `stream`.
 *
 * Keys are sorted, and blanks between tokens are dropped; nothing else changes. Numbers, strings and words keep their own bytes, so that
 * two requests which a provider may read differently (`1` and `1.0`, `"/"` and `"\/"`, damaged UTF-8) stay distinct. Anything ambiguous has
 * no canonical form: a duplicate key, an escaped key, a byte order mark, text that is not JSON. Values and levels are bounded, because a
 * form is computed in one turn of the event loop.
 */
import { type JsonListener, JsonScan, lettersOf, sign, sliceBytes } from "./JsonScan.ts";

/** Maximum size of a body that is read in one turn of the event loop, in bytes. */
export const canonicalBytesMax = 1_024 * 1_024;

/** Maximum nesting, in levels: a tool's schema has ten or twenty. */
export const depthMax = 128;

/** Maximum values and names. A conversation of a megabyte has about a tenth of them. */
export const valuesMax = 62_500;

/** Maximum size of a form that is written to a shared buffer, in bytes. A new buffer costs as much as the rest of a form. */
export const sharedBytesMax = 16 * 1024;

const { COLON, COMMA, OPEN_OBJECT } = sign;

const shared = new Uint8Array(sharedBytesMax);

/**
 * Returns the canonical form of a body. It is valid until the next one is computed, so it must be digested in the same step.
 *
 * @param body the bytes as sent
 * @param leftOut members of the outermost object that do not distinguish requests
 * @returns undefined if the body has no canonical form
 */
export const canonical = (body: Uint8Array, leftOut: ReadonlySet<string>): Uint8Array<ArrayBuffer> | undefined => {
  const form = canonicalValue(body, leftOut);
  return form?.[0] === OPEN_OBJECT ? form : undefined;
};

/** Returns the canonical form of any JSON value, by the rules of `canonical`. */
export const canonicalValue = (
  json: Uint8Array,
  leftOut?: ReadonlySet<string>,
): Uint8Array<ArrayBuffer> | undefined => {
  const values = new Values(json, leftOut);
  const scan = new JsonScan(json, values, depthMax);
  let end = scan.read(sliceBytes);
  while (end === undefined && !values.isUnclear) end = scan.read(sliceBytes);
  if (end !== "json" || values.isUnclear || json[0] === byteOrderMark) return undefined;
  // A form never becomes longer than its value.
  const out = json.length <= sharedBytesMax ? shared : new Uint8Array(json.length);
  return out.subarray(0, write(values.parts, json, out, 0));
};

/** The first byte of a byte order mark, which not every JSON reader accepts. */
export const byteOrderMark = 0xef;

/** Maximum size of a name, in bytes. */
const nameBytesMax = 256;

/** A value without parts, by its offsets in the JSON. */
interface Scalar {
  readonly from: number;
  readonly to: number;
}

/** A value, with its name if it is a member of an object. */
interface Part {
  /** The bytes between the quotes of the name, one code unit each; empty without a name. */
  readonly key: string;
  readonly name: Scalar | undefined;
  readonly value: Scalar | Composite;
}

/** An object or a list, by its opening bracket and its parts in order. */
interface Composite {
  readonly bracket: number;
  readonly parts: ReadonlyArray<Part>;
}

/** Collects the values of a scan. */
class Values implements JsonListener {
  /** After the scan, the outermost value as the only part. */
  parts: Array<Part> = [];
  /** True if the JSON is ambiguous, or exceeds a limit. */
  isUnclear = false;
  readonly #json: Uint8Array;
  readonly #leftOut: ReadonlySet<string> | undefined;
  readonly #open: Array<Omit<Part, "value"> & { readonly around: Array<Part> }> = [];
  #key = "";
  #name: Scalar | undefined;
  #count = 0;

  constructor(json: Uint8Array, leftOut: ReadonlySet<string> | undefined) {
    this.#json = json;
    this.#leftOut = leftOut;
  }

  readonly open = (): void => {
    this.#open.push({ key: this.#key, name: this.#name, around: this.parts });
    this.parts = [];
    this.#name = undefined;
  };

  readonly close = (closing: number): void => {
    const opened = this.#open.pop();
    if (opened === undefined) return;
    const { around, key, name } = opened;
    const bracket = closing - 2;
    const parts = bracket === OPEN_OBJECT ? this.#sortAndDrop(this.parts) : this.parts;
    this.parts = around;
    this.#add({ key, name, value: { bracket, parts } });
  };

  readonly key = (from: number, to: number): void => {
    this.#count += 1;
    const isLong = to - from > nameBytesMax;
    this.#key = isLong ? "" : lettersOf(this.#json, from + 1, to - 1);
    this.#name = { from, to };
    this.isUnclear ||= isLong || this.#key.includes("\\");
  };

  readonly scalar = (from: number, to: number): void => {
    this.#add({ key: this.#key, name: this.#name, value: { from, to } });
    this.#name = undefined;
  };

  #add(part: Part): void {
    this.#count += 1;
    if (this.#count > valuesMax) this.isUnclear = true;
    else this.parts.push(part);
  }

  #sortAndDrop(parts: Array<Part>): ReadonlyArray<Part> {
    if (parts.length > 1) parts.sort((one, other) => (one.key < other.key ? -1 : 1));
    // Only the provider decides which of two members of one name counts.
    this.isUnclear ||= parts.some(({ key }, index) => parts[index + 1]?.key === key);
    const leftOut = this.#open.length === 0 ? this.#leftOut : undefined;
    return leftOut === undefined ? parts : parts.filter(({ key }) => !leftOut.has(key));
  }
}

/** Writes parts with commas between them. Returns the offset after the last one. */
const write = (parts: ReadonlyArray<Part>, json: Uint8Array, out: Uint8Array, from: number): number => {
  let at = from;
  const copy = (scalar: Scalar): void => {
    out.set(json.subarray(scalar.from, scalar.to), at);
    at += scalar.to - scalar.from;
  };
  for (const { name, value } of parts) {
    if (at > from) out[at++] = COMMA;
    if (name !== undefined) {
      copy(name);
      out[at++] = COLON;
    }
    if ("bracket" in value) {
      out[at] = value.bracket;
      at = write(value.parts, json, out, at + 1);
      out[at++] = value.bracket + 2;
    } else copy(value);
  }
  return at;
};
