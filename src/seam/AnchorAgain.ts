/**
 * Finds the anchor, the quoted end of the shown text, in new text after a seam. If it is there, the model wrote other text first and then
 * continued from the anchor as requested.
 */
import { anchorMax, anchorWeightMin } from "./Anchor.ts";
import { carriageReturn, fold, isSpace, weigh } from "./Folding.ts";
import { space, tokensOf } from "./ShownEnd.ts";

/** The anchor is searched only up to this multiple of its own length after the seam. */
const lengths = 2;

/** The list of tokens is shortened only when it exceeds twice the needed length by this number, so it is rarely copied. */
const keptMin = 64;

/** Searches new text for the anchor with the Knuth-Morris-Pratt algorithm, in linear time and in one pass. */
export class AnchorAgain {
  readonly #wanted: ReadonlyArray<number>;
  readonly #table: ReadonlyArray<number>;
  readonly #until: number;
  /**
   * Maximum length of held text, in code units. Above this length, for example with endless white space, the search ends and the text is
   * released.
   */
  readonly #heldMax: number;
  /** Tokens that may belong to the anchor, and one token before them. */
  #places: Array<{ readonly at: number; readonly unit: number }> = [];
  #matched = 0;
  #over: boolean;

  constructor(anchor: string) {
    const text = anchor.trimEnd();
    this.#wanted = tokensOf(text, 0).units;
    this.#table = tableOf(this.#wanted);
    this.#until = lengths * anchor.length;
    this.#heldMax = 4 * anchor.length + anchorMax;
    // Text that is much shorter than a usual anchor also recurs in ordinary text: "The answer is simple. The answer …"
    this.#over = weigh(anchor) < anchorWeightMin / 2;
  }

  /** True if the anchor can no longer be found. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Start of the held text, which may be the anchor, including white space before it. Undefined if no text is held. */
  get heldFrom(): number | undefined {
    if (this.#over) return undefined;
    const before = this.#places[this.#places.length - this.#matched - 1];
    return before?.unit === space ? before.at : this.#start();
  }

  /**
   * Reads the next code unit.
   *
   * @param at offset after the seam, in code units
   * @returns true if the unit completes the anchor
   */
  take(unit: number, at: number): boolean {
    if (this.#over || unit === carriageReturn) return false;
    this.#over = (this.#start() ?? at) > this.#until || at - (this.heldFrom ?? at) > this.#heldMax;
    const token = isSpace(unit) ? space : fold(unit);
    if (this.#over || (token === space && this.#places.at(-1)?.unit === space)) return false;
    this.#places.push({ at, unit: token });
    while (this.#matched > 0 && this.#wanted[this.#matched] !== token)
      this.#matched = this.#table[this.#matched - 1] ?? 0;
    if (this.#wanted[this.#matched] === token) this.#matched += 1;
    const kept = this.#matched + 1;
    if (this.#places.length > 2 * kept + keptMin) this.#places = this.#places.slice(-kept);
    return this.#matched === this.#wanted.length;
  }

  #start(): number | undefined {
    return this.#places[this.#places.length - this.#matched]?.at;
  }
}

/** Returns the failure table of Knuth-Morris-Pratt: for each prefix, the length of its longest proper prefix that is also its suffix. */
const tableOf = (wanted: ReadonlyArray<number>): ReadonlyArray<number> => {
  const table: Array<number> = [0];
  let matched = 0;
  for (let at = 1; at < wanted.length; at += 1) {
    while (matched > 0 && wanted[matched] !== wanted[at]) matched = table[matched - 1] ?? 0;
    if (wanted[matched] === wanted[at]) matched += 1;
    table.push(matched);
  }
  return table;
};
