/**
 * Defines which characters count as equal if new text is compared with shown text, and how much a character weighs as a proof.
 */

/** The carriage return. It is ignored in both texts, because servers differ in their line ends. */
export const carriageReturn = 0x0d;

/** The line feed. */
export const lineEnd = 0x0a;

/** True for white space of one UTF-16 code unit, as in `\s`. */
export const isSpace = (unit: number): boolean =>
  unit <= 0x20
    ? unit === 0x20 || (unit >= 0x09 && unit <= 0x0d)
    : unit >= 0xa0 &&
      (unit === 0xa0 ||
        unit === 0x1680 ||
        (unit >= 0x2000 && unit <= 0x200a) ||
        unit === 0x2028 ||
        unit === 0x2029 ||
        unit === 0x202f ||
        unit === 0x205f ||
        unit === 0x3000 ||
        unit === 0xfeff);

/** Folds typographic quotes and dashes to ASCII, because models change them when they copy prose. Other characters stay the same. */
export const fold = (unit: number): number => {
  if (unit < 0x2010 || unit > 0x201d) return unit;
  if (unit <= 0x2014) return 0x2d;
  if (unit === 0x2018 || unit === 0x2019) return 0x27;
  return unit === 0x201c || unit === 0x201d ? 0x22 : unit;
};

/** True for the first half of a surrogate pair. */
export const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/** Ranges of pictographs, and of scripts whose characters are words or syllables. A character in them weighs twice as much as a letter. */
const wide: ReadonlyArray<readonly [number, number]> = [
  [0x1100, 0x115f],
  [0x2600, 0x27bf],
  [0x2b00, 0x2bff],
  [0x2e80, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe4f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f000, 0x1faff],
  [0x20000, 0x3fffd],
];

const isWide = (point: number): boolean =>
  point >= 0x1100 && wide.some(([first, last]) => point >= first && point <= last);

/**
 * Computes the weight of text, starting at its end. A letter weighs 1, a character of a wide script or a pictograph 2, and a run of white
 * space 1.
 *
 * @param enough the weight at which the computation stops
 * @returns the weight, and the start of the character that reached it
 */
export const weighBack = (
  text: string,
  from: number,
  enough: number,
): { readonly weight: number; readonly at: number } => {
  let weight = 0;
  let at = text.length;
  let space = false;
  while (at > from && weight < enough) {
    at -= 1;
    const unit = text.charCodeAt(at);
    if (isSpace(unit)) {
      if (!space && unit !== carriageReturn) weight += 1;
      space ||= unit !== carriageReturn;
      continue;
    }
    space = false;
    if (isLowSurrogate(unit) && at > from && isHighSurrogate(text.charCodeAt(at - 1))) at -= 1;
    weight += isWide(text.codePointAt(at) ?? unit) ? 2 : 1;
  }
  return { weight, at };
};

/** Computes the weight of all of the text, by the rules of `weighBack`. */
export const weigh = (text: string): number => weighBack(text, 0, Number.POSITIVE_INFINITY).weight;

/** Returns the end of the shortest text that starts at `from` and weighs `enough`; the end of all text if it weighs less. */
export const weighAhead = (text: string, from: number, enough: number): number => {
  let weight = 0;
  let at = from;
  let space = false;
  while (at < text.length && weight < enough) {
    const point = text.codePointAt(at) ?? 0;
    if (isSpace(point)) {
      if (!space && point !== carriageReturn) weight += 1;
      space ||= point !== carriageReturn;
    } else {
      space = false;
      weight += isWide(point) ? 2 : 1;
    }
    at += point > 0xffff ? 2 : 1;
  }
  return at;
};

/**
 * Normalises text for a search: carriage returns are removed, each run of white space becomes one space, and quotes and dashes become
 * ASCII.
 */
export const foldText = (text: string): string =>
  text
    .replaceAll("\r", "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/[\u2010-\u2014]/g, "-")
    .replaceAll(/[\u2018\u2019]/g, "'")
    .replaceAll(/[\u201c\u201d]/g, '"');
