/**
 * Keeps the bytes of one response in order, for readers that start at any offset.
 *
 * A chunk that is part of a larger buffer is copied, because it would keep the whole buffer alive. A chunk that fills its buffer is kept
 * without a copy, because sockets and decoders never write to that buffer again. The bytes that a reader gets therefore do not change while
 * its socket sends them.
 */
import type { Bytes } from "../upstream/ContentDecoding.ts";

interface Segment {
  /** Offset of the segment in the response. */
  readonly at: number;
  readonly bytes: Bytes;
  used: number;
}

/**
 * Minimum and maximum size of a segment, in bytes. Segments grow, so that a short response takes little memory and a long one has few
 * segments.
 */
const segmentMin = 4 * 1024;
const segmentMax = 64 * 1024;

/** Minimum unused space that is freed after the end of a response, in bytes. A smaller space is not worth the copy. */
const spareMin = 8 * 1024;

/**
 * Minimum size of a chunk that is kept in its own buffer, in bytes. Smaller chunks are copied into segments, because many small buffers
 * burden the garbage collector.
 */
const keptMin = 1024;

/** The bytes of one response. */
export class ByteLog {
  readonly #segments: Array<Segment> = [];
  #length = 0;
  #held = 0;

  /** Length of the response so far, including dropped bytes. */
  get length(): number {
    return this.#length;
  }

  /** Offset of the first kept byte. */
  get start(): number {
    return this.#segments[0]?.at ?? this.#length;
  }

  /** Allocated memory, in bytes. */
  get allocated(): number {
    return this.#held;
  }

  append(bytes: Bytes): void {
    if (this.#shouldKeepBuffer(bytes)) {
      this.#add({ at: this.#length, bytes, used: bytes.byteLength }, bytes.buffer.byteLength);
      this.#length += bytes.byteLength;
      return;
    }
    for (let done = 0; done < bytes.byteLength; ) {
      const last = this.#free(bytes.byteLength - done);
      const room = last.bytes.byteLength - last.used;
      // Avoids creating a view, which costs as much as copying an event.
      const part = done === 0 && room >= bytes.byteLength ? bytes : bytes.subarray(done, done + room);
      last.bytes.set(part, last.used);
      last.used += part.byteLength;
      this.#length += part.byteLength;
      done += part.byteLength;
    }
  }

  /** Frees unused space after the end of the response, if there is enough of it. */
  trim(): void {
    const last = this.#segments.at(-1);
    if (last === undefined) return;
    const room = last.bytes.byteLength - last.used;
    if (room < spareMin) return;
    const size = last.used;
    const bytes = new Uint8Array(Buffer.allocUnsafeSlow(size).buffer);
    bytes.set(last.bytes.subarray(0, size));
    // Readers may still hold views of the old buffer, so a new buffer replaces it.
    this.#segments[this.#segments.length - 1] = { at: last.at, bytes, used: size };
    this.#held -= room;
  }

  #free(wanted: number): Segment {
    const last = this.#segments.at(-1);
    if (last !== undefined && last.used < last.bytes.byteLength) return last;
    // The allocated size doubles each time, so that at most half of it is unused.
    const size = Math.min(segmentMax, Math.max(segmentMin, 2 * (this.#length - this.start) - this.#held, wanted));
    // Unused bytes are never read, so the buffer needs no initialisation.
    const segment = { at: this.#length, bytes: new Uint8Array(Buffer.allocUnsafeSlow(size).buffer), used: 0 };
    this.#add(segment, size);
    return segment;
  }

  #add(segment: Segment, held: number): void {
    this.#segments.push(segment);
    this.#held += held;
  }

  /** True if a chunk is kept without a copy: it is long, fills most of its buffer, and the last segment is full. */
  #shouldKeepBuffer({ buffer, byteLength }: Bytes): boolean {
    if (byteLength < keptMin || 4 * byteLength < 3 * buffer.byteLength) return false;
    const last = this.#segments.at(-1);
    return last === undefined || last.used === last.bytes.byteLength;
  }

  /**
   * Returns the contiguous bytes from an offset; undefined at the end.
   *
   * @param at an offset of at least `start`
   */
  readFrom(at: number): Bytes | undefined {
    const found = this.#segments.find((segment) => at < segment.at + segment.used);
    return found?.bytes.subarray(at - found.at, found.used);
  }

  /** Drops the segments that end before an offset. */
  dropUntil(at: number): void {
    const kept = this.#segments.findIndex((segment) => at < segment.at + segment.bytes.byteLength);
    const dropped = kept === -1 ? this.#segments.splice(0) : this.#segments.splice(0, kept);
    for (const { bytes } of dropped) this.#held -= bytes.buffer.byteLength;
  }
}
