/**
 * Moves the annotations of a text whose front is another text than the one that the client has read.
 */
import * as Json from "../../domain/Json.ts";

/**
 * How the positions of a joined text lie to each other, in code points. OpenAI's documents say "character" and no unit; its
 * servers and first SDK are Python, whose characters these are.
 */
export interface Shift {
  /** Where the seam is in the continuation's own text. */
  readonly seam: number;
  /** What is added to a position behind it. */
  readonly by: number;
}

/** The length of a text in code points. */
export const codePoints = (text: string): number => {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
};

/** Whether an annotation says where it stands; some servers' do not. */
export const isPlaced = (annotation: Json.JsonRecord): boolean =>
  Json.natural(annotation.end_index) !== undefined || Json.natural(annotation.index) !== undefined;

/**
 * An annotation where it stands in the joined text.
 *
 * @returns undefined where it lies in front of the seam: the client has read that text, and what was told of it
 */
export const moved = (annotation: Json.JsonRecord, { by, seam }: Shift): Json.JsonRecord | undefined => {
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
 * The annotations that a continuation adds to those of a text.
 *
 * @param before those that stand there; none of them comes twice
 */
export const added = (
  before: ReadonlyArray<unknown>,
  told: ReadonlyArray<unknown>,
  shift: Shift,
): ReadonlyArray<Json.JsonRecord> => {
  const known = new Set(before.map((annotation) => JSON.stringify(annotation)));
  return told.flatMap((value) => {
    const found = moved(Json.record(value) ?? {}, shift);
    return found === undefined || known.has(JSON.stringify(found)) ? [] : [found];
  });
};
