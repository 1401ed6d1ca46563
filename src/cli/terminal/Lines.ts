/**
 * Splits bytes into lines, holding at most one line (law L11).
 */

/** Longest line that is read, in bytes: a full ledger of 256 rows with the longest labels takes a tenth of it. */
export const lineBytesMax = 1_048_576;

/** One line, trimmed. A line past the limit keeps its number only. */
export interface InputLine {
  /** From 1. */
  readonly number: number;
  readonly text: string;
  readonly tooLong: boolean;
}

const newline = 10;

/** Feed it bytes with `push`, and ask for the unterminated last line with `end`. */
export class LineSplitter {
  readonly #bytesMax: number;
  #number = 1;
  #held: Array<Uint8Array> = [];
  #heldBytes = 0;
  #tooLong = false;

  /** @param bytesMax longest line that is read, in bytes */
  constructor(bytesMax = lineBytesMax) {
    this.#bytesMax = bytesMax;
  }

  /** The lines that these bytes complete. */
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

  /** The last line, where it has no line break. */
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
    // TextDecoder takes a byte order mark away; JSON has no place for one (RFC 8259, 8.1).
    const text = new TextDecoder().decode(Buffer.concat(this.#held)).trim();
    const line = { number: this.#number, text, tooLong: this.#tooLong };
    this.#number += 1;
    this.#held = [];
    this.#heldBytes = 0;
    this.#tooLong = false;
    return line;
  }
}
