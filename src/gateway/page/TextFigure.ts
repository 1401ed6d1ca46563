/** Renders the text of a response as pieces, one per attempt, and the seams between them (the places where a continuation joins). */
import type { RunStory } from "../../story/RunStory.ts";
import { formatCharacters, seamProofs, type TextPiece } from "../../story/SeamWords.ts";
import { groupDigits } from "../../story/Times.ts";
import { type Html, html, none } from "./Html.ts";

/** Minimum share of the width for the last piece, whose exact length is not recorded. */
const lastShareMin = 0.15;

/** Renders the texts of a run that were continued at a seam; empty if there are none. */
export const textFigures = ({ attempts, texts }: RunStory): Html => {
  if (texts.length === 0) return none;
  const lengths = new Map(attempts.map(({ record }) => [record.attempt, record.facts.counters.characters]));
  return html`${texts.map((text) => textFigure(text, lengths))}`;
};

const textFigure = (text: ReadonlyArray<TextPiece>, lengths: ReadonlyMap<number, number>): Html => {
  const width = widthOf(text, lengths);
  const placeOf = (at: number) => `${Math.round((at / width) * 100_000) / 1_000}%`;
  return html`<figure class="text" aria-label="${ariaLabelOf(text)}">
    <svg class="track" height="44" aria-hidden="true">${text.map((piece, index) => pieceOf(piece, index, width, placeOf))}${text.map((piece) => drawSeam(piece, placeOf))}</svg>
    <figcaption><ol>${text.map(legendOf)}</ol></figcaption>
  </figure>`;
};

const legendOf = ({ attempt, from, proof, to }: TextPiece, index: number): Html =>
  html`<li><span class="key piece p${index % 2}"><i></i>attempt ${attempt}</span> ${to === undefined ? html`from ${groupDigits(from)} on` : html`${groupDigits(from)} to ${groupDigits(to)}`}${proof !== undefined && html` <span class="key seam"><i></i>after ${formatCharacters(from)}: ${seamProofs[proof]}</span>`}</li>`;

/**
 * Returns the width of the drawing, in characters. The last piece has the length that its attempt reports, but is always wide enough to be
 * visible.
 */
const widthOf = (text: ReadonlyArray<TextPiece>, lengths: ReadonlyMap<number, number>): number => {
  const last = text.at(-1);
  if (last === undefined) return 1;
  const least = (last.from * lastShareMin) / (1 - lastShareMin);
  return Math.max(1, last.from + Math.max(least, lengths.get(last.attempt) ?? 0));
};

const ariaLabelOf = (text: ReadonlyArray<TextPiece>): string =>
  `The text in pieces: ${text
    .map(({ attempt, from, proof }) =>
      proof === undefined ? `attempt ${attempt}` : `attempt ${attempt} after ${formatCharacters(from)}, by ${proof}`,
    )
    .join("; ")}`;

const pieceOf = (
  { attempt, from, to }: TextPiece,
  index: number,
  width: number,
  place: (at: number) => string,
): Html => {
  const end = to ?? width;
  return html`<rect class="piece p${index % 2}" x="${place(from)}" y="6" width="${place(Math.max(0, end - from))}" height="18"><title>attempt ${attempt}: ${to === undefined ? `from ${groupDigits(from)} on` : `${groupDigits(from)} to ${groupDigits(to)}`}</title></rect>`;
};

/** Draws a seam and the number of characters before it. */
const drawSeam = ({ from, proof }: TextPiece, place: (at: number) => string): Html =>
  proof === undefined
    ? none
    : html`<svg x="${place(from)}" overflow="visible"><title>seam after ${formatCharacters(from)}</title>${stitch}<text y="40" text-anchor="middle">${groupDigits(from)}</text></svg>`;

/** The symbol of a seam in this figure and in the timeline. */
export const stitch: Html = html`<path class="stitch under" d="M-5 10h10M-5 15h10M-5 20h10"/><path class="stitch" d="M-5 10h10M-5 15h10M-5 20h10"/>`;
