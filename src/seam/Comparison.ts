/**
 * Compares new text with the end of the shown text, at all positions from which a model may have started again.
 *
 * The anchor (the end of the shown text that the request quotes) occurs only once in the shown text, and each position is at or before its
 * start. Therefore at most one position matches up to the end.
 */
import { type CodeFence, codeFences, fenceAt } from "./CodeFences.ts";
import { carriageReturn, fold, isSpace, lineEnd } from "./Folding.ts";
import { space, type Tokens, tokenAt, tokensOf } from "./ShownEnd.ts";

/** Result for the text that was compared so far. `wait` needs more text; `differs` is final. */
export type Compared =
  | { readonly type: "wait" }
  /** The new text has reached the end of the shown text. `rest` is the text after that. */
  | { readonly type: "met"; readonly rest: string }
  | { readonly type: "differs" };

/** Maximum length of a run of white space after the first character, in code units. Longer white space is a difference. */
const spaceMax = 2_000;

/** Maximum length of a first line that may open a code fence again, in code units. A longer line does not. */
const lineMax = 256;

const wait = { type: "wait" } as const;

/** The positions that match the new text so far. All of them advance together. */
class Places {
  readonly #shown: Tokens;
  #live: ReadonlyArray<number>;
  #steps = 0;
  #space = "";

  constructor(shown: Tokens, places: ReadonlyArray<number>) {
    this.#shown = shown;
    this.#live = places;
  }

  get isDifferent(): boolean {
    return this.#live.length === 0;
  }

  /** True if only the white space at the end of the shown text has not been repeated. */
  get isComplete(): boolean {
    const { units } = this.#shown;
    const last = units.length - 1;
    return units[last] === space && this.#live.some((place) => place + this.#steps === last);
  }

  /** Reads one code unit. Returns true if it reaches the end of the shown text. */
  take(unit: number): boolean {
    return isSpace(unit) ? this.#takeSpace(unit) : this.#takeCharacter(unit);
  }

  #takeSpace(unit: number): boolean {
    // Leading white space is skipped: the comparison starts at the first other character.
    if (this.#steps === 0) return false;
    const { exact, spaces, units } = this.#shown;
    this.#space += String.fromCharCode(unit);
    const given = this.#space;
    let met = false;
    this.#live = this.#live.filter((place) => {
      const at = place + this.#steps;
      const shown = spaces.get(at);
      if (shown === undefined) return false;
      const seam = at === units.length - 1;
      met ||= seam && given === shown;
      return given.length <= spaceMax && (seam || exact[at] ? shown.startsWith(given) : true);
    });
    return met;
  }

  #takeCharacter(unit: number): boolean {
    const { exact, spaces, units } = this.#shown;
    const given = this.#space;
    const skipped = given === "" ? 0 : 1;
    const flat = fold(unit);
    let met = false;
    this.#live = this.#live.filter((place) => {
      const before = place + this.#steps;
      if (skipped === 1 && exact[before] && spaces.get(before) !== given) return false;
      const at = before + skipped;
      if (units[at] !== (exact[at] ? unit : flat)) return false;
      met ||= at === units.length - 1;
      return true;
    });
    this.#steps += skipped + 1;
    this.#space = "";
    return met;
  }
}

/** Recognises if the first line of new text opens a code fence again that contains one of the positions. */
class Reopening {
  readonly #shown: Tokens;
  readonly #lines: ReadonlyMap<string, ReadonlyArray<number>>;
  #line = "";

  constructor(shown: Tokens, places: ReadonlyArray<number>, fences: ReadonlyArray<CodeFence>) {
    this.#shown = shown;
    const lines = new Map<string, Array<number>>();
    for (const place of places) {
      const fence = fenceAt(fences, shown.places[place] ?? 0);
      if (fence === undefined) continue;
      // A line with only the fence and the language may also open it again.
      for (const line of new Set([fence.opener, fence.opener.split(/\s/)[0] ?? fence.opener])) {
        lines.set(line, [...(lines.get(line) ?? []), place]);
      }
    }
    this.#lines = lines;
  }

  /**
   * Reads one code unit. When the line is complete and opens a fence again, returns the positions inside that fence. Returns undefined if
   * it opens none.
   */
  take(unit: number): "wait" | Places | undefined {
    if (unit === lineEnd && this.#line !== "") {
      const places = this.#lines.get(this.#line.trimEnd());
      return places === undefined ? undefined : new Places(this.#shown, places);
    }
    if (isSpace(unit) && this.#line === "") return "wait";
    this.#line += String.fromCharCode(unit);
    const line = this.#line;
    if (line.length > lineMax) return undefined;
    for (const wanted of this.#lines.keys()) {
      if (wanted.startsWith(line) || line.trimEnd() === wanted) return "wait";
    }
    return undefined;
  }
}

/** Compares the new text of one continuation with the shown text. */
export class Comparison {
  readonly #places: Places;
  #reopening: Reopening | undefined;
  #reopened: Places | undefined;

  /**
   * @param run the shown text
   * @param starts offsets from which a model may start again, ascending; text before the first one is not needed
   */
  constructor(run: string, starts: ReadonlyArray<number>) {
    const fences = codeFences(run);
    const shown = tokensOf(run, starts[0] ?? 0, fences);
    const places = starts.map((start) => tokenAt(shown, start));
    this.#places = new Places(shown, places);
    this.#reopening = new Reopening(shown, places, fences);
  }

  /**
   * True if only the white space at the end of the shown text has not been repeated. New text may omit this white space, because it was
   * shown.
   */
  get isComplete(): boolean {
    return this.#places.isComplete || (this.#reopened?.isComplete ?? false);
  }

  take(text: string): Compared {
    for (let at = 0; at < text.length; at += 1) {
      const unit = text.charCodeAt(at);
      if (unit === carriageReturn) continue;
      const met = this.#places.take(unit);
      const again = this.#reopened?.take(unit) ?? false;
      if (met || again) return { type: "met", rest: text.slice(at + 1) };
      this.#reopen(unit);
      if (this.#places.isDifferent && this.#reopening === undefined && (this.#reopened?.isDifferent ?? true)) {
        return { type: "differs" };
      }
    }
    return wait;
  }

  #reopen(unit: number): void {
    const opened = this.#reopening?.take(unit);
    if (opened === "wait") return;
    this.#reopening = undefined;
    if (opened !== undefined) this.#reopened = opened;
  }
}
