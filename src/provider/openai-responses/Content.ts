/**
 * Reads the content of a response's events: texts, and output items in the form in which they are sent back.
 *
 * Servers send text in deltas, at the end of the text, or only in the final response. The decoder decides which text is new.
 */
import * as Json from "../../domain/Json.ts";
import type { CallSignal } from "../../domain/Observation.ts";
import { type Content, type ItemPiece, keyOfCall, nothing } from "../stream/Content.ts";
import * as ResponsesItem from "./Item.ts";
import { type Key, keyOf } from "./Slots.ts";

/** Reads a piece of text, of a refusal or of an audio transcript. */
export const readDelta = (frame: Json.JsonRecord): ReadonlyArray<Content> => {
  const said = Json.string(frame.delta);
  const type = frame.type === "response.refusal.delta" ? "refusal" : "output_text";
  return said === "" ? nothing : [piece(keyOf(frame), type, indexIn(frame), said)];
};

/** Reads text that arrives whole: a content part, or the event that ends a text. */
export const readWhole = (frame: Json.JsonRecord, part: Json.JsonRecord): ReadonlyArray<Content> =>
  partTexts(keyOf(frame), indexIn(frame), part);

/** Reads a piece of reasoning. Only the item of the reasoning is sent back to the provider. */
export const readReasoning = (frame: Json.JsonRecord): ReadonlyArray<Content> => [
  { kind: "reasoning", choice: 0, key: itemKey(keyOf(frame)), text: Json.string(frame.delta) },
];

/** Reads sound, or a preview of a picture. A preview belongs to the call that draws the picture. */
export const readMedia = (frame: Json.JsonRecord, call: boolean): ReadonlyArray<Content> => [
  { kind: "media", choice: 0, key: itemKey(keyOf(frame)), text: "", ...(call ? { item: { json: {} } } : {}) },
];

/** Reads the texts of a message that arrives whole. */
export const messageTexts = (key: Key, message: Json.JsonRecord): ReadonlyArray<Content> =>
  Json.list(message.content).flatMap((part, index) => partTexts(key, index, Json.record(part) ?? {}));

/** Reads an item that begins or is complete, without its texts. */
export const readItem = (
  key: Key,
  json: Json.JsonRecord,
  type: "text" | "reasoning" | "hosted" | "result",
  phase: "begins" | "ends",
): ReadonlyArray<Content> => {
  const said = { choice: 0, key: itemKey(key), text: "", item: { type, phase, json: { item: json } } };
  if (type === "text") return [{ kind: "text", ...said }];
  return [type === "reasoning" ? { kind: "reasoning", ...said, keep: keepOf(json) } : { kind: "item", ...said }];
};

/** Reads the item of a call of the caller's tools. */
export const readCall = (signals: ReadonlyArray<CallSignal>, json: Json.JsonRecord): ReadonlyArray<Content> =>
  signals.map((signal) => ({
    kind: "call",
    choice: 0,
    key: keyOfCall(signal),
    text: "",
    item: { json: { item: json } },
  }));

/** The fields that identify a reasoning item when it is sent back: its id, or its encrypted content if the response is not stored. */
const keepOf = (json: Json.JsonRecord): Readonly<Record<string, string>> => {
  const encrypted = Json.string(json.encrypted_content);
  return { item_id: Json.string(json.id), ...(encrypted === "" ? {} : { encrypted_content: encrypted }) };
};

/** Returns the content of a part of a message. Audio is sent back as its transcript. */
const partTexts = (key: Key, index: number, part: Json.JsonRecord): ReadonlyArray<Content> => {
  const said = ResponsesItem.partText(part);
  if (said === "") return nothing;
  const refused = Json.string(part.text) === "" && Json.string(part.refusal) !== "";
  return [piece(key, refused ? "refusal" : "output_text", index, said)];
};

const indexIn = (frame: Json.JsonRecord): number => Json.natural(frame.content_index) ?? 0;

const piece = (key: Key, type: "output_text" | "refusal", index: number, said: string): Content => ({
  kind: "text",
  choice: 0,
  key: itemKey(key),
  text: said,
  item: index === 0 ? firstPieces[type] : pieceOf(type, index),
});

const pieceOf = (type: "output_text" | "refusal", index: number): ItemPiece => ({
  type: "text",
  field: `${type} ${index}`,
});

/** The pieces of the first content of a message. All deltas share them, because almost every text is the first content of its message. */
const firstPieces = { output_text: pieceOf("output_text", 0), refusal: pieceOf("refusal", 0) } as const;

const itemKey = (key: Key): string => String(key);
