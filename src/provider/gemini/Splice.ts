/**
 * Joins continuations to a response of Gemini.
 *
 * A client concatenates the text of all chunks, so a thought between two pieces does not end the text. The splice drops thoughts before the
 * seam and text that the gate withholds, and moves the byte positions of sources and citations. Signatures stay with their parts.
 *
 * Gemini has no terminal event: a finish counts only with the clean end, so every finish waits for it. It is sent with a part of empty
 * text, as Google sends it, because Google's own SDK discards a whole turn if one chunk has no parts.
 */
import * as Json from "../../domain/Json.ts";
import * as ChunkSplice from "../seam/ChunkSplice.ts";
import type { Splice } from "../seam/Splice.ts";
import { bytesOf, type TextGate } from "../seam/TextGate.ts";
import { reason } from "../stream/Payload.ts";
import { type JoinedParts, joinParts, recordSentPart } from "./SplicedParts.ts";
import { movePositions, type Places } from "./SplicedPlaces.ts";

/** Creates the splice of one response. */
export const splice = (): Splice => ChunkSplice.make(form);

/** The parts of a response, other than its text, that were handed over. */
interface GeminiShown {
  /** All visible text, in bytes of UTF-8. */
  bytes: number;
}

type Before = ChunkSplice.Before<GeminiShown>;

const joiner =
  (gate: TextGate, before: Before): ChunkSplice.JoinEntry =>
  (entry, _chunk, isTerminal) => {
    const joined = joinParts(Json.list(Json.record(entry.content)?.parts), gate);
    if (joined === undefined) return undefined;
    // If a call cannot be parsed, the marker is in this chunk, so there is no later end that could carry the held text.
    const said = withText(joined.parts, isTerminal ? gate.close() : "");
    const write = (portion: ChunkSplice.Portion, mayFinish: boolean, held: string) => {
      const { content, index } = entry;
      const parts = withText(portion === "finish" ? [] : said, held);
      const isCut = joined.isCut || portion !== "whole";
      const places = { bytes: before.own.bytes, run: before.shown.run, cut: gate.cutBytes };
      const fields = portion === "words" ? { content, index } : entry;
      return candidateOf(fields, { parts, isCut }, mayFinish, { index: before.index, places });
    };
    return { goesOn: joined.goesOn, finishes: reason(entry.finishReason) !== "", write };
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
  const finishes = reason(finishReason) !== "";
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

/** Errors come in a list of one, and Code Assist, the endpoint of Gemini CLI, wraps every chunk. */
const chunkOf = (json: unknown): ChunkSplice.Chunk | undefined => {
  const outer = Json.record(json) ?? Json.record(Json.list(json)[0]);
  const inner = outer?.candidates === undefined ? Json.record(outer?.response) : undefined;
  if (outer === undefined) return undefined;
  return inner === undefined ? { json: outer } : { json: inner, wrapper: outer };
};

const isBlocked = ({ promptFeedback }: Json.JsonRecord): boolean => {
  const blocked = reason(Json.record(promptFeedback)?.blockReason);
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
