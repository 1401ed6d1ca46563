/** Finds the whole anchor in new text after a seam. The model then talked first and continued from the anchor as requested. */
import { anchorMax, anchorWeightMin } from "./Anchor.ts";
import { carriageReturn, fold, isSpace, weigh } from "./Folding.ts";
import { space, tokensOf } from "./ShownEnd.ts";

/** Length of the search, as a multiple of the anchor. */
const lengths = 2;

/** Minimum tokens kept, so that the list is rarely copied. */
const keptMin = 64;

/**
 * Searches a continuation for the anchor: the end of the shown text, which the request quoted. The Knuth-Morris-Pratt algorithm takes
 * linear time and reads each token once.
 */
export class AnchorAgain {
  readonly #wanted: ReadonlyArray<number>;
  readonly #table: ReadonlyArray<number>;
  readonly #until: number;
  /** Maximum text held, in code units, so that endless white space is released. */
  readonly #heldMax: number;
  /** Tokens that may still belong to an anchor, preceded by the token before them. */
  #places: Array<{ readonly at: number; readonly unit: number }> = [];
  #matched = 0;
  #over: boolean;

  constructor(anchor: string) {
    const text = anchor.trimEnd();
    this.#wanted = tokensOf(text, 0).units;
    this.#table = tableOf(this.#wanted);
    this.#until = lengths * anchor.length;
    this.#heldMax = 4 * anchor.length + anchorMax;
    // Text much shorter than an anchor also recurs in ordinary text: "The answer is simple. The answer …"
    this.#over = weigh(anchor) < anchorWeightMin / 2;
  }

  /** True if the search is over. */
  get isOver(): boolean {
    return this.#over;
  }

  /** Start of the held text, which may be the anchor, including the white space before it; undefined if none is held. */
  get heldFrom(): number | undefined {
    if (this.#over) return undefined;
    const before = this.#places[this.#places.length - this.#matched - 1];
    return before?.unit === space ? before.at : this.#start();
  }

  /**
   * Takes the next unit.
   *
   * @param at offset after the seam, in code units
   * @returns true if it completes the anchor
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

/** For each prefix, the length of its longest proper prefix that is also a suffix of it. */
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
