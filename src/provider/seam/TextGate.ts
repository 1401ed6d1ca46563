/**
 * Decides how much text of one continuation may be sent. A splice passes it each piece of visible text, in order, before it writes an
 * event, and its verifier proves the seam.
 */
import type { SeamFault } from "../../domain/SeamWords.ts";
import type { SeamStep, SeamVerifier } from "../../seam/SeamVerifier.ts";
import { shownCharactersMax } from "../../seam/TextSeam.ts";

/** The gate of one attempt. After a fault, its verifier is not called again. */
export class TextGate {
  /** Length of the text that has passed, in UTF-16 code units. */
  passed = 0;
  /** True if the response ends, so that held text need not wait for more. */
  ends = false;
  readonly #verifier: SeamVerifier;
  #joined = false;
  #fault: SeamFault | undefined;
  /** True if text has come since the gate was last closed. */
  #open = false;
  /** The new text so far, until some of it passes. */
  #before = "";
  #cutBytes: number | undefined;

  /** @param verifier a new verifier, for the anchor of the shown text */
  constructor(verifier: SeamVerifier) {
    this.#verifier = verifier;
  }

  /** True if the seam is proven and nothing has failed since. Until then a splice writes nothing. */
  get isJoined(): boolean {
    return this.#joined && this.#fault === undefined;
  }

  get fault(): SeamFault | undefined {
    return this.#fault;
  }

  /** Length of the new text before the seam, in UTF-16 code units; 0 until the seam is proven. This text is never sent. */
  get cut(): number {
    return this.#verifier.cut;
  }

  /** Length of the new text before the seam, in bytes of UTF-8. */
  get cutBytes(): number {
    return this.#cutBytes ?? bytesOf(this.#before.slice(0, this.cut));
  }

  /** Returns the text that may be sent now. It is shorter than the piece at the seam, and longer if text was held before. */
  pass(piece: string): string {
    if (piece === "" || this.#fault !== undefined) return "";
    this.#open = true;
    if (this.#cutBytes === undefined) this.#before += piece;
    const out = this.#apply(this.#verifier.take(piece));
    // The cut grows until text passes the gate, because white space after the anchor may have been shown already.
    if (out !== "") this.#settle();
    // The verifier rejects an anchor long before this limit.
    else if (this.#before.length > 2 * shownCharactersMax) this.fail("unwritable");
    return out;
  }

  /** Returns the held text, when the text ends or something else follows. */
  close(): string {
    if (this.#fault !== undefined || (this.#joined && !this.#open)) return "";
    this.#open = false;
    const out = this.#apply(this.ends ? this.#verifier.stop() : this.#verifier.close());
    if (this.isJoined) this.#settle();
    return out;
  }

  /**
   * Closes the text, because something that is not text follows.
   *
   * @returns the held text, which precedes what follows; undefined if the seam is not proven, so that the attempt fails
   */
  closeText(): string | undefined {
    const held = this.close();
    if (this.isJoined) return held;
    this.fail("not_text");
    return undefined;
  }

  /** Fails if the seam is not proven, or if text is still held: a splice that never closed its gate would lose that text silently. */
  requireNoRest(): void {
    if (this.#fault !== undefined) return;
    if (!this.#joined) this.#fault = "stopped";
    else if (this.#apply(this.#verifier.stop()) !== "") this.#fault = "unwritable";
  }

  /** Called for content that cannot be joined before the seam is proven (a call, a refusal, a picture), or that cannot be written. */
  fail(fault: "not_text" | "unwritable"): void {
    this.#fault ??= fault;
  }

  #apply(step: SeamStep): string {
    if (step.type === "unproven") this.#fault = step.fault;
    if (step.type !== "joined") return "";
    this.#joined = true;
    this.passed += step.text.length;
    return step.text;
  }

  #settle(): void {
    this.#cutBytes ??= bytesOf(this.#before.slice(0, this.cut));
    this.#before = "";
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
