/**
 * Reads the content of a part of a Gemini candidate.
 */
import * as Json from "../../domain/Json.ts";
import { type Content, type ItemPiece, keyOfCall, nothing, running, single } from "../stream/Content.ts";

/**
 * Reads a part that is about a call.
 *
 * @param choice the candidate's index
 * @param ordinal the ordinal of the caller's function; undefined for a tool of Google
 */
export const readCall = (
  part: Json.JsonRecord,
  choice: number,
  ordinal: number | undefined,
): ReadonlyArray<Content> => {
  const call = Json.record(part.functionCall);
  if (call !== undefined) {
    if (ordinal === undefined) return nothing;
    const id = Json.string(call.id);
    const { thoughtSignature } = part;
    const json = { ...(id === "" ? {} : { id }), ...(thoughtSignature === undefined ? {} : { thoughtSignature }) };
    return [{ kind: "call", choice, key: keyOfCall({ choice, ordinal }), text: "", item: { json }, ...keepOf(part) }];
  }
  const type = hostedTypes.find(([name]) => Json.record(part[name]) !== undefined)?.[1] ?? "hosted";
  return [{ kind: "item", choice, key: single, text: "", item: wholePiece(type, part) }];
};

/**
 * Reads a part that is not about a call: text, a thought, a picture. A signed part is sent back as received, any other part as its text.
 */
export const readWords = (part: Json.JsonRecord, choice: number): ReadonlyArray<Content> => {
  const text = Json.string(part.text);
  const thought = part.thought === true;
  const media = mediaOf(part);
  const signed = part.thoughtSignature !== undefined;
  if (media === undefined && !signed) {
    if (text !== "")
      return [thought ? thoughtContent(choice, text) : { kind: "text", choice, key: "text", text, item: textItem }];
    const unknown = !thought && part.text !== "" && Object.keys(part).length > 0;
    return unknown ? [{ kind: "item", choice, key: single, text: "", item: wholePiece("text", part) }] : nothing;
  }
  const kept = signed || !thought ? { item: wholePiece("text", part) } : {};
  const said: Content = {
    ...(thought ? thoughtContent(choice, text) : textContent(choice, text)),
    ...kept,
    ...keepOf(part),
  };
  if (media === undefined) return [said];
  return [said, { kind: thought ? "item" : "media", choice, key: single, text: "", ...fileOf(media) }];
};

/** True if a part is visible but has no text: a picture, a sound, a file. */
export const isMedia = (part: Json.JsonRecord): boolean => mediaOf(part) !== undefined;

/** Returns the progress that an invisible part proves: a hidden thought, or content of an unknown kind. */
export const progressOfUnseen = (part: Json.JsonRecord): "started" | "reasoning" | "output" => {
  if (part.thought === true) return "reasoning";
  return Object.entries(part).some(([name, value]) => name !== "text" && Json.record(value) !== undefined)
    ? "output"
    : "started";
};

const textContent = (choice: number, text: string): Content => ({ kind: "text", choice, key: "text", text });

/** Returns the content of a thought. It has no item, because thoughts are not sent back. */
const thoughtContent = (choice: number, text: string): Content => ({ kind: "reasoning", choice, key: "thought", text });

const textItem: ItemPiece = { type: "text", key: running, field: "text" };

const wholePiece = (type: "text" | "hosted" | "result", json: Json.JsonRecord): ItemPiece => ({
  type,
  key: single,
  json,
  phase: "ends",
});

const hostedTypes = [
  ["executableCode", "hosted"],
  ["codeExecutionResult", "result"],
  ["toolCall", "hosted"],
  ["toolResponse", "result"],
] as const;

const mediaOf = (part: Json.JsonRecord): Json.JsonRecord | undefined =>
  Json.record(part.inlineData) ?? Json.record(part.fileData);

const fileOf = (media: Json.JsonRecord): Pick<Content, "file"> => {
  const data = Json.string(media.data);
  return data === "" ? {} : { file: { mediaType: Json.string(media.mimeType), data } };
};

const keepOf = (part: Json.JsonRecord): Pick<Content, "keep"> => {
  const signature = Json.string(part.thoughtSignature);
  return signature === "" ? {} : { keep: { thought_signature: signature } };
};
