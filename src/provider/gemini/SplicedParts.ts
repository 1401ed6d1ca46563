/** Reads and rewrites the parts of a Gemini candidate that continues a response begun by another attempt. */
import * as Json from "../../domain/Json.ts";
import type { ShownText } from "../seam/ShownText.ts";
import type { TextGate } from "../seam/TextGate.ts";
import { isMedia, unseen } from "./Content.ts";

/** The parts of a chunk that passed the gate. */
export interface JoinedParts {
  readonly parts: ReadonlyArray<Json.JsonRecord>;
  /** True if at least one part was removed. */
  readonly isCut: boolean;
  /** True if the parts continue the response, even if they were held or dropped. */
  readonly goesOn: boolean;
}

/**
 * Passes the parts of a candidate through the gate, in order.
 *
 * @returns undefined if they cannot be joined, after the gate has failed
 */
export const joinParts = (items: ReadonlyArray<unknown>, gate: TextGate): JoinedParts | undefined => {
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
export const recordSentPart = (
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
  if (isMedia(part) || unseen(part) === "output") return "other";
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
  const text = gate.text(Json.string(part.text));
  return text !== "" || isSigned(part) ? [{ ...part, text }] : [];
};

const isSigned = (part: Json.JsonRecord): boolean => part.thoughtSignature !== undefined && part.thought !== true;

const otherOf = (part: Json.JsonRecord, gate: TextGate): ReadonlyArray<Json.JsonRecord> => {
  const held = gate.behindText();
  if (held === undefined) return [];
  return held === "" ? [part] : [{ text: held }, part];
};

const hiddenOf = (part: Json.JsonRecord, gate: TextGate): ReadonlyArray<Json.JsonRecord> =>
  gate.isJoined || isSigned(part) ? [part] : [];
