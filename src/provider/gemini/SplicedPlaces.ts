/**
 * Moves the places that Gemini's sources and citations have in a text, in bytes, to where that text stands for the client.
 *
 * What is about text in front of the seam is kept only where the shown text has those very bytes there: the seam is proven with
 * white space and quotation marks folded, so that bytes in front of it need not be the same.
 */
import * as Json from "../../domain/Json.ts";

/** Where the text of a continuation stands. */
export interface Places {
  /** All text that was shown, in bytes. */
  readonly bytes: number;
  /** The end of it: the text run. */
  readonly run: string;
  /** What of the new text stands in front of the seam, in bytes. */
  readonly cut: number;
}

/** The fields of a candidate with their places moved. */
export const moved = (fields: Json.JsonRecord, places: Places): Json.JsonRecord => {
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

/** Google's API names the list after its sources, Vertex AI after its citations. */
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

/** A place that is left out is the beginning. */
const startOf = (place: Json.JsonRecord): number => Json.natural(place.startIndex) ?? 0;

const spanOf = (place: Json.JsonRecord, { bytes, cut }: Places): Span => {
  const start = startOf(place);
  const shift = bytes - cut;
  return { startIndex: start + shift, endIndex: (Json.natural(place.endIndex) ?? start) + shift };
};

const isBehind = (place: Json.JsonRecord, { cut }: Places): boolean => startOf(place) >= cut;

/** Whether the shown text has the beginning of a segment at that place. */
const isThere = (text: string, { endIndex, startIndex }: Span, { bytes, run }: Places): boolean => {
  const shown = encoder.encode(run);
  const from = startIndex - (bytes - shown.length);
  if (text === "" || from < 0) return false;
  const there = shown.subarray(from, Math.min(shown.length, from + endIndex - startIndex));
  const said = encoder.encode(text);
  return there.length > 0 && there.every((byte, index) => byte === said[index]);
};

const encoder = new TextEncoder();
