/**
 * Chooses the anchor: the end of the shown text, with which a continuation must start.
 *
 * The anchor starts at a sentence or a line, because a model recognises such a position. It ends at the very last character, even in the
 * middle of a word. If it ended after the last whole sentence, the model would write the cut sentence a second time.
 */
import type { SeamRefusal } from "../domain/SeamWords.ts";
import { foldText, isHighSurrogate, isSpace, weighAhead, weighBack } from "./Folding.ts";
import { sentenceStarts } from "./SentenceStarts.ts";

/** The end of the shown text. A continuation must repeat it before new text. */
export interface Anchor {
  /** Offset of the anchor in the text run (the last shown text without interruption), in UTF-16 code units. */
  readonly at: number;
  /** The text run from that offset to its end. New text is compared with it. */
  readonly text: string;
  /** The part of the anchor that the request quotes: without an incomplete surrogate pair and without trailing white space. */
  readonly quote: string;
}

/**
 * Minimum weight of an anchor; a letter weighs 1. In 87,500 simulated continuations, none started with this much of the anchor by chance.
 */
export const anchorWeightMin = 40;

/** Maximum length of a sentence that is quoted from its start, in code units. Repeated text costs money and time. */
const sentenceMax = 400;

/** Minimum distance between the start of the anchor and the end of the text if the last sentence exceeds `sentenceMax`, in code units. */
const wordFrom = 340;

/** Maximum length of an anchor, in code units. */
export const anchorMax = 800;

/** Maximum number of candidates for the start of the anchor. Each check reads the whole text run. */
const triesMax = 100;

const segmenter = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Returns the starts of words between two offsets, last one first. */
const wordStarts = (run: string, from: number, to: number): ReadonlyArray<number> => {
  const found: Array<number> = [];
  for (let at = to; at >= from && at > 0; at -= 1) {
    if (!isSpace(run.charCodeAt(at)) && isSpace(run.charCodeAt(at - 1))) found.push(at);
  }
  return found;
};

/** Returns the start of the grapheme that contains an offset. */
const graphemeStart = (run: string, at: number): number => {
  const from = Math.max(0, at - anchorMax);
  return from + (segmenter.segment(run.slice(from)).containing(at - from)?.index ?? 0);
};

/** True if the beginning of an anchor at this offset, up to the minimum weight, occurs only once in the text run. */
const isUnique = (run: string, text: string, at: number): boolean => {
  const first = foldText(run.slice(at, weighAhead(run, at, anchorWeightMin))).trimEnd();
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
 * @param run the text run: all text that was shown since the last block that is not text
 * @returns the anchor, or the reason why there is none
 */
export const anchorOf = (run: string): Anchor | SeamRefusal => {
  const end = run.length;
  const begin = end - run.trimStart().length;
  if (begin === end) return "blank";
  const enough = weighBack(run, begin, anchorWeightMin);
  // The text run is too short to choose a part of it, so all of it is the anchor. The model then starts again and writes the whole
  // response, which is the strongest proof.
  if (enough.weight < anchorWeightMin) return anchorAt(run, begin);
  const starts = sentenceStarts(run, Math.max(0, end - anchorMax))
    .filter((at) => at <= enough.at)
    .reverse();
  const near = starts.filter((at) => end - at <= sentenceMax);
  const words = wordStarts(run, Math.max(begin, end - sentenceMax), Math.min(end - wordFrom, enough.at));
  const first = near[0] ?? words[0] ?? graphemeStart(run, Math.min(end - wordFrom, enough.at));
  const further = wordStarts(run, Math.max(begin, end - anchorMax), end - sentenceMax - 1);
  const text = foldText(run);
  const grown = [first, ...starts.filter((start) => start < first), ...words.slice(1), ...further].slice(0, triesMax);
  for (const at of grown) if (isUnique(run, text, at)) return anchorAt(run, at);
  return "repeats_itself";
};
