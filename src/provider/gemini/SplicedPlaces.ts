/**
 * Moves the byte positions of Gemini's sources and citations to the text that the client has.
 *
 * A source of text before the seam is kept only if the shown text has the same bytes at that position. The seam is proven with
 * white space and quotation marks folded, so the bytes before it may differ.
 */
import * as Json from "../../domain/Json.ts";

/** The position of a continuation's text. */
export interface Places {
  /** All text that was shown, in bytes. */
  readonly bytes: number;
  /** The text run: the last stretch of shown text that nothing but text interrupts. */
  readonly run: string;
  /** The new text before the seam, in bytes. */
  readonly cut: number;
}

/** Moves the positions in the fields of a candidate. */
export const movePositions = (fields: Json.JsonRecord, places: Places): Json.JsonRecord => {
  const next: Record<string, unknown> = { ...fields };
  const grounding = Json.record(fields.groundingMetadata);
  if (grounding !== undefined && Array.isArray(grounding.groundingSupports))
    next.groundingMetadata = {
      ...grounding,
      groundingSupports: grounding.groundingSupports.flatMap((support) => supportOf(support, places)),
    };
  const citations = Json.record(fields.citationMetadata);
  if (citations !== undefined) next.citationMetadata = citationsOf(citations, places);
  return next;
};

const supportOf = (support: unknown, places: Places): ReadonlyArray<unknown> => {
  const record = Json.record(support);
  const segment = Json.record(record?.segment);
  if (record === undefined || segment === undefined) return [support];
  const at = spanOf(segment, places);
  if (!isBehind(segment, places) && !isThere(Json.string(segment.text), at, places)) return [];
  return [{ ...record, segment: { ...segment, ...at } }];
};

/** Google's API calls the list `citationSources`, Vertex AI `citations`. */
const citationsOf = (citations: Json.JsonRecord, places: Places): Json.JsonRecord => {
  const next: Record<string, unknown> = { ...citations };
  for (const name of ["citationSources", "citations"]) {
    const entries = citations[name];
    if (!Array.isArray(entries)) continue;
    next[name] = entries.flatMap((entry) => {
      const citation = Json.record(entry);
      if (citation === undefined || citation.endIndex === undefined) return [entry];
      return isBehind(citation, places) ? [{ ...citation, ...spanOf(citation, places) }] : [];
    });
  }
  return next;
};

interface Span {
  readonly startIndex: number;
  readonly endIndex: number;
}

/** If the position is missing, the segment begins at the start. */
const startOf = (place: Json.JsonRecord): number => Json.natural(place.startIndex) ?? 0;

const spanOf = (place: Json.JsonRecord, { bytes, cut }: Places): Span => {
  const start = startOf(place);
  const shift = bytes - cut;
  return { startIndex: start + shift, endIndex: (Json.natural(place.endIndex) ?? start) + shift };
};

const isBehind = (place: Json.JsonRecord, { cut }: Places): boolean => startOf(place) >= cut;

/** True if the shown text contains the start of a segment at its position. */
const isThere = (text: string, { endIndex, startIndex }: Span, { bytes, run }: Places): boolean => {
  const shown = encoder.encode(run);
  const from = startIndex - (bytes - shown.length);
  if (text === "" || from < 0) return false;
  const there = shown.subarray(from, Math.min(shown.length, from + endIndex - startIndex));
  const said = encoder.encode(text);
  return there.length > 0 && there.every((byte, index) => byte === said[index]);
};

const encoder = new TextEncoder();
