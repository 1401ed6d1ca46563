/**
 * Reads what a part of a Gemini stream says about the answer: the parts of its content, as they will be sent back.
 */
import * as Json from "../../domain/Json.ts";
import { begunIn, type Change, frameOf, keyOf, nothing, type Read, running, single } from "../continuation/Reading.ts";
import type { Part } from "../stream/Protocol.ts";

/** Reads one part. */
export const googleGemini = (part: Part): Read => {
  const outer = frameOf(part);
  const chunk = outer?.candidates === undefined ? (Json.record(outer?.response) ?? outer) : outer;
  const candidates = Json.list(chunk?.candidates);
  if (candidates.length === 0) return nothing;
  const changes: Array<Change> = [];
  const choices: Array<number> = [];
  const begun = begunIn(part);
  for (const entry of candidates) {
    const candidate = Json.record(entry) ?? {};
    const index = Json.natural(candidate.index) ?? 0;
    choices.push(index);
    const calls = begun.filter((call) => call.choice === index);
    const named = Json.list(Json.record(candidate.content)?.parts).map((it) => Json.record(it) ?? {});
    for (const piece of named) addPiece(changes, piece, calls.map(keyOf), named);
  }
  return { changes, choices };
};

const addPiece = (
  changes: Array<Change>,
  piece: Json.JsonRecord,
  begun: ReadonlyArray<string>,
  pieces: ReadonlyArray<Json.JsonRecord>,
): void => {
  const called = Json.record(piece.functionCall);
  if (called !== undefined) {
    addCall(changes, piece, called, begun, pieces);
    return;
  }
  const type = hostedTypes.find(([name]) => Json.record(piece[name]) !== undefined)?.[1];
  const media = Json.record(piece.inlineData) ?? Json.record(piece.fileData);
  const signed = piece.thoughtSignature !== undefined;
  if (type !== undefined) changes.push({ op: "close", key: single, type, json: piece });
  else if (signed) changes.push({ op: "close", key: single, type: "text", json: piece });
  else if (media !== undefined && piece.thought !== true)
    changes.push({ op: "close", key: single, type: "text", json: piece });
  else if (piece.thought === true || piece.text === "") return;
  else if (typeof piece.text === "string")
    changes.push({ op: "append", key: running, type: "text", field: "text", text: piece.text });
  else if (Object.keys(piece).length > 0) changes.push({ op: "close", key: single, type: "text", json: piece });
};

const hostedTypes = [
  ["executableCode", "hosted"],
  ["codeExecutionResult", "result"],
  ["toolCall", "hosted"],
  ["toolResponse", "result"],
] as const;

/** Calls with a name begin one; a piece without goes on with the call before it. */
const addCall = (
  changes: Array<Change>,
  piece: Json.JsonRecord,
  called: Json.JsonRecord,
  begun: ReadonlyArray<string>,
  pieces: ReadonlyArray<Json.JsonRecord>,
): void => {
  const named = pieces.filter((it) => Json.string(Json.record(it.functionCall)?.name) !== "");
  const key = begun[named.indexOf(piece)];
  if (key === undefined || Json.string(called.name) === "") return;
  const { thoughtSignature } = piece;
  const id = Json.string(called.id);
  const json = {
    ...(id === "" ? {} : { id }),
    ...(thoughtSignature === undefined ? {} : { thoughtSignature }),
  };
  changes.push({ op: "set", key, json });
};
