/** Calls the gate of one continuation for a splice: in order, never after a fault, and once per end of text. */
import { shownCharactersMax, type TextGate } from "./Splice.ts";

/** The gate of one attempt. */
export class AttemptGate {
  readonly #gate: TextGate;
  #failed = false;
  /** True if text has come since the gate was last closed. */
  #open = false;
  /** The new text so far, until some of it passes the gate. */
  #before = "";
  #cutBytes: number | undefined;

  constructor(gate: TextGate) {
    this.#gate = gate;
  }

  /** True if the seam is proven and nothing has failed since. */
  get isJoined(): boolean {
    return !this.#failed && this.#gate.isJoined;
  }

  /** True after a fault. The gate is not called again. */
  get hasFailed(): boolean {
    return this.#failed;
  }

  /** Length of the new text that was cut off before the seam, in UTF-16 code units. */
  get cut(): number {
    return this.#gate.cut;
  }

  /** The same length in bytes of UTF-8. */
  get cutBytes(): number {
    return this.#cutBytes ?? bytesOf(this.#before.slice(0, this.#gate.cut));
  }

  /** Returns the text that may be sent now. */
  text(piece: string): string {
    if (piece === "" || this.#failed) return "";
    this.#open = true;
    if (this.#cutBytes === undefined) this.#before += piece;
    const out = this.#gate.text(piece);
    // The cut grows until text passes the gate, because white space after the anchor may have been shown already.
    if (out !== "") this.#settle();
    // The verifier rejects an anchor long before this limit.
    else if (this.#before.length > 2 * shownCharactersMax) this.fail("unwritable");
    return out;
  }

  /** Returns the held text, when the text ends or something else follows. */
  close(): string {
    if (this.#failed || (this.#gate.isJoined && !this.#open)) return "";
    this.#open = false;
    const out = this.#gate.close();
    if (this.#gate.isJoined) this.#settle();
    return out;
  }

  #settle(): void {
    this.#cutBytes ??= bytesOf(this.#before.slice(0, this.#gate.cut));
    this.#before = "";
  }

  /**
   * Closes the text, because something that is not text follows.
   *
   * @returns the held text, which precedes what follows; undefined if the seam is not proven, so that the attempt fails
   */
  behindText(): string | undefined {
    const held = this.close();
    if (this.isJoined) return held;
    this.fail("not_text");
    return undefined;
  }

  fail(fault: "not_text" | "unwritable"): void {
    if (!this.#failed) this.#gate.fail(fault);
    this.#failed = true;
  }
}

/** Number of bytes of a string in UTF-8. Each half of a surrogate pair counts as half of its four bytes. */
export const bytesOf = (text: string): number => {
  let bytes = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
  }
  return bytes;
};
