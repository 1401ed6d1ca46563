/**
 * Reads what a part of a chat completion says about the answer: text, reasoning that some servers want back, and what stands
 * beside a call (Google's signatures, custom tools).
 */
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type Change, frameOf, nothing, type Read } from "../continuation/Reading.ts";
import type { Part } from "../stream/Protocol.ts";
import { indexOf } from "./Calls.ts";
import { textOf } from "./Delta.ts";

/** Reads one part. */
export const openAiChat = (part: Part): Read => {
  const frame = frameOf(part);
  const entries = Json.list(frame?.choices);
  if (entries.length === 0) return nothing;
  const changes: Array<Change> = [];
  const choices: Array<number> = [];
  for (const entry of entries) {
    const choice = Json.record(entry) ?? {};
    choices.push(indexOf(choice.index) ?? 0);
    const delta = Json.record(choice.delta);
    const message = delta === undefined ? Json.record(choice.message) : undefined;
    addText(changes, delta ?? message ?? { content: choice.text });
    if (delta !== undefined) addReasoning(changes, delta);
    addCalls(changes, delta ?? message ?? {});
  }
  return { changes, choices };
};

/** A message that repeats the answer at its end shows nothing, by the decoder's word, and is not taken. */
const addText = (changes: Array<Change>, delta: Json.JsonRecord): void => {
  const text = textOf(delta);
  if (text !== "") changes.push({ op: "append", key: "text", type: "text", field: "text", text });
  // Sources of a text that stands there; they are not sent back.
  else if (Json.list(delta.annotations).length > 0) changes.push({ op: "set", key: "text", json: {} });
};

const addReasoning = (changes: Array<Change>, delta: Json.JsonRecord): void => {
  const reasoning = Json.string(delta.reasoning_content);
  if (reasoning !== "")
    changes.push({ op: "append", key: "reasoning", type: "reasoning", field: "reasoning_content", text: reasoning });
  for (const entry of Json.list(delta.reasoning_details)) addDetail(changes, Json.record(entry) ?? {});
};

const addCalls = (changes: Array<Change>, delta: Json.JsonRecord): void => {
  for (const entry of Json.list(delta.tool_calls)) addCall(changes, Json.record(entry) ?? {});
  const legacy = Json.record(delta.function_call);
  if (legacy !== undefined && Json.list(delta.tool_calls).length === 0)
    changes.push({ op: "set", key: "legacy", type: "note", json: { legacy: true } });
};

/** OpenRouter's reasoning comes in pieces of entries that are known by their index, and goes back as it came. */
const addDetail = (changes: Array<Change>, detail: Json.JsonRecord): void => {
  const key = `detail ${indexOf(detail.index) ?? 0} ${Json.string(detail.type)}`;
  const { text, summary, data, ...rest } = detail;
  const said = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null && value !== ""));
  changes.push({ op: "set", key, type: "reasoning", json: said });
  for (const [field, piece] of Object.entries({ text, summary, data })) {
    if (typeof piece === "string") changes.push({ op: "append", key, field, text: piece });
  }
};

/** What the decoder's signal does not carry: ids longer than a label, custom tools, Google's thought signatures. */
const addCall = (changes: Array<Change>, entry: Json.JsonRecord): void => {
  const id = Json.string(entry.id);
  const extra = Json.record(entry.extra_content);
  const custom = Json.record(entry.custom) !== undefined;
  if (extra === undefined && !custom && label(id) === id) return;
  const json = { id, ...(extra === undefined ? {} : { extra_content: extra }), ...(custom ? { custom } : {}) };
  changes.push({ op: "set", key: `note ${label(id)}`, type: "note", json });
};
