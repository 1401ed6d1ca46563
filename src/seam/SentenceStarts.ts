/** Finds the starts of sentences and lines. A model that repeats text starts at one of them. */
import { isSpace, lineEnd } from "./Folding.ts";

const units = (characters: string): ReadonlySet<number> => new Set(Array.from(characters, (one) => one.charCodeAt(0)));

/** Characters that end a sentence if white space follows. */
const terminators = units(".!?…‽؟۔।॥։።។။");

/** Characters that end a sentence in scripts without white space between sentences. */
const wideTerminators = units("。！？｡");

/** Characters that may follow the end of a sentence, before the next one starts. */
const closers = units("\"'”’)]}»›*_`」』）】》〉");

/** Number of code units that are read before the requested offset, to find the end of the sentence before it. */
const lookBack = 64;

/**
 * Finds the starts of sentences and lines. A start is the offset of the first character that is not white space.
 *
 * @param from lowest requested offset
 * @returns offsets, ascending, including the start of the text
 */
export const sentenceStarts = (text: string, from: number): ReadonlyArray<number> => {
  const found: Array<number> = [];
  let at = Math.max(0, from - lookBack);
  let begins = at === 0;
  let ended: "no" | "narrow" | "wide" = "no";
  for (; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (isSpace(unit)) {
      begins ||= unit === lineEnd || ended !== "no";
      continue;
    }
    const terminates = wideTerminators.has(unit) ? "wide" : terminators.has(unit) ? "narrow" : "no";
    const closes = closers.has(unit);
    if (begins || (ended === "wide" && terminates === "no" && !closes)) {
      if (at >= from) found.push(at);
      begins = false;
      ended = "no";
    }
    if (terminates !== "no") ended = terminates;
    else if (!closes) ended = "no";
  }
  return found;
};
