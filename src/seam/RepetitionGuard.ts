/**
 * Guards the text after a seam, the place where a continuation joins the shown text. It holds text that may become a repetition of shown
 * text, and reports a complete repetition.
 */
import type { Anchor } from "./Anchor.ts";
import { AnchorAgain } from "./AnchorAgain.ts";
import { isHighSurrogate } from "./Folding.ts";
import { Repetition } from "./Repetition.ts";

/** Maximum length of held text, in code units. Endless white space is released at this length. */
const heldMax = 16 * 1024;

/** Text that may be delivered. If `repeats` is true, no text after it may be delivered. */
export interface Guarded {
  readonly text: string;
  readonly repeats: boolean;
}

/** Guards the text of one continuation after its seam. */
export class RepetitionGuard {
  #atOnce: ReadonlyArray<Repetition>;
  readonly #again: AnchorAgain;
  #open = true;
  #held = "";
  /** Length of the held text that was already shown: 1 while it starts with the shown half of a surrogate pair, otherwise 0. */
  #shown = 0;
  /** Length of the text that was read so far, in code units. */
  #taken = 0;

  /**
   * @param run the shown text
   * @param starts starts of sentences and lines near its end, and of the anchor, ascending
   */
  constructor(run: string, anchor: Anchor, starts: ReadonlyArray<number>) {
    // The shown text may end inside a surrogate pair. A repetition may start with the whole character.
    const whole = isHighSurrogate(run.charCodeAt(run.length - 1)) ? run.slice(0, -1) : run;
    const before = starts.filter((at) => at < whole.length);
    const makeRepetitions = (): ReadonlyArray<Repetition> =>
      before.length === 0 ? [] : [new Repetition(whole, before)];
    this.#atOnce = makeRepetitions();
    this.#again = new AnchorAgain(run === whole ? anchor.text : anchor.text.slice(0, -1));
    const half = run.slice(whole.length);
    if (half === "") return;
    this.#shown = half.length - this.take(half).text.length;
    // A repetition may also start with the new text itself, if that does not complete the character.
    this.#atOnce = [...this.#atOnce, ...makeRepetitions()];
    this.#open = true;
  }

  /** Length of the held text, in code units. */
  get heldLength(): number {
    return this.#held.length - this.#shown;
  }

  /** Reads the next text. After a repetition, no further text may be read. */
  take(text: string): Guarded {
    return this.#withoutShown(this.#take(text));
  }

  #take(text: string): Guarded {
    if (!this.#open) return { text, repeats: false };
    const first = this.#taken - this.#held.length;
    this.#held += text;
    let left = first;
    for (let at = 0; at < text.length && this.#open; at += 1) {
      const place = this.#taken + at;
      if (this.#detectRepeat(text.charCodeAt(at), place))
        return { text: this.#held.slice(0, left - first), repeats: true };
      if (place - left >= heldMax) this.#atOnce = [];
      if (this.#atOnce.length > 0) continue;
      left = Math.max(left, this.#again.heldFrom ?? place + 1);
      if (this.#again.isOver) this.#open = false;
    }
    this.#taken += text.length;
    const free = this.#open ? this.#held.slice(0, left - first) : this.#held;
    this.#held = this.#held.slice(free.length);
    return { text: free, repeats: false };
  }

  /** Ends the text. Held text is released, unless it is a repetition. */
  end(): Guarded {
    return this.#withoutShown(this.#end());
  }

  #end(): Guarded {
    if (this.#open && this.#atOnce.some((one) => one.end() === "yes")) return { text: "", repeats: true };
    this.#open = false;
    const text = this.#held;
    this.#held = "";
    return { text, repeats: false };
  }

  #withoutShown({ repeats, text }: Guarded): Guarded {
    const shown = Math.min(this.#shown, text.length);
    this.#shown -= shown;
    return { repeats, text: text.slice(shown) };
  }

  #detectRepeat(unit: number, place: number): boolean {
    const again = this.#again.take(unit, place);
    const atOnce = this.#atOnce.map((one) => one.take(unit));
    if (atOnce.includes("no")) this.#atOnce = this.#atOnce.filter((_, index) => atOnce[index] !== "no");
    return again || atOnce.includes("yes");
  }
}
