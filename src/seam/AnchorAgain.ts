/**
 * Finds the whole anchor in new text behind a seam: a model that talks first and then goes on from the anchor as asked.
 */
import { anchorMax, anchorWeightMin } from "./Anchor.ts";
import { carriageReturn, fold, isSpace, weigh } from "./Folding.ts";
import { space, tokensOf } from "./ShownEnd.ts";

/** How many lengths of the anchor are looked through. */
const lengths = 2;

/** Places that are remembered at least, so that they are seldom moved. */
const keptMin = 64;

/** Looks through new text with a table of the anchor's own repetitions (Knuth, Morris and Pratt): linear, without going back. */
export class AnchorAgain {
  readonly #wanted: ReadonlyArray<number>;
  readonly #table: ReadonlyArray<number>;
  readonly #until: number;
  /** White space without an end is let go. */
  readonly #heldMax: number;
  /** Where the tokens stand that may still belong to an anchor, and the one in front of them. */
  #places: Array<{ readonly at: number; readonly unit: number }> = [];
  #matched = 0;
  #over: boolean;

  constructor(anchor: string) {
    const text = anchor.trimEnd();
    this.#wanted = tokensOf(text, 0).units;
    this.#table = tableOf(this.#wanted);
    this.#until = lengths * anchor.length;
    this.#heldMax = 4 * anchor.length + anchorMax;
    // a text that is much shorter than an anchor comes again in honest text: "The answer is simple. The answer …"
    this.#over = weigh(anchor) < anchorWeightMin / 2;
  }

  /** Nothing further is looked through. */
  get over(): boolean {
    return this.#over;
  }

  /** From where on the new text is held: what stands there may be the anchor, or is white space. */
  get heldFrom(): number | undefined {
    if (this.#over) return undefined;
    const before = this.#places[this.#places.length - this.#matched - 1];
    return before?.unit === space ? before.at : this.#start();
  }

  /**
   * Takes the next unit.
   *
   * @param at where it stands behind the seam, in code units
   * @returns whether the anchor is whole with it
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

/** For each length, how long the longest proper beginning is that also ends there. */
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
