/**
 * Condenses a large body to what may be changed of it: its outermost members and theirs. What they hold that is long is a hole, and its bytes
 * are put back once the rest was changed.
 */
import { Effect } from "effect";
import { type JsonListener, scanned, sign } from "../../adapters/relay/form/JsonScan.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";

/** A body with its holes. */
export interface CondensedBody {
  readonly of: Bytes;
  /**
   * JSON, a character a byte. A hole is a text in it: a NUL, which no JSON has anywhere, and the hole's number. A list is a hole as a whole,
   * an object of the outermost one is not: its members may be changed.
   */
  readonly text: string;
  readonly holes: ReadonlyArray<Hole>;
}

interface Hole {
  readonly from: number;
  readonly to: number;
}

/** Longest text of a condensed body, in characters. */
export const condensedMax = 1_024 * 1_024;

/** Shorter values are no hole. */
const holeMin = 64;

/** The level of objects whose members' values are holes, also where these are objects. */
const changedLevels = 2;

const { OPEN_LIST } = sign;

/**
 * Condenses a body.
 *
 * @param of JSON
 * @returns undefined where what is left is too long to be changed in one turn
 */
export const condensed = (of: Bytes): Effect.Effect<CondensedBody | undefined> =>
  Effect.suspend(() => {
    const holes = new Holes();
    return Effect.map(scanned(of, holes), () => {
      const kept = holes.found.reduce((bytes, { from, to }) => bytes - (to - from), of.length);
      return kept > condensedMax ? undefined : { of, holes: holes.found, text: textOf(of, holes.found) };
    });
  });

const textOf = (of: Bytes, holes: ReadonlyArray<Hole>): string => {
  const bytes = Buffer.from(of.buffer, of.byteOffset, of.byteLength);
  let at = 0;
  let text = "";
  for (const [index, { from, to }] of holes.entries()) {
    text += `${bytes.toString("latin1", at, from)}"\0${index}"`;
    at = to;
  }
  return text + bytes.toString("latin1", at);
};

/**
 * Puts the bytes of the holes back.
 *
 * @param text the body's own, changed
 */
export const filled = (text: string, { holes, of }: CondensedBody): Buffer<ArrayBuffer> =>
  // The regular expression has one group: every second part is a hole's number.
  Buffer.concat(
    text.split(hole).map((part, index) => {
      if (index % 2 === 0) return Buffer.from(part, "latin1");
      const { from, to } = holes[Number(part)] ?? { from: 0, to: 0 };
      return of.subarray(from, to);
    }),
  );

/** A hole in a text. */
const hole = /"\0(\d+)"/;

/** Finds the holes. */
class Holes implements JsonListener {
  readonly found: Array<Hole> = [];
  #level = 0;
  /** The level behind the hole that is open, and where it begins; 0 where none is. */
  #within = 0;
  #from = 0;

  readonly open = (bracket: number, at: number): void => {
    if (this.#within === 0 && this.#level > 0 && (bracket === OPEN_LIST || this.#level === changedLevels)) {
      this.#within = this.#level;
      this.#from = at;
    }
    this.#level += 1;
  };

  readonly close = (_bracket: number, to: number): void => {
    this.#level -= 1;
    if (this.#within === 0 || this.#within !== this.#level) return;
    this.#within = 0;
    this.#add(this.#from, to);
  };

  readonly key = (): void => undefined;

  readonly scalar = (from: number, to: number): void => {
    if (this.#within === 0) this.#add(from, to);
  };

  #add(from: number, to: number): void {
    if (to - from >= holeMin) this.found.push({ from, to });
  }
}
