/**
 * Removes characters from the start of new text that were already shown: carriage returns, which comparisons ignore, and with a prefill the
 * white space that was not sent.
 */
import { carriageReturn, isSpace } from "./Folding.ts";

const trailingSpaceOf = (run: string): string => {
  let from = run.length;
  while (from > 0 && isSpace(run.charCodeAt(from - 1))) from -= 1;
  return run.slice(from);
};

/** Reads the new text of one continuation, starting at the seam (where it joins the shown text). */
export class ShownTail {
  /** White space that the new text may repeat. */
  #wanted: string;
  /** Number of carriage returns at the end of the shown text. */
  #returns: number;
  /** Number of carriage returns that are held. The next character shows whether they were part of the shown text. */
  #read = 0;
  #over = false;

  /** @param unsent true if the white space at the end of the shown text was not sent */
  constructor(run: string, unsent: boolean) {
    const end = trailingSpaceOf(run);
    this.#wanted = unsent ? end.replaceAll("\r", "") : "";
    this.#returns = end.length - end.replace(/\r+$/, "").length;
  }

  /** Length of the held text, in code units. */
  get heldLength(): number {
    return this.#read;
  }

  take(text: string): string {
    for (let at = 0; at < text.length && !this.#over; at += 1) {
      const unit = text.charCodeAt(at);
      if (unit === carriageReturn) {
        if (this.#wanted !== "") this.#read += 1;
        else if (this.#returns > 0) this.#returns -= 1;
        else return this.#finish(text.slice(at));
      } else if (this.#wanted !== "" && unit === this.#wanted.charCodeAt(0)) {
        this.#wanted = this.#wanted.slice(1);
        this.#read = 0;
      } else return this.#finish(text.slice(at));
    }
    return this.#over ? text : "";
  }

  end(): string {
    return this.#over ? "" : this.#finish("");
  }

  #finish(text: string): string {
    this.#over = true;
    const read = "\r".repeat(this.#read);
    this.#read = 0;
    return read + text;
  }
}
