/** Splits bytes into lines, and buffers at most one line (law L11). */

/** Maximum line length, in bytes. Even a full ledger of 256 rows with the longest labels takes only a tenth of this. */
export const lineBytesMax = 1_048_576;

/** One trimmed line. A line over the limit has a number but no text. */
export interface InputLine {
  /** Line number, starting at 1. */
  readonly number: number;
  readonly text: string;
  readonly tooLong: boolean;
}

const newline = 10;

/** Splits bytes into lines: `push` returns complete lines, and `end` returns an unterminated last line. */
export class LineSplitter {
  readonly #bytesMax: number;
  #number = 1;
  #held: Array<Uint8Array> = [];
  #heldBytes = 0;
  #tooLong = false;

  /** @param bytesMax maximum line length, in bytes */
  constructor(bytesMax = lineBytesMax) {
    this.#bytesMax = bytesMax;
  }

  push(bytes: Uint8Array): ReadonlyArray<InputLine> {
    const lines: Array<InputLine> = [];
    let from = 0;
    for (let to = bytes.indexOf(newline); to >= 0; to = bytes.indexOf(newline, from)) {
      this.#hold(bytes.subarray(from, to));
      lines.push(this.#take());
      from = to + 1;
    }
    this.#hold(bytes.subarray(from));
    return lines;
  }

  /** Returns the last line if it has no line break. */
  end(): ReadonlyArray<InputLine> {
    return this.#heldBytes > 0 || this.#tooLong ? [this.#take()] : [];
  }

  #hold(bytes: Uint8Array): void {
    if (this.#heldBytes + bytes.length > this.#bytesMax) {
      this.#tooLong = true;
      this.#held = [];
      this.#heldBytes = 0;
    }
    if (this.#tooLong || bytes.length === 0) return;
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
  }

  #take(): InputLine {
    // TextDecoder removes a byte order mark, which JSON does not allow (RFC 8259, 8.1).
    const text = new TextDecoder().decode(Buffer.concat(this.#held)).trim();
    const line = { number: this.#number, text, tooLong: this.#tooLong };
    this.#number += 1;
    this.#held = [];
    this.#heldBytes = 0;
    this.#tooLong = false;
    return line;
  }
}
