/**
 * Sees where new text behind a seam says at once again what was shown last: the cut sentence or the end of it, any earlier sentence to
 * the end, or the beginning of the text.
 */
import { anchorWeightMin } from "./Anchor.ts";
import { carriageReturn, fold, isSpace, lineEnd, weighAhead, weighBack } from "./Folding.ts";
import { space, type Tokens, tokenAt, tokensOf } from "./ShownEnd.ts";

/** Least weight of a repetition on the same line: less comes twice in honest text ("haha", "||", "11"). */
const sameLineMin = 6;

/** Least weight of a repetition that begins inside of a sentence: fewer words come twice in honest text ("over and over and"). */
const insideMin = 16;

/** How far in front of the end one is looked for, in code units. */
const insideMax = 1_600;

/** How much of a stretch is looked at, in code units: a character of a weight of two has up to two. */
const textMax = 12;

/** Longest line that ends something in code, in code units. */
const endMax = 10;

/** Deepest indentation that is compared, in code units. */
const indentMax = 256;

/** A stretch of the shown text that must not come again at once. */
interface Pattern {
  readonly units: ReadonlyArray<number>;
  /** Its tokens, from the first to behind the last. */
  readonly from: number;
  readonly to: number;
  /** At most `sameLineMin`. */
  readonly weight: number;
  /** Its first characters: all of it where it weighs less than that. */
  readonly text: string;
  /** The white space in front of it on its line; undefined where it does not begin a line. */
  readonly indent: string | undefined;
  /** It says little, and white space stands behind it in the shown text, so that some must stand behind the repetition too. */
  readonly spaced: boolean;
}

/** How far a repetition has come. */
export type Repeating = "maybe" | "no" | "yes";

/** A cut word that no honest text says twice without a space: "TheThe". */
const isDoubledWord = (text: string): boolean =>
  /^\p{Lu}\p{Ll}$/u.test(text) || (/^\p{L}[\p{L}\p{M}'’ ]*$/u.test(text) && (text.match(/\p{L}/gu)?.length ?? 0) >= 3);

/** One letter says so little that what follows has to show that a word begins with it: "II think". */
const isDoubledLetter = (text: string): boolean => /^\p{Lu}$/u.test(text);

/** A line that ends a block or a statement of code: it stands again and again, at every depth. */
const isEnd = (text: string): boolean => text.length <= endMax && /^(?:[)\]}]|<\/)|;$/.test(text);

const wordGoesOn = /^[\p{Ll}\s'’]$/u;

const indentAt = (text: string, at: number): string | undefined => {
  let from = at;
  while (from > 0 && at - from < indentMax && isSpace(text.charCodeAt(from - 1))) {
    if (text.charCodeAt(from - 1) === lineEnd) return text.slice(from, at);
    from -= 1;
  }
  return undefined;
};

/** Follows new text from its first character that is not white space. Linear, and bounded by the shown text that it is given. */
export class Repetition {
  readonly #patterns: ReadonlyArray<Pattern>;
  #live: ReadonlyArray<Pattern> | undefined;
  /** Has come whole, and what follows decides. */
  #whole: ReadonlyArray<Pattern> = [];
  #indent: string | undefined;
  /** White space stands between the shown text and the new one. */
  #gap = false;
  #steps = 0;
  #spaced = false;

  /**
   * @param run the shown text
   * @param starts where sentences and lines begin in its end, and where the anchor does, ascending
   */
  constructor(run: string, starts: ReadonlyArray<number>) {
    const text = run.trimEnd();
    for (const one of run.slice(text.length)) this.#space(one.charCodeAt(0));
    const shown = tokensOf(text, Math.min(starts[0] ?? 0, Math.max(0, text.length - insideMax)));
    const weight = (at: number): number => weighBack(text, at, sameLineMin).weight;
    const begin = text.length - text.trimStart().length;
    const beginning = tokensOf(text.slice(0, weighAhead(text, begin, anchorWeightMin)).trimEnd(), begin);
    const patterns = starts.map(
      (at): Pattern => ({
        units: shown.units,
        from: tokenAt(shown, at),
        to: shown.units.length,
        weight: weight(at),
        text: text.slice(at, at + textMax),
        indent: indentAt(text, at),
        spaced: text.length < run.length && weight(at) < sameLineMin,
      }),
    );
    this.#patterns = [
      ...patterns,
      ...this.#inside(text, shown, starts),
      {
        units: beginning.units,
        from: 0,
        to: beginning.units.length,
        weight: weight(begin),
        text: text.slice(begin, begin + textMax),
        indent: indentAt(text, begin),
        spaced: text.length < run.length && weight(begin) < sameLineMin,
      },
    ];
  }

  /** Stretches to the end that begin anywhere else, with enough weight. */
  #inside(text: string, shown: Tokens, starts: ReadonlyArray<number>): ReadonlyArray<Pattern> {
    const { at, weight } = weighBack(text, shown.places[0] ?? 0, insideMin);
    if (weight < insideMin) return [];
    const known = new Set(starts);
    const to = shown.units.length;
    return shown.places.flatMap((place, token): ReadonlyArray<Pattern> => {
      const isOther = place <= at && shown.units[token] !== space && !known.has(place);
      if (!isOther) return [];
      return [{ units: shown.units, from: token, to, weight: sameLineMin, text: "", indent: undefined, spaced: false }];
    });
  }

  /** Takes the next unit of the new text. */
  take(unit: number): Repeating {
    if (unit === carriageReturn) return this.#standing();
    if (isSpace(unit)) return this.#takeSpace(unit);
    this.#live ??= this.#patterns.filter((pattern) => this.#counts(pattern));
    if (this.#whole.some(({ text }) => isDoubledLetter(text)) && wordGoesOn.test(String.fromCharCode(unit)))
      return "yes";
    this.#whole = [];
    if (this.#spaced) this.#step(space);
    this.#spaced = false;
    this.#step(fold(unit));
    const whole = this.#live.filter(({ from, to }) => from + this.#steps === to);
    if (whole.some(({ spaced, text, weight }) => !spaced && (weight >= sameLineMin || !this.#waits(text))))
      return "yes";
    this.#whole = whole;
    this.#live = this.#live.filter((pattern) => !whole.includes(pattern));
    return this.#standing();
  }

  /** The new text ends here. */
  end(): Repeating {
    return this.#whole.some(({ spaced }) => spaced) ? "yes" : "no";
  }

  #takeSpace(unit: number): Repeating {
    if (this.#live === undefined) {
      this.#space(unit);
      return "maybe";
    }
    if (this.#whole.length > 0) return "yes";
    this.#spaced = true;
    return this.#standing();
  }

  #standing(): Repeating {
    return this.#live === undefined || this.#live.length + this.#whole.length > 0 ? "maybe" : "no";
  }

  #step(unit: number): void {
    this.#live = (this.#live ?? []).filter(({ from, units }) => units[from + this.#steps] === unit);
    this.#steps += 1;
  }

  /** White space between the shown text and the first character of the new one. */
  #space(unit: number): void {
    this.#gap ||= unit !== carriageReturn;
    if (unit === lineEnd) this.#indent = "";
    else if (unit !== carriageReturn && this.#indent !== undefined && this.#indent.length < indentMax) {
      this.#indent += String.fromCharCode(unit);
    }
  }

  #waits(text: string): boolean {
    return this.#indent === undefined && isDoubledLetter(text);
  }

  /** Whether a stretch that comes again behind this white space is a repetition, and not text that goes on. */
  #counts({ indent, text, weight }: Pattern): boolean {
    if (this.#indent === undefined) {
      return weight >= sameLineMin || (!this.#gap && (isDoubledWord(text) || isDoubledLetter(text)));
    }
    // code that ends at another depth is another line: "  </div>" behind "    </div>"
    if (indent === undefined || indent === this.#indent) return true;
    return weight >= sameLineMin && (this.#indent === "" || !isEnd(text));
  }
}
