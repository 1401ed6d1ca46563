/**
 * Limits the number of events that a response yields in one turn of the event loop, so that a response with many small events does not
 * delay other streams.
 */

/** Maximum number of lines that are decoded in one turn of the event loop. */
export const turnLinesMax = 512;

const LF = 10;
const CR = 13;

/** Buffers received bytes and releases them in slices. A turn gets a limited number of lines. */
export class Slices {
  #chunks: Array<Uint8Array<ArrayBuffer>> = [];
  #linesLeft = turnLinesMax;

  /** True if no bytes are buffered. */
  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  add(chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): void {
    if (this.#chunks.length === 0) this.#chunks = chunks.slice();
    else this.#chunks.push(...chunks);
  }

  /** Starts a new turn of the event loop. */
  renew(): void {
    this.#linesLeft = turnLinesMax;
  }

  /**
   * Returns the next bytes for this turn, a chunk or its start. Returns undefined if the buffer is empty or the turn has reached its limit.
   */
  next(): Uint8Array<ArrayBuffer> | undefined {
    const [first] = this.#chunks;
    if (first === undefined || this.#linesLeft <= 0) return undefined;
    const end = this.#endOf(first);
    if (end < first.byteLength) {
      this.#chunks[0] = first.subarray(end);
      return first.subarray(0, end);
    }
    if (this.#chunks.length === 1) this.#chunks = [];
    else this.#chunks.shift();
    return first;
  }

  /** Removes and returns all buffered bytes. */
  rest(): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  /** Returns the end of the last line that this turn may process, and counts the lines up to it. */
  #endOf(bytes: Uint8Array): number {
    let at = 0;
    // The positions of the next LF and CR are kept, so that a stream with only one of the two is scanned in linear time.
    let lf = -1;
    let cr = -1;
    while (this.#linesLeft > 0) {
      if (lf < at) lf = indexOrEnd(bytes, LF, at);
      if (cr < at) cr = indexOrEnd(bytes, CR, at);
      const stop = Math.min(lf, cr);
      if (stop === bytes.length) return stop;
      at = stop + 1;
      this.#linesLeft -= 1;
    }
    return at;
  }
}

const indexOrEnd = (bytes: Uint8Array, byte: number, from: number): number => {
  const index = bytes.indexOf(byte, from);
  return index === -1 ? bytes.length : index;
};
