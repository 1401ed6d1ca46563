/**
 * Detects new text that repeats shown text right after a seam, the place where a continuation joins the shown text. A model may repeat the
 * sentence that was cut or its end, the text from any earlier sentence to the end, or the start of the text.
 */
import { anchorWeightMin } from "./Anchor.ts";
import { carriageReturn, fold, isSpace, lineEnd, weighAhead, weighBack } from "./Folding.ts";
import { space, type Tokens, tokenAt, tokensOf } from "./ShownEnd.ts";

/** Minimum weight of a repetition on the same line. Shorter repetitions occur in ordinary text ("haha", "||", "11"). */
const sameLineMin = 6;

/** Minimum weight of a repetition that starts inside a sentence. Shorter repetitions occur in ordinary text ("over and over and"). */
const insideMin = 16;

/** Maximum distance between the start of a repetition inside a sentence and the end of the shown text, in code units. */
const insideMax = 1_600;

/** Number of code units of a pattern that are kept as `text`: enough for six characters of two code units each. */
const textMax = 12;

/** Maximum length of a line of code that ends a block or a statement, in code units. */
const endMax = 10;

/** Maximum indentation that is compared, in code units. */
const indentMax = 256;

/** A part of the shown text that must not be repeated immediately. */
interface Pattern {
  readonly units: ReadonlyArray<number>;
  /** Index of the part's first token; `to` is the index after its last token. */
  readonly from: number;
  readonly to: number;
  /** Weight of the part. Counting stops at `sameLineMin`. */
  readonly weight: number;
  /** First characters of the part, or all of it if it weighs less than `sameLineMin`. Empty if the part starts inside a sentence. */
  readonly text: string;
  /** White space between the start of the line and the part; undefined if other text precedes the part on its line. */
  readonly indent: string | undefined;
  /**
   * True if the part is short and followed by white space in the shown text. It then counts as a repetition only if white space follows the
   * new text too.
   */
  readonly spaced: boolean;
}

/** State of a possible repetition. */
export type Repeating = "maybe" | "no" | "yes";

/** True for a word, or the start of one, that ordinary text does not contain twice in a row without a space, as in "TheThe". */
const isDoubledWord = (text: string): boolean =>
  /^\p{Lu}\p{Ll}$/u.test(text) || (/^\p{L}[\p{L}\p{M}'’ ]*$/u.test(text) && (text.match(/\p{L}/gu)?.length ?? 0) >= 3);

/** True for a capital letter. A doubled capital counts as a repetition only if a letter, a space or an apostrophe follows, as in "II think". */
const isDoubledLetter = (text: string): boolean => /^\p{Lu}$/u.test(text);

/** True for a line that ends a block or a statement of code. Such lines recur at different indentations. */
const isEnd = (text: string): boolean => text.length <= endMax && /^(?:[)\]}]|<\/)|;$/.test(text);

const wordContinuation = /^[\p{Ll}\s'’]$/u;

const indentAt = (text: string, at: number): string | undefined => {
  let from = at;
  while (from > 0 && at - from < indentMax && isSpace(text.charCodeAt(from - 1))) {
    if (text.charCodeAt(from - 1) === lineEnd) return text.slice(from, at);
    from -= 1;
  }
  return undefined;
};

/**
 * Compares the beginning of new text with all patterns at once, from its first character that is not white space. It needs linear time, and
 * its memory is limited by the shown text.
 */
export class Repetition {
  readonly #patterns: ReadonlyArray<Pattern>;
  #live: ReadonlyArray<Pattern> | undefined;
  /** Patterns that have matched completely. The next character decides whether they are repetitions. */
  #whole: ReadonlyArray<Pattern> = [];
  #indent: string | undefined;
  /** True if there is white space between the shown text and the new text. */
  #gap = false;
  #steps = 0;
  #spaced = false;

  /**
   * @param run the shown text
   * @param starts starts of sentences and lines near its end, and of the anchor, ascending
   */
  constructor(run: string, starts: ReadonlyArray<number>) {
    const text = run.trimEnd();
    for (const one of run.slice(text.length)) this.#readSpace(one.charCodeAt(0));
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
      ...this.#findInside(text, shown, starts),
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

  /**
   * Returns the patterns that start inside a sentence: from each position that is not in `starts` to the end, if that weighs at least
   * `insideMin`.
   */
  #findInside(text: string, shown: Tokens, starts: ReadonlyArray<number>): ReadonlyArray<Pattern> {
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

  take(unit: number): Repeating {
    if (unit === carriageReturn) return this.#currentState();
    if (isSpace(unit)) return this.#takeSpace(unit);
    this.#live ??= this.#patterns.filter((pattern) => this.#isRepetition(pattern));
    if (this.#whole.some(({ text }) => isDoubledLetter(text)) && wordContinuation.test(String.fromCharCode(unit)))
      return "yes";
    this.#whole = [];
    if (this.#spaced) this.#step(space);
    this.#spaced = false;
    this.#step(fold(unit));
    const whole = this.#live.filter(({ from, to }) => from + this.#steps === to);
    if (whole.some(({ spaced, text, weight }) => !spaced && (weight >= sameLineMin || !this.#shouldWait(text))))
      return "yes";
    this.#whole = whole;
    this.#live = this.#live.filter((pattern) => !whole.includes(pattern));
    return this.#currentState();
  }

  /** Called at the end of the new text. A pattern that must be followed by white space then counts as repeated, if it has matched. */
  end(): Repeating {
    return this.#whole.some(({ spaced }) => spaced) ? "yes" : "no";
  }

  #takeSpace(unit: number): Repeating {
    if (this.#live === undefined) {
      this.#readSpace(unit);
      return "maybe";
    }
    if (this.#whole.length > 0) return "yes";
    this.#spaced = true;
    return this.#currentState();
  }

  #currentState(): Repeating {
    return this.#live === undefined || this.#live.length + this.#whole.length > 0 ? "maybe" : "no";
  }

  #step(unit: number): void {
    this.#live = (this.#live ?? []).filter(({ from, units }) => units[from + this.#steps] === unit);
    this.#steps += 1;
  }

  /** Records white space between the shown text and the first character of the new text. */
  #readSpace(unit: number): void {
    this.#gap ||= unit !== carriageReturn;
    if (unit === lineEnd) this.#indent = "";
    else if (unit !== carriageReturn && this.#indent !== undefined && this.#indent.length < indentMax) {
      this.#indent += String.fromCharCode(unit);
    }
  }

  #shouldWait(text: string): boolean {
    return this.#indent === undefined && isDoubledLetter(text);
  }

  /**
   * True if new text that matches this pattern is a repetition and not a legitimate continuation. That depends on the white space before
   * the new text.
   */
  #isRepetition({ indent, text, weight }: Pattern): boolean {
    if (this.#indent === undefined) {
      return weight >= sameLineMin || (!this.#gap && (isDoubledWord(text) || isDoubledLetter(text)));
    }
    // At another indentation, a line that ends a code block is a different line: "  </div>" after "    </div>".
    if (indent === undefined || indent === this.#indent) return true;
    return weight >= sameLineMin && (this.#indent === "" || !isEnd(text));
  }
}
