/**
 * Splits the end of the shown text into tokens, so that new text can be compared with it at many positions at once.
 *
 * A token is a character or a run of white space. Carriage returns are skipped.
 */
import type { CodeFence } from "./CodeFences.ts";
import { carriageReturn, fold, isSpace } from "./Folding.ts";

/** The token for a run of white space. */
export const space = -1;

/** Text as tokens. The arrays have the same length. */
export interface Tokens {
  /** For each token its character, or `space`. Quotes and dashes are folded to ASCII, except in exact tokens. */
  readonly units: ReadonlyArray<number>;
  /** Offset of each token in the text. */
  readonly places: ReadonlyArray<number>;
  /** True for tokens inside a code fence. They are not folded, and white space is significant. */
  readonly exact: ReadonlyArray<boolean>;
  /** Runs of white space without carriage returns, by the index of their token. */
  readonly spaces: ReadonlyMap<number, string>;
}

/** Splits text into tokens, starting at an offset. */
export const tokensOf = (text: string, from: number, fences: ReadonlyArray<CodeFence> = []): Tokens => {
  const units: Array<number> = [];
  const places: Array<number> = [];
  const exact: Array<boolean> = [];
  const spaces = new Map<number, string>();
  let fence = 0;
  const inFence = (at: number): boolean => {
    while (fence < fences.length && (fences[fence]?.to ?? 0) <= at) fence += 1;
    return at >= (fences[fence]?.from ?? Number.POSITIVE_INFINITY);
  };
  for (let at = from; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit === carriageReturn) continue;
    const last = units.length - 1;
    const program = inFence(at);
    if (isSpace(unit)) {
      if (units[last] === space) {
        spaces.set(last, (spaces.get(last) ?? "") + String.fromCharCode(unit));
        // White space belongs to the text after it. Indentation is therefore part of the code, but an empty line before a fence is not.
        exact[last] = program;
        continue;
      }
      spaces.set(last + 1, String.fromCharCode(unit));
    }
    units.push(isSpace(unit) ? space : program ? unit : fold(unit));
    places.push(at);
    exact.push(program);
  }
  return { units, places, exact, spaces };
};

/** Returns the index of the first token at or after an offset. */
export const tokenAt = ({ places }: Tokens, place: number): number => {
  let low = 0;
  let high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((places[middle] ?? 0) < place) low = middle + 1;
    else high = middle;
  }
  return low;
};
