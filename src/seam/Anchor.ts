/**
 * Chooses the anchor: the end of a shown text that a continuation has to begin with.
 *
 * It begins at a sentence or a line, because a model finds its way from there, and ends at the very last character, cut word
 * included, because a model that is asked to begin at a whole sentence says the cut one twice.
 */
import type { SeamRefusal } from "../domain/SeamWords.ts";
import { folded, isHighSurrogate, isSpace, weighAhead, weighBack } from "./Folding.ts";
import { sentenceStarts } from "./SentenceStarts.ts";

/** Where a shown text ends, and what has to come again before it goes on. */
export interface Anchor {
  /** Where the anchor begins in the text run, in UTF-16 code units. */
  readonly at: number;
  /** From there to the end of the run: what the new text is compared with. */
  readonly text: string;
  /** What the request quotes of it: without half a surrogate pair and without white space at its end. */
  readonly quote: string;
}

/** Least weight of an anchor: of 87,500 simulated continuations none began with so much by chance. */
export const anchorWeightMin = 40;

/** A sentence that is longer is not quoted from its beginning: what comes again is paid and waited for. In code units. */
const sentenceMax = 400;

/** Where the anchor of such a sentence begins, in code units from the end. */
const wordFrom = 340;

/** Longest anchor, in code units. */
export const anchorMax = 800;

/** Most places that are tried for an anchor: each reads the whole run. */
const triesMax = 100;

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Starts of words between two places, the last one first. */
const wordStarts = (run: string, from: number, to: number): ReadonlyArray<number> => {
  const found: Array<number> = [];
  for (let at = to; at >= from && at > 0; at -= 1) {
    if (!isSpace(run.charCodeAt(at)) && isSpace(run.charCodeAt(at - 1))) found.push(at);
  }
  return found;
};

/** The last start of a character as readers see it at a place or in front of it. */
const graphemeStart = (run: string, at: number): number => {
  const from = Math.max(0, at - anchorMax);
  return from + (segmenter.segment(run.slice(from)).containing(at - from)?.index ?? 0);
};

/** Whether what the anchor begins with stands once in the run. */
const standsOnce = (run: string, text: string, at: number): boolean => {
  const first = folded(run.slice(at, weighAhead(run, at, anchorWeightMin))).trimEnd();
  const found = text.indexOf(first);
  return found >= 0 && text.indexOf(first, found + 1) < 0;
};

const anchorAt = (run: string, at: number): Anchor | SeamRefusal => {
  const text = run.slice(at);
  const whole = isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.slice(0, -1) : text;
  const quote = whole.trimEnd();
  return quote === "" ? "blank" : { at, text, quote };
};

/**
 * Chooses the anchor of a text run.
 *
 * @param run all text that was shown since the last block that is no text
 * @returns the anchor, or why there is none
 */
export const anchorOf = (run: string): Anchor | SeamRefusal => {
  const end = run.length;
  const begin = end - run.trimStart().length;
  if (begin === end) return "blank";
  const enough = weighBack(run, begin, anchorWeightMin);
  // the model starts over, and the response is one whole response of the model: the strongest seam there is
  if (enough.weight < anchorWeightMin) return anchorAt(run, begin);
  const starts = sentenceStarts(run, Math.max(0, end - anchorMax))
    .filter((at) => at <= enough.at)
    .reverse();
  const near = starts.filter((at) => end - at <= sentenceMax);
  const words = wordStarts(run, Math.max(begin, end - sentenceMax), Math.min(end - wordFrom, enough.at));
  const first = near[0] ?? words[0] ?? graphemeStart(run, Math.min(end - wordFrom, enough.at));
  const further = wordStarts(run, Math.max(begin, end - anchorMax), end - sentenceMax - 1);
  const text = folded(run);
  const grown = [first, ...starts.filter((start) => start < first), ...words.slice(1), ...further].slice(0, triesMax);
  for (const at of grown) if (standsOnce(run, text, at)) return anchorAt(run, at);
  return "repeats_itself";
};
