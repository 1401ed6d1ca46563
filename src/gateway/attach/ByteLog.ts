/**
 * Keeps the bytes of one response in their order, for readers that begin anywhere.
 *
 * Bytes are copied where they are a view of a larger packet, which would be kept with them. A chunk that fills its own buffer is kept
 * as it is: what a socket or a decoder has given is never written to again. So what a reader is given stays what it is while its
 * socket takes it.
 */
import type { Bytes } from "../upstream/ContentDecoding.ts";

interface Segment {
  /** Where in the response it begins. */
  readonly at: number;
  readonly bytes: Bytes;
  used: number;
}

/** Smallest and largest segment, in bytes: a short response takes little, and a long one has few parts. */
const segmentMin = 4 * 1024;
const segmentMax = 64 * 1024;

/** Least room that is given back behind the end of a response, in bytes: a short response has less, and would only be copied. */
const spareMin = 8 * 1024;

/** Shortest chunk that is kept in its own buffer, in bytes: many small ones would each be a burden to the collector. */
const keptMin = 1024;

/** The bytes of one response. */
export class ByteLog {
  readonly #segments: Array<Segment> = [];
  #length = 0;
  #held = 0;

  /** Bytes of the response so far, those that were dropped too. */
  get length(): number {
    return this.#length;
  }

  /** The first byte that is kept. */
  get start(): number {
    return this.#segments[0]?.at ?? this.#length;
  }

  /** Memory that is taken, in bytes. */
  get held(): number {
    return this.#held;
  }

  /** Adds bytes at the end. */
  append(bytes: Bytes): void {
    if (this.#keeps(bytes)) {
      this.#add({ at: this.#length, bytes, used: bytes.byteLength }, bytes.buffer.byteLength);
      this.#length += bytes.byteLength;
      return;
    }
    for (let done = 0; done < bytes.byteLength; ) {
      const last = this.#free(bytes.byteLength - done);
      const room = last.bytes.byteLength - last.used;
      // A view costs as much as the copy of an event.
      const part = done === 0 && room >= bytes.byteLength ? bytes : bytes.subarray(done, done + room);
      last.bytes.set(part, last.used);
      last.used += part.byteLength;
      this.#length += part.byteLength;
      done += part.byteLength;
    }
  }

  /** The response is over: room that is left over is given back, where it is worth the copy. */
  ends(): void {
    const last = this.#segments.at(-1);
    if (last === undefined) return;
    const room = last.bytes.byteLength - last.used;
    if (room < spareMin) return;
    const size = last.used;
    const bytes = new Uint8Array(Buffer.allocUnsafeSlow(size).buffer);
    bytes.set(last.bytes.subarray(0, size));
    // What a reader was given of the old one stays as it is.
    this.#segments[this.#segments.length - 1] = { at: last.at, bytes, used: size };
    this.#held -= room;
  }

  #free(wanted: number): Segment {
    const last = this.#segments.at(-1);
    if (last !== undefined && last.used < last.bytes.byteLength) return last;
    // A response doubles what it takes, so that at most half of it is empty.
    const size = Math.min(segmentMax, Math.max(segmentMin, 2 * (this.#length - this.start) - this.#held, wanted));
    // What is not used of it is never given to anybody, so that nothing has to be written to it first.
    const segment = { at: this.#length, bytes: new Uint8Array(Buffer.allocUnsafeSlow(size).buffer), used: 0 };
    this.#add(segment, size);
    return segment;
  }

  #add(segment: Segment, held: number): void {
    this.#segments.push(segment);
    this.#held += held;
  }

  /** Whether a chunk is kept in its own buffer: it is long, fills that nearly, and leaves no hole behind what stands before it. */
  #keeps({ buffer, byteLength }: Bytes): boolean {
    if (byteLength < keptMin || 4 * byteLength < 3 * buffer.byteLength) return false;
    const last = this.#segments.at(-1);
    return last === undefined || last.used === last.bytes.byteLength;
  }

  /**
   * The bytes from a place on, as far as they lie together; undefined at the end.
   *
   * @param at not before `start`
   */
  from(at: number): Bytes | undefined {
    const found = this.#segments.find((segment) => at < segment.at + segment.used);
    return found?.bytes.subarray(at - found.at, found.used);
  }

  /** Forgets what stands before a place. */
  dropUntil(at: number): void {
    const kept = this.#segments.findIndex((segment) => at < segment.at + segment.bytes.byteLength);
    const dropped = kept === -1 ? this.#segments.splice(0) : this.#segments.splice(0, kept);
    for (const { bytes } of dropped) this.#held -= bytes.buffer.byteLength;
  }
}
