/**
 * Bounds how much of a response is cut into events in one turn of the event loop: a response of tiny events must not delay
 * other streams.
 */

/** Maximum lines that are decoded in one turn of the event loop. */
export const turnLinesMax = 512;

const LF = 10;
const CR = 13;

/** Bytes that have arrived, given out by as many lines as a turn may cut. */
export class Slices {
  #chunks: Array<Uint8Array<ArrayBuffer>> = [];
  #linesLeft = turnLinesMax;

  /** No bytes wait. */
  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  /** More bytes have arrived. */
  add(chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): void {
    if (this.#chunks.length === 0) this.#chunks = chunks.slice();
    else this.#chunks.push(...chunks);
  }

  /** A new turn begins. */
  renew(): void {
    this.#linesLeft = turnLinesMax;
  }

  /** The next bytes of this turn: a chunk, or its beginning; undefined if none are left or the turn is used up. */
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

  /** Takes all bytes that wait. */
  rest(): ReadonlyArray<Uint8Array<ArrayBuffer>> {
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  /** The end of the last line that this turn may cut; counts the lines before it. */
  #endOf(bytes: Uint8Array): number {
    let at = 0;
    // The next LF and CR are found once each: a stream that uses only one of them stays linear.
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
