/**
 * Reads and rewrites the parts of a Gemini candidate where a response goes on with another one's beginning.
 */
import * as Json from "../../domain/Json.ts";
import type { AttemptGate } from "../seam/AttemptGate.ts";
import type { ShownText } from "../seam/ShownText.ts";
import { isMedia, unseen } from "./Content.ts";

/** What is left of the parts of a chunk. */
export interface JoinedParts {
  readonly parts: ReadonlyArray<Json.JsonRecord>;
  /** Something was taken out. */
  readonly isCut: boolean;
  /** They said something of the response, be it held or dropped. */
  readonly goesOn: boolean;
}

/**
 * Asks the gate for the parts of a candidate, in order.
 *
 * @returns undefined where they cannot be joined: the gate has been told
 */
export const joinParts = (items: ReadonlyArray<unknown>, gate: AttemptGate): JoinedParts | undefined => {
  const parts: Array<Json.JsonRecord> = [];
  let isCut = false;
  let goesOn = false;
  for (const item of items) {
    const part = Json.record(item) ?? {};
    const kind = kindOf(part);
    goesOn ||= kind !== "empty";
    const left = kind === "text" ? textOf(part, gate) : kind === "other" ? otherOf(part, gate) : passed(part, gate);
    if (gate.failed) return undefined;
    parts.push(...left);
    isCut ||= left.length === 0;
  }
  return { parts, isCut, goesOn };
};

/**
 * Notes a part that has left.
 *
 * @returns the words of it
 */
export const leftPart = (
  part: Json.JsonRecord,
  shown: ShownText,
): { readonly text: string; readonly thought: string } => {
  const words = Json.string(part.text);
  switch (kindOf(part)) {
    case "thought":
      return { text: "", thought: words };
    case "text":
      shown.say(words);
      return { text: words, thought: "" };
    case "other":
      leftOther(part, shown);
      // A picture may have words beside it, which the decoder counts.
      if (words !== "") shown.say(words);
      return { text: words, thought: "" };
    case "empty":
      return { text: "", thought: "" };
  }
};

/** `other` is no text: a call, a hosted tool, a picture, or what is not known. `empty` says nothing, and may have a signature. */
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

const leftOther = (part: Json.JsonRecord, shown: ShownText): void => {
  if (Json.record(part.functionCall) !== undefined || isMedia(part)) shown.refuse("not_text_last");
  for (const [index, name] of hosted.entries()) {
    const call = Json.record(part[name]);
    const result = Json.record(part[results[index] ?? ""]);
    if (call !== undefined) shown.hosted(`${name} ${Json.string(call.id)}`, false);
    if (result !== undefined) shown.hosted(`${name} ${Json.string(result.id)}`, true);
  }
  shown.breaks();
};

/** A signature stays with its text; one whose text was cut off goes with the text that stands there already. */
const textOf = (part: Json.JsonRecord, gate: AttemptGate): ReadonlyArray<Json.JsonRecord> => {
  const text = gate.text(Json.string(part.text));
  return text !== "" || isSigned(part) ? [{ ...part, text }] : [];
};

const isSigned = (part: Json.JsonRecord): boolean => part.thoughtSignature !== undefined && part.thought !== true;

const otherOf = (part: Json.JsonRecord, gate: AttemptGate): ReadonlyArray<Json.JsonRecord> => {
  const held = gate.behindText();
  if (held === undefined) return [];
  return held === "" ? [part] : [{ text: held }, part];
};

const passed = (part: Json.JsonRecord, gate: AttemptGate): ReadonlyArray<Json.JsonRecord> =>
  gate.joined || isSigned(part) ? [part] : [];
