/**
 * Joins continuations to a response of Gemini.
 *
 * The seam is the place where a continuation joins the shown text. A client concatenates the text of all chunks, so a thought between two
 * pieces does not end the text. The splice drops thoughts before the seam and text that the gate withholds, and moves the byte positions of
 * sources and citations. Signatures stay with their parts.
 *
 * Gemini has no terminal event: a finish counts only with the clean end, so every finish waits for it. It is sent with a part of empty
 * text, as Google sends it, because Google's own SDK discards a whole turn if one chunk has no parts.
 */
import * as Json from "../../domain/Json.ts";
import type { ShownText } from "../../seam/ShownText.ts";
import * as ChunkSplice from "../seam/ChunkSplice.ts";
import type { Splice } from "../seam/Splice.ts";
import { bytesOf, type TextGate } from "../seam/TextGate.ts";
import { readReason } from "../stream/Payload.ts";
import { isMedia, progressOfUnseen } from "./Content.ts";

/** Creates the splice of one response. */
export const splice = (): Splice => ChunkSplice.make(form);

/** Facts about the sent part of a response that `ShownText` does not hold. */
interface GeminiShown {
  /** Length of all visible text that was sent, in bytes of UTF-8. */
  bytes: number;
}

type Before = ChunkSplice.Before<GeminiShown>;

const joiner =
  (gate: TextGate, before: Before): ChunkSplice.JoinEntry =>
  (entry, _chunk, isTerminal) => {
    const joined = joinParts(Json.list(Json.record(entry.content)?.parts), gate);
    if (joined === undefined) return undefined;
    // If a call cannot be parsed, the terminal marker is in this chunk, so there is no later end that could carry the held text.
    const said = withText(joined.parts, isTerminal ? gate.close() : "");
    const write = (portion: ChunkSplice.Portion, mayFinish: boolean, held: string) => {
      const { content, index } = entry;
      const parts = withText(portion === "finish" ? [] : said, held);
      const isCut = joined.isCut || portion !== "whole";
      const places = { bytes: before.own.bytes, run: before.shown.run, cut: gate.cutBytes };
      const fields = portion === "words" ? { content, index } : entry;
      return candidateOf(fields, { parts, isCut }, mayFinish, { index: before.index, places });
    };
    return { goesOn: joined.goesOn, finishes: readReason(entry.finishReason) !== "", write };
  };

const withText = (parts: ReadonlyArray<Json.JsonRecord>, text: string): ReadonlyArray<Json.JsonRecord> =>
  text === "" ? parts : [...parts, { text }];

/** A candidate as it is written; undefined if nothing of it remains. */
const candidateOf = (
  entry: Json.JsonRecord,
  { isCut, parts }: Pick<JoinedParts, "isCut" | "parts">,
  mayFinish: boolean,
  { index, places }: { readonly index: unknown; readonly places: Places },
): Json.JsonRecord | undefined => {
  const { avgLogprobs: _average, content, finishReason, index: _index, logprobsResult: _logprobs, ...rest } = entry;
  const { finishMessage, tokenCount: _count, ...more } = rest;
  const finishes = readReason(finishReason) !== "";
  const isOver = mayFinish && finishes;
  const isEmpty = parts.length === 0 && !isOver && !Object.keys(more).some((name) => name !== "safetyRatings");
  if (isEmpty && (isCut || finishes)) return undefined;
  const had = Json.record(content) ?? {};
  // If the server itself sent no part, no part is added.
  const isBare = parts.length === 0 && !isCut;
  const said = isBare
    ? content === undefined
      ? {}
      : { content }
    : { content: { ...had, parts: parts.length === 0 ? [{ text: "" }] : parts, role: had.role ?? "model" } };
  return {
    ...said,
    ...(isOver ? { finishReason } : {}),
    ...(isOver && finishMessage !== undefined ? { finishMessage } : {}),
    ...(index === undefined ? {} : { index }),
    ...movePositions(more, places),
  };
};

const textOnly = (text: string, before: Before): Json.JsonRecord => {
  const index = before.index === undefined ? {} : { index: before.index };
  return { candidates: [{ content: { parts: [{ text }], role: "model" }, ...index }], ...ChunkSplice.namesOf(before) };
};

const count = ({ usageMetadata }: Json.JsonRecord, counted: ChunkSplice.Count): Json.JsonRecord => {
  const usage = Json.record(usageMetadata);
  if (usage === undefined) return {};
  const next = counted(usage);
  const grown = (Json.natural(next.candidatesTokenCount) ?? 0) - (Json.natural(usage.candidatesTokenCount) ?? 0);
  const details = Json.list(usage.candidatesTokensDetails);
  if (details.length === 0) return { usageMetadata: next };
  return { usageMetadata: { ...next, candidatesTokensDetails: details.map((detail) => addTokens(detail, grown)) } };
};

/** Adds tokens to the count of text and leaves all other counts unchanged. */
const addTokens = (detail: unknown, tokens: number): unknown => {
  const record = Json.record(detail);
  const count = Json.natural(record?.tokenCount);
  return record?.modality === "TEXT" && count !== undefined
    ? { ...record, tokenCount: Math.max(0, count + tokens) }
    : detail;
};

/** Errors come in a list of one element, and Code Assist, the endpoint of Gemini CLI, wraps every chunk. */
const chunkOf = (json: unknown): ChunkSplice.Chunk | undefined => {
  const outer = Json.record(json) ?? Json.record(Json.list(json)[0]);
  const inner = outer?.candidates === undefined ? Json.record(outer?.response) : undefined;
  if (outer === undefined) return undefined;
  return inner === undefined ? { json: outer } : { json: inner, wrapper: outer };
};

const isBlocked = ({ promptFeedback }: Json.JsonRecord): boolean => {
  const blocked = readReason(Json.record(promptFeedback)?.blockReason);
  return blocked !== "" && blocked !== "BLOCK_REASON_UNSPECIFIED";
};

const form: ChunkSplice.ChunkForm<GeminiShown> = {
  names: ["responseId", "modelVersion", "createTime"],
  entries: "candidates",
  usage: {
    input: ["promptTokenCount"],
    output: ["candidatesTokenCount"],
    total: "totalTokenCount",
    ofInput: [
      ...["promptTokensDetails", "cachedContentTokenCount", "cacheTokensDetails"],
      ...["toolUsePromptTokenCount", "toolUsePromptTokensDetails"],
    ],
    summed: ["thoughtsTokenCount"],
  },
  endsWithDone: false,
  finishCarriesText: true,
  finishOmits: [],
  chunkOf,
  indexOf: (index) => Json.natural(index) ?? 0,
  count,
  isBlocked,
  start: () => ({ bytes: 0 }),
  recordSentEntry: (own, entry, shown) => {
    let characters = 0;
    for (const item of Json.list(Json.record(entry.content)?.parts)) {
      const { text, thought } = recordSentPart(Json.record(item) ?? {}, shown);
      characters += thought.length + text.length;
      own.bytes += bytesOf(text);
    }
    return characters;
  },
  joiner,
  textOnly,
};

/** The lengths and the text that place a continuation's text in the client's text. */
interface Places {
  /** Length of all text that was shown, in bytes of UTF-8. */
  readonly bytes: number;
  /** All visible text since the last block that is not text. */
  readonly run: string;
  /** Length of the new text before the seam, in bytes of UTF-8. */
  readonly cut: number;
}

/**
 * Moves the byte positions in the fields of a candidate to the text that the client has.
 *
 * A source of text before the seam is kept only if the shown text has the same bytes at that position. The seam is proven with
 * white space and quotation marks folded, so the bytes before it may differ.
 */
const movePositions = (fields: Json.JsonRecord, places: Places): Json.JsonRecord => {
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

/** The parts of a chunk that passed the gate. */
interface JoinedParts {
  readonly parts: ReadonlyArray<Json.JsonRecord>;
  /** True if at least one part was removed. */
  readonly isCut: boolean;
  /** True if the parts have any content, even if all of it was held or dropped. */
  readonly goesOn: boolean;
}

/**
 * Passes the parts of a candidate through the gate, in order.
 *
 * @returns undefined if they cannot be joined, after the gate has failed
 */
const joinParts = (items: ReadonlyArray<unknown>, gate: TextGate): JoinedParts | undefined => {
  const parts: Array<Json.JsonRecord> = [];
  let isCut = false;
  let goesOn = false;
  for (const item of items) {
    const part = Json.record(item) ?? {};
    const kind = kindOf(part);
    goesOn ||= kind !== "empty";
    const left = kind === "text" ? textOf(part, gate) : kind === "other" ? otherOf(part, gate) : hiddenOf(part, gate);
    if (gate.fault !== undefined) return undefined;
    parts.push(...left);
    isCut ||= left.length === 0;
  }
  return { parts, isCut, goesOn };
};

/**
 * Records a part that was sent to the client.
 *
 * @returns its words
 */
const recordSentPart = (
  part: Json.JsonRecord,
  shown: ShownText,
): { readonly text: string; readonly thought: string } => {
  const words = Json.string(part.text);
  const kind = kindOf(part);
  if (kind === "thought") return { text: "", thought: words };
  if (kind === "other") recordSentOther(part, shown);
  // A picture may come with words, which the decoder counts.
  shown.say(words);
  return { text: words, thought: "" };
};

/** `other` is not text: a call, a hosted tool, a picture, or an unknown part. `empty` has no words but may have a signature. */
const kindOf = (part: Json.JsonRecord): "text" | "thought" | "other" | "empty" => {
  if (isCalled(part)) return "other";
  if (part.thought === true) return "thought";
  if (isMedia(part) || progressOfUnseen(part) === "output") return "other";
  return Json.string(part.text) === "" ? "empty" : "text";
};

const hosted = ["executableCode", "toolCall"];
const results = ["codeExecutionResult", "toolResponse"];

const called = ["functionCall", ...hosted, ...results];

const isCalled = (part: Json.JsonRecord): boolean => {
  for (const name of called) if (Json.record(part[name]) !== undefined) return true;
  return false;
};

const recordSentOther = (part: Json.JsonRecord, shown: ShownText): void => {
  if (Json.record(part.functionCall) !== undefined || isMedia(part)) shown.refuse("not_text_last");
  for (const [index, name] of hosted.entries()) {
    const call = Json.record(part[name]);
    const result = Json.record(part[results[index] ?? ""]);
    if (call !== undefined) shown.recordHostedTool(`${name} ${Json.string(call.id)}`, false);
    if (result !== undefined) shown.recordHostedTool(`${name} ${Json.string(result.id)}`, true);
  }
  shown.endRun();
};

/**
 * Passes text through the gate. If the text was cut off, its signature stays in an empty part, for the text that the client already has.
 */
const textOf = (part: Json.JsonRecord, gate: TextGate): ReadonlyArray<Json.JsonRecord> => {
  const text = gate.pass(Json.string(part.text));
  return text !== "" || isSigned(part) ? [{ ...part, text }] : [];
};

const isSigned = (part: Json.JsonRecord): boolean => part.thoughtSignature !== undefined && part.thought !== true;

const otherOf = (part: Json.JsonRecord, gate: TextGate): ReadonlyArray<Json.JsonRecord> => {
  const held = gate.closeText();
  if (held === undefined) return [];
  return held === "" ? [part] : [{ text: held }, part];
};

const hiddenOf = (part: Json.JsonRecord, gate: TextGate): ReadonlyArray<Json.JsonRecord> =>
  gate.isJoined || isSigned(part) ? [part] : [];
