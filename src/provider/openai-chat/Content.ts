/**
 * Reads what a delta of a chat completion says: text, reasoning in any of its spellings, pictures and sounds, and what stands
 * beside a call (Google's signatures, custom tools).
 *
 * Where the spellings of reasoning come from: `reasoning_content` DeepSeek, Qwen, Moonshot, vLLM · `reasoning`,
 * `reasoning_details` OpenRouter, Groq, Ollama, Cerebras · `reasoning_text`, `reasoning_opaque` GitHub Copilot ·
 * `thinking_blocks` LiteLLM · `thinking` and content lists with `{ type: "thinking" }` Mistral.
 */
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type Content, type ItemPiece, nothing, textOf } from "../stream/Content.ts";
import { indexOf } from "./Calls.ts";

/**
 * Reads the words of a delta, or of the `message` that some servers send in its place. What counts as shown and what a
 * continuation sends back are read here alone.
 */
export const words = (delta: Json.JsonRecord, choice: number): ReadonlyArray<Content> => {
  if (isPlain(delta)) {
    const text = Json.string(delta.content);
    return text === "" ? nothing : [said(choice, text)];
  }
  const found: Array<Content> = [];
  addReasoning(found, delta, choice);
  for (const entry of Json.list(delta.content)) addEntry(found, entry, choice);
  const text =
    Json.string(delta.content) + Json.string(delta.refusal) + Json.string(Json.record(delta.audio)?.transcript);
  if (text !== "") found.push(said(choice, text));
  addMedia(found, delta, choice);
  return found;
};

/** The text of a message, in all its spellings. */
export const messageText = (message: Json.JsonRecord): string => textOf(words(message, 0));

/** Reads what a decoder's signals do not carry of the calls: ids longer than a label, custom tools, Google's signatures. */
export const notes = (delta: Json.JsonRecord, choice: number): ReadonlyArray<Content> => {
  const calls = Json.list(delta.tool_calls);
  if (calls.length === 0 && Json.record(delta.function_call) !== undefined)
    return [note(choice, { type: "note", key: "legacy", json: { legacy: true } })];
  return calls.flatMap((call) => {
    const entry = Json.record(call) ?? {};
    const id = Json.string(entry.id);
    const extra = Json.record(entry.extra_content);
    const custom = Json.record(entry.custom) !== undefined;
    if (extra === undefined && !custom && label(id) === id) return nothing;
    const json = { id, ...(extra === undefined ? {} : { extra_content: extra }), ...(custom ? { custom } : {}) };
    return [note(choice, { type: "note", key: `note ${label(id)}`, json })];
  });
};

const note = (choice: number, item: ItemPiece): Content => ({ kind: "item", choice, key: "note", text: "", item });

const textItem: ItemPiece = { type: "text", field: "text" };

const said = (choice: number, text: string): Content => ({ kind: "text", choice, key: "text", text, item: textItem });

/** The common delta, a role and a text: told by its keys, because looking for every spelling costs more than the rest. */
export const isPlain = (delta: Json.JsonRecord): boolean => {
  for (const key in delta) {
    const value = delta[key];
    if (key === "content" ? Array.isArray(value) : key !== "role" && value !== null && value !== "") return false;
  }
  return true;
};

/** Pictures come with their bytes or as an address. Annotations are sources of a text that stands there: they do not go back. */
const addMedia = (found: Array<Content>, delta: Json.JsonRecord, choice: number): void => {
  if (isPresent(delta.audio)) found.push({ kind: "media", choice, key: "audio", text: "" });
  if (isPresent(delta.images)) {
    const images = Json.list(delta.images);
    for (const image of images.length === 0 ? [delta.images] : images) {
      const [, mediaType = "", data = ""] =
        dataUrl.exec(Json.string(Json.record(Json.record(image)?.image_url)?.url)) ?? [];
      found.push({
        kind: "media",
        choice,
        key: "image",
        text: "",
        ...(data === "" ? {} : { file: { mediaType, data } }),
      });
    }
  }
  if (isPresent(delta.annotations)) found.push({ kind: "media", choice, key: "text", text: "", item: { json: {} } });
};

const dataUrl = /^data:([^;,]+);base64,(.*)$/s;

/** An entry of a content list: `text`, `refusal`, a bare text, `thinking` or `reasoning`, else media; references are none. */
const addEntry = (found: Array<Content>, entry: unknown, choice: number): void => {
  const part = Json.record(entry) ?? { type: "text", text: entry };
  const type = Json.string(part.type);
  if (type === "reference") return;
  if (reasoningTypes.has(type)) {
    found.push({ ...reasoned(choice, readable(part)), keep: { field: "content" } });
    return;
  }
  const text = Json.string(part.text) || Json.string(part.refusal);
  if (text !== "") found.push(said(choice, text));
  else if (type !== "text" && type !== "refusal" && type !== "")
    found.push({ kind: "media", choice, key: type, text: "" });
};

/** Whether an entry of a content list is reasoning. */
export const isReasoningEntry = (entry: unknown): boolean => reasoningTypes.has(Json.string(Json.record(entry)?.type));

/** Whether a field of a delta is reasoning, in any of its spellings: what signs it has the same beginning. */
export const isReasoningField = (name: string): boolean => /^(?:reasoning|thinking)/.test(name);

const reasoningTypes: ReadonlySet<string> = new Set(["thinking", "reasoning", "redacted_thinking"]);

const reasoned = (choice: number, text: string): Content => ({ kind: "reasoning", choice, key: "reasoning", text });

const reasoningItem: ItemPiece = { type: "reasoning", field: "reasoning_content" };

/** One spelling is read, because servers say the same words in several. Without readable words it is encrypted, or a signature. */
const addReasoning = (found: Array<Content>, delta: Json.JsonRecord, choice: number): void => {
  const field = reasoningField(delta);
  if (field === undefined) return;
  const value = delta[field];
  const text = typeof value === "string" ? value : readable(value);
  found.push({
    ...reasoned(choice, text),
    ...(text === "" ? {} : { keep: { field } }),
    // DeepSeek and Moonshot want their own spelling back; the details of OpenRouter go back as they came.
    ...(field === "reasoning_content" ? { item: reasoningItem } : {}),
  });
  for (const entry of Json.list(delta.reasoning_details)) addDetail(found, Json.record(entry) ?? {}, choice);
};

const reasoningField = (delta: Json.JsonRecord): string | undefined =>
  plainReasoning.find((name) => typeof delta[name] === "string" && delta[name] !== "") ??
  structuredReasoning.find((name) => isPresent(delta[name]));

/** Plain texts come first: servers that send details too repeat the same words there. */
const plainReasoning = ["reasoning_content", "reasoning", "reasoning_text", "thinking", "thinking_content"];
/** Fields with reasoning inside of objects or lists. */
const structuredReasoning = ["reasoning_details", "thinking_blocks", "reasoning_opaque", "thinking", "reasoning"];

/** OpenRouter's reasoning comes in pieces of entries that are known by their index. */
const addDetail = (found: Array<Content>, detail: Json.JsonRecord, choice: number): void => {
  const key = `detail ${indexOf(detail.index) ?? 0} ${Json.string(detail.type)}`;
  const { text, summary, data, ...rest } = detail;
  const json = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null && value !== ""));
  const texts: Record<string, string> = {};
  for (const [field, piece] of Object.entries({ text, summary, data }))
    if (typeof piece === "string") texts[field] = piece;
  found.push({ ...reasoned(choice, ""), item: { type: "reasoning", key, json, texts } });
};

/** How deep texts are looked for inside a reasoning object. */
const depthMax = 4;

/** The texts inside a reasoning object, whatever its shape. */
const readable = (value: unknown, depth = 0): string => {
  if (depth > depthMax) return "";
  if (Array.isArray(value)) return value.map((item) => readable(item, depth + 1)).join("");
  const record = Json.record(value);
  if (record === undefined) return "";
  for (const name of ["text", "thinking", "summary", "content", "reasoning"]) {
    const inner = record[name];
    if (typeof inner === "string") return inner;
    if (inner !== null && inner !== undefined) return readable(inner, depth + 1);
  }
  return "";
};

/** Whether a field says something: servers with typed languages fill those that do not. */
export const isPresent = (value: unknown): boolean =>
  typeof value === "string" ? value !== "" : Array.isArray(value) ? value.length > 0 : hasKeys(Json.record(value));

const hasKeys = (record: Json.JsonRecord | undefined): boolean =>
  record !== undefined && Object.keys(record).length > 0;
