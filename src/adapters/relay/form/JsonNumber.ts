/**
 * Reads a number of JSON in pieces.
 */

/** What was read last. */
type Read = "minus" | "zero" | "digits" | "point" | "fraction" | "e" | "sign" | "exponent" | "damage";

/** Reads one number after the other. */
export class JsonNumber {
  #read: Read = "damage";

  /**
   * Begins with a number's first byte.
   *
   * @returns whether a number begins with it
   */
  begin(byte: number): boolean {
    this.#read = byte === MINUS ? "minus" : byte === ZERO ? "zero" : isDigit(byte) ? "digits" : "damage";
    return !this.isDamaged;
  }

  /** What was read is no beginning of a number. */
  get isDamaged(): boolean {
    return this.#read === "damage";
  }

  /** What was read is a number. */
  get isWhole(): boolean {
    const read = this.#read;
    return read === "zero" || read === "digits" || read === "fraction" || read === "exponent";
  }

  /**
   * Reads on.
   *
   * @returns the place behind the last byte that belongs to it: less than `until` where it has ended, well or not
   */
  read(bytes: Uint8Array, from: number, until: number): number {
    for (let at = from; at < until; at += 1) {
      const next = this.#after(bytes[at] ?? 0);
      if (next === undefined) {
        if (!this.isWhole) this.#read = "damage";
        return at;
      }
      this.#read = next;
    }
    return until;
  }

  /** What a byte is behind what was read; undefined where it does not belong to the number. */
  #after(byte: number): Read | undefined {
    switch (this.#read) {
      case "minus":
        return byte === ZERO ? "zero" : isDigit(byte) ? "digits" : undefined;
      case "zero":
        return byte === POINT ? "point" : isE(byte) ? "e" : undefined;
      case "digits":
        return isDigit(byte) ? "digits" : byte === POINT ? "point" : isE(byte) ? "e" : undefined;
      case "point":
        return isDigit(byte) ? "fraction" : undefined;
      case "fraction":
        return isDigit(byte) ? "fraction" : isE(byte) ? "e" : undefined;
      case "e":
        return isDigit(byte) ? "exponent" : byte === PLUS || byte === MINUS ? "sign" : undefined;
      case "sign":
      case "exponent":
        return isDigit(byte) ? "exponent" : undefined;
      case "damage":
        return undefined;
    }
  }
}

const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;

const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39;

const isE = (byte: number): boolean => byte === 0x65 || byte === 0x45;
