/**
 * Moves the annotations of a continuation's text to their positions in the text that the client has read.
 */
import * as Json from "../../domain/Json.ts";

/**
 * Offset between positions in a continuation and in the joined text, in code points. OpenAI's documentation counts "characters" without a
 * unit. Its servers and first SDK are Python, where a character is a code point.
 */
export interface Shift {
  /** Position of the seam in the continuation's own text. */
  readonly seam: number;
  /** Number that is added to every position after the seam. */
  readonly by: number;
}

/** Returns the length of a string in code points. */
export const codePoints = (text: string): number => {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
};

/** True if an annotation has a position. Annotations of some servers have none. */
export const isPlaced = (annotation: Json.JsonRecord): boolean =>
  Json.natural(annotation.end_index) !== undefined || Json.natural(annotation.index) !== undefined;

/**
 * Moves an annotation to its position in the joined text.
 *
 * @returns undefined if it lies before the seam, because the client already has the annotations of that text
 */
export const move = (annotation: Json.JsonRecord, { by, seam }: Shift): Json.JsonRecord | undefined => {
  const start = Json.natural(annotation.start_index);
  const end = Json.natural(annotation.end_index);
  const index = Json.natural(annotation.index);
  if (end !== undefined ? end <= seam : index !== undefined && index < seam) return undefined;
  return {
    ...annotation,
    ...(start === undefined ? {} : { start_index: Math.max(0, start + by) }),
    ...(end === undefined ? {} : { end_index: end + by }),
    ...(index === undefined ? {} : { index: index + by }),
  };
};

/**
 * Returns the annotations that a continuation adds to those that a text already has.
 *
 * @param before existing annotations, which are not repeated
 */
export const findNew = (
  before: ReadonlyArray<unknown>,
  told: ReadonlyArray<unknown>,
  shift: Shift,
): ReadonlyArray<Json.JsonRecord> => {
  const known = new Set(before.map((annotation) => JSON.stringify(annotation)));
  return told.flatMap((value) => {
    const found = move(Json.record(value) ?? {}, shift);
    return found === undefined || known.has(JSON.stringify(found)) ? [] : [found];
  });
};
