/**
 * Keeps the bytes of one response in order, for readers that start at any offset.
 *
 * A view of a larger packet is copied, since it would keep the whole packet alive. A chunk that fills its own buffer is kept
 * without a copy, since sockets and decoders never write to it again. So bytes handed to a reader do not change while its socket
 * sends them.
 */
import type { Bytes } from "../upstream/ContentDecoding.ts";

interface Segment {
  /** Offset in the response. */
  readonly at: number;
  readonly bytes: Bytes;
  used: number;
}

/** Minimum and maximum size of a segment, in bytes. A short response takes little memory, and a long one has few segments. */
const segmentMin = 4 * 1024;
const segmentMax = 64 * 1024;

/** Minimum unused space that is freed after the end of a response, in bytes. Short responses have less and are not copied. */
const spareMin = 8 * 1024;

/** Minimum size of a chunk that is kept in its own buffer, in bytes. Many small buffers would burden the garbage collector. */
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
  get held(): number {
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

  /** Frees unused space after the end of the response, if it is worth the copy. */
  trim(): void {
    const last = this.#segments.at(-1);
    if (last === undefined) return;
    const room = last.bytes.byteLength - last.used;
    if (room < spareMin) return;
    const size = last.used;
    const bytes = new Uint8Array(Buffer.allocUnsafeSlow(size).buffer);
    bytes.set(last.bytes.subarray(0, size));
    // Readers may still hold views of the old buffer, so it is replaced and not changed.
    this.#segments[this.#segments.length - 1] = { at: last.at, bytes, used: size };
    this.#held -= room;
  }

  #free(wanted: number): Segment {
    const last = this.#segments.at(-1);
    if (last !== undefined && last.used < last.bytes.byteLength) return last;
    // The allocation doubles, so that at most half of it is empty.
    const size = Math.min(segmentMax, Math.max(segmentMin, 2 * (this.#length - this.start) - this.#held, wanted));
    // Unused bytes are never handed out, so the buffer needs no initialisation.
    const segment = { at: this.#length, bytes: new Uint8Array(Buffer.allocUnsafeSlow(size).buffer), used: 0 };
    this.#add(segment, size);
    return segment;
  }

  #add(segment: Segment, held: number): void {
    this.#segments.push(segment);
    this.#held += held;
  }

  /** True if a chunk is kept in its own buffer: it is long, nearly fills the buffer, and follows a full segment or none. */
  #shouldKeepBuffer({ buffer, byteLength }: Bytes): boolean {
    if (byteLength < keptMin || 4 * byteLength < 3 * buffer.byteLength) return false;
    const last = this.#segments.at(-1);
    return last === undefined || last.used === last.bytes.byteLength;
  }

  /**
   * Returns the contiguous bytes from an offset; undefined at the end.
   *
   * @param at at or after `start`
   */
  from(at: number): Bytes | undefined {
    const found = this.#segments.find((segment) => at < segment.at + segment.used);
    return found?.bytes.subarray(at - found.at, found.used);
  }

  /** Drops whole segments before an offset. */
  dropUntil(at: number): void {
    const kept = this.#segments.findIndex((segment) => at < segment.at + segment.bytes.byteLength);
    const dropped = kept === -1 ? this.#segments.splice(0) : this.#segments.splice(0, kept);
    for (const { bytes } of dropped) this.#held -= bytes.buffer.byteLength;
  }
}
