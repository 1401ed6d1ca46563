/**
 * Asks the gate of one continuation on behalf of a splice: in order, not behind a fault, and not twice for one end of text.
 */
import { shownCharactersMax, type TextGate } from "./Splice.ts";

/** The gate of one attempt. */
export class AttemptGate {
  readonly #gate: TextGate;
  #failed = false;
  /** Text has come since the gate was closed. */
  #open = false;
  /** The new text until the seam is proven. */
  #before = "";
  #cutBytes: number | undefined;

  constructor(gate: TextGate) {
    this.#gate = gate;
  }

  /** The seam is proven, and nothing has failed since. */
  get joined(): boolean {
    return !this.#failed && this.#gate.joined;
  }

  /** Nothing further is asked. */
  get failed(): boolean {
    return this.#failed;
  }

  /** How much of the new text was cut off in front of the seam, in UTF-16 code units. */
  get cut(): number {
    return this.#gate.cut;
  }

  /** The same in bytes of UTF-8. */
  get cutBytes(): number {
    return this.#cutBytes ?? bytesOf(this.#before.slice(0, this.#gate.cut));
  }

  /** What of a piece of visible text may leave now. */
  text(piece: string): string {
    if (piece === "" || this.#failed) return "";
    this.#open = true;
    if (this.#cutBytes === undefined) this.#before += piece;
    const out = this.#gate.text(piece);
    // The cut grows until something leaves: white space behind the anchor may have been shown already.
    if (out !== "") this.#settle();
    // A verifier says of far less than this that it is no anchor.
    else if (this.#before.length > 2 * shownCharactersMax) this.fail("unwritable");
    return out;
  }

  /** What was held, where the text ends or something follows that is none. */
  close(): string {
    if (this.#failed || (this.#gate.joined && !this.#open)) return "";
    this.#open = false;
    const out = this.#gate.close();
    if (this.#gate.joined) this.#settle();
    return out;
  }

  #settle(): void {
    this.#cutBytes ??= bytesOf(this.#before.slice(0, this.#gate.cut));
    this.#before = "";
  }

  /**
   * Something follows that is no text.
   *
   * @returns what was held and goes in front of it; undefined where the seam is not proven, which fails it
   */
  behindText(): string | undefined {
    const held = this.close();
    if (this.joined) return held;
    this.fail("not_text");
    return undefined;
  }

  fail(fault: "not_text" | "unwritable"): void {
    if (!this.#failed) this.#gate.fail(fault);
    this.#failed = true;
  }
}

/** Bytes of a text in UTF-8; each half of a surrogate pair counts as half of its four. */
export const bytesOf = (text: string): number => {
  let bytes = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
  }
  return bytes;
};
