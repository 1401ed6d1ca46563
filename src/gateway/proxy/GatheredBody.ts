/**
 * Puts a body together as it comes, so that no turn of the event loop copies much of it: where memory is dear to come by, 7 MB of it take
 * 60 ms.
 */
import { Effect } from "effect";
import { wholeBytesMax } from "../body/BodyOutline.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";

/** A large body that says its length has a place of that length once one part in so many has come: nobody claims memory by a number. */
const claimedMost = 8;

/** A new chunk takes one part in so many of its length along: seven eighths that come take along more than the one that came before. */
const takenAlong = 4;

/** A body that comes. */
export class GatheredBody {
  readonly #claimed: number;
  /**
   * What came before there was a place: less than one part in `claimedMost` of a length that is claimed, and the whole body where none or
   * a short one is. Each new chunk takes some of it to its place.
   */
  readonly #chunks: Array<Uint8Array> = [];
  /** Bytes of `#chunks`. */
  #waiting = 0;
  #place: Buffer<ArrayBuffer> | undefined;
  #length = 0;

  /** @param claimed length, in bytes; 0 where none is said */
  constructor(claimed: number) {
    this.#claimed = claimed;
  }

  /** Takes what has come; copies a quarter as much of what came before, too, and the rest of a chunk. */
  take(chunk: Uint8Array): void {
    this.#length += chunk.byteLength;
    if (this.#place === undefined && this.#claimed > wholeBytesMax && this.#length * claimedMost >= this.#claimed)
      this.#place = Buffer.allocUnsafeSlow(this.#claimed);
    if (this.#place === undefined) {
      this.#chunks.push(chunk);
      this.#waiting += chunk.byteLength;
      return;
    }
    this.#place.set(chunk, this.#length - chunk.byteLength);
    this.#settle(this.#place, chunk.byteLength / takenAlong);
  }

  /** All that has come. */
  get whole(): Effect.Effect<Bytes> {
    return Effect.suspend(() => {
      if (this.#place === undefined) return joined(this.#chunks);
      // Of a body that has come to its length nothing waits any more.
      this.#settle(this.#place, this.#waiting);
      return Effect.succeed(this.#place.subarray(0, this.#length));
    });
  }

  /** Puts chunks in their place, the last one first: an array loses its last one at no cost. */
  #settle(place: Buffer<ArrayBuffer>, bytes: number): void {
    const until = Math.max(0, this.#waiting - bytes);
    while (this.#waiting > until) {
      const chunk = this.#chunks.pop();
      if (chunk === undefined) return;
      this.#waiting -= chunk.byteLength;
      place.set(chunk, this.#waiting);
    }
  }
}

/** Bytes that are copied in one turn of the event loop. */
const copiedBytes = 1_024 * 1_024;

/** Joins chunks; many bytes in several turns. */
export const joined = (chunks: ReadonlyArray<Uint8Array>): Effect.Effect<Bytes> => {
  const length = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  // A buffer of its own: the slices of Node's pool would keep all of it.
  return length > copiedBytes
    ? joinedInTurns(chunks, length)
    : Effect.sync(() => placed(chunks, Buffer.allocUnsafeSlow(length)));
};

const joinedInTurns = Effect.fnUntraced(function* (chunks: ReadonlyArray<Uint8Array>, length: number) {
  const all = Buffer.allocUnsafeSlow(length);
  let at = 0;
  let turn = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.byteLength;
    turn += chunk.byteLength;
    if (turn < copiedBytes) continue;
    turn = 0;
    yield* Effect.yieldNow;
  }
  return all;
});

const placed = (chunks: ReadonlyArray<Uint8Array>, place: Buffer<ArrayBuffer>): Buffer<ArrayBuffer> => {
  let at = 0;
  for (const chunk of chunks) {
    place.set(chunk, at);
    at += chunk.byteLength;
  }
  return place;
};
