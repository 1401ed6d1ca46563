/**
 * Reads what the events of a response say: texts, and output items as they will be sent back.
 *
 * What of it is new the decoder knows: servers tell a text in deltas, in its end, or only at the end of all.
 */
import * as Json from "../../domain/Json.ts";
import type { CallSignal } from "../../domain/Observation.ts";
import { type Content, type ItemPiece, keyOfCall, nothing } from "../stream/Content.ts";
import * as ResponsesItem from "./Item.ts";
import { type Key, keyOf } from "./Slots.ts";

/** A piece of text, of a refusal or of the words of audio. */
export const delta = (frame: Json.JsonRecord): ReadonlyArray<Content> => {
  const said = Json.string(frame.delta);
  const type = frame.type === "response.refusal.delta" ? "refusal" : "output_text";
  return said === "" ? nothing : [piece(keyOf(frame), type, indexIn(frame), said)];
};

/** A text that comes whole: a content part, or its end. */
export const whole = (frame: Json.JsonRecord, part: Json.JsonRecord): ReadonlyArray<Content> =>
  partTexts(keyOf(frame), indexIn(frame), part);

/** A piece of reasoning. Its item is what goes back. */
export const reasoning = (frame: Json.JsonRecord): ReadonlyArray<Content> => [
  { kind: "reasoning", choice: 0, key: itemKey(keyOf(frame)), text: Json.string(frame.delta) },
];

/** Sound, and a preview of a picture: the preview belongs to the call that draws it. */
export const media = (frame: Json.JsonRecord, call: boolean): ReadonlyArray<Content> => [
  { kind: "media", choice: 0, key: itemKey(keyOf(frame)), text: "", ...(call ? { item: { json: {} } } : {}) },
];

/** The texts of a message that comes whole. */
export const messageTexts = (key: Key, message: Json.JsonRecord): ReadonlyArray<Content> =>
  Json.list(message.content).flatMap((part, index) => partTexts(key, index, Json.record(part) ?? {}));

/** An item that begins or is whole, without its texts. */
export const item = (
  key: Key,
  json: Json.JsonRecord,
  type: "text" | "reasoning" | "hosted" | "result",
  phase: "begins" | "ends",
): ReadonlyArray<Content> => {
  const said = { choice: 0, key: itemKey(key), text: "", item: { type, phase, json: { item: json } } };
  if (type === "text") return [{ kind: "text", ...said }];
  return [type === "reasoning" ? { kind: "reasoning", ...said, keep: keepOf(json) } : { kind: "item", ...said }];
};

/** The item of a call of the caller's own. */
export const called = (signals: ReadonlyArray<CallSignal>, json: Json.JsonRecord): ReadonlyArray<Content> =>
  signals.map((signal) => ({
    kind: "call",
    choice: 0,
    key: keyOfCall(signal),
    text: "",
    item: { json: { item: json } },
  }));

/** An item of reasoning goes back by its id, and without a stored response only with its encrypted content. */
const keepOf = (json: Json.JsonRecord): Readonly<Record<string, string>> => {
  const encrypted = Json.string(json.encrypted_content);
  return { item_id: Json.string(json.id), ...(encrypted === "" ? {} : { encrypted_content: encrypted }) };
};

/** The words of audio go back as text. */
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

/** Almost every text is the first content of its message: no delta of it makes a piece anew. */
const firstPieces = { output_text: pieceOf("output_text", 0), refusal: pieceOf("refusal", 0) } as const;

const itemKey = (key: Key): string => String(key);
