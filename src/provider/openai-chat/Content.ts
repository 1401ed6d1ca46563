/**
 * Reads the content of a chat completion delta: text, reasoning in every spelling, media, and data about a call (Google's signatures,
 * custom tools).
 *
 * Spellings of reasoning by server: `reasoning_content` DeepSeek, Qwen, Moonshot, vLLM · `reasoning`, `reasoning_details` OpenRouter, Groq,
 * Ollama, Cerebras · `reasoning_text`, `reasoning_opaque` GitHub Copilot · `thinking_blocks` LiteLLM · `thinking` and content lists with `{
 * type: "thinking" }` Mistral.
 */
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type Content, type ItemPiece, nothing, textOf } from "../stream/Content.ts";
import { indexOf } from "./Calls.ts";

/**
 * Reads the content of a delta, or of the `message` that some servers send instead. The result determines the characters that count as
 * shown and the items that a continuation sends back.
 */
export const readWords = (delta: Json.JsonRecord, choice: number): ReadonlyArray<Content> => {
  if (isPlain(delta)) {
    const text = Json.string(delta.content);
    return text === "" ? nothing : [textContent(choice, text)];
  }
  const found: Array<Content> = [];
  addReasoning(found, delta, choice);
  for (const entry of Json.list(delta.content)) addEntry(found, entry, choice);
  const text =
    Json.string(delta.content) + Json.string(delta.refusal) + Json.string(Json.record(delta.audio)?.transcript);
  if (text !== "") found.push(textContent(choice, text));
  addMedia(found, delta, choice);
  return found;
};

/** Returns the text of a message, in every spelling. */
export const messageText = (message: Json.JsonRecord): string => textOf(readWords(message, 0));

/**
 * Reads call data that a decoder's signals omit: ids longer than a label, custom tools, Google's signatures and the legacy form.
 */
export const readNotes = (delta: Json.JsonRecord, choice: number): ReadonlyArray<Content> => {
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

const textContent = (choice: number, text: string): Content => ({
  kind: "text",
  choice,
  key: "text",
  text,
  item: textItem,
});

/**
 * True for the common delta that contains only a role and text. Checks only the keys, because reading every spelling costs more than all
 * other decoding.
 */
export const isPlain = (delta: Json.JsonRecord): boolean => {
  for (const key in delta) {
    const value = delta[key];
    if (key === "content" ? Array.isArray(value) : key !== "role" && value !== null && value !== "") return false;
  }
  return true;
};

/** Adds images and annotations. An image is bytes or a URL. Annotations are sources of the text and are not sent back. */
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

/** Reads an entry of a content list: `text`, `refusal`, a bare string, `thinking` or `reasoning`, else media. A `reference` is skipped. */
const addEntry = (found: Array<Content>, entry: unknown, choice: number): void => {
  const part = Json.record(entry) ?? { type: "text", text: entry };
  const type = Json.string(part.type);
  if (type === "reference") return;
  if (reasoningTypes.has(type)) {
    found.push({ ...reasoningContent(choice, textOfReasoning(part)), keep: { field: "content" } });
    return;
  }
  const text = Json.string(part.text) || Json.string(part.refusal);
  if (text !== "") found.push(textContent(choice, text));
  else if (type !== "text" && type !== "refusal" && type !== "")
    found.push({ kind: "media", choice, key: type, text: "" });
};

/** True if an entry of a content list is reasoning. */
export const isReasoningEntry = (entry: unknown): boolean => reasoningTypes.has(Json.string(Json.record(entry)?.type));

/** True if a field of a delta is reasoning, in any spelling. Signatures share the prefix. */
export const isReasoningField = (name: string): boolean => /^(?:reasoning|thinking)/.test(name);

const reasoningTypes: ReadonlySet<string> = new Set(["thinking", "reasoning", "redacted_thinking"]);

const reasoningContent = (choice: number, text: string): Content => ({
  kind: "reasoning",
  choice,
  key: "reasoning",
  text,
});

const reasoningItem: ItemPiece = { type: "reasoning", field: "reasoning_content" };

/**
 * Reads the reasoning in only one spelling, because servers repeat the same text in several fields. A field without readable text is
 * encrypted or a signature.
 */
const addReasoning = (found: Array<Content>, delta: Json.JsonRecord, choice: number): void => {
  const field = reasoningField(delta);
  if (field === undefined) return;
  const value = delta[field];
  const text = typeof value === "string" ? value : textOfReasoning(value);
  found.push({
    ...reasoningContent(choice, text),
    ...(text === "" ? {} : { keep: { field } }),
    // DeepSeek and Moonshot require their own spelling when reasoning is sent back. OpenRouter's details are sent back as received.
    ...(field === "reasoning_content" ? { item: reasoningItem } : {}),
  });
  for (const entry of Json.list(delta.reasoning_details)) addDetail(found, Json.record(entry) ?? {}, choice);
};

const reasoningField = (delta: Json.JsonRecord): string | undefined =>
  plainReasoning.find((name) => typeof delta[name] === "string" && delta[name] !== "") ??
  structuredReasoning.find((name) => isPresent(delta[name]));

/** Plain strings are tried first: servers that also send details repeat the same text there. */
const plainReasoning = ["reasoning_content", "reasoning", "reasoning_text", "thinking", "thinking_content"];
/** Structured or opaque fields are tried next. */
const structuredReasoning = ["reasoning_details", "thinking_blocks", "reasoning_opaque", "thinking", "reasoning"];

/** Adds an entry of reasoning details. OpenRouter streams each entry in pieces, identified by index and type. */
const addDetail = (found: Array<Content>, detail: Json.JsonRecord, choice: number): void => {
  const key = `detail ${indexOf(detail.index) ?? 0} ${Json.string(detail.type)}`;
  const { text, summary, data, ...rest } = detail;
  const json = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null && value !== ""));
  const texts: Record<string, string> = {};
  for (const [field, piece] of Object.entries({ text, summary, data }))
    if (typeof piece === "string") texts[field] = piece;
  found.push({ ...reasoningContent(choice, ""), item: { type: "reasoning", key, json, texts } });
};

/** Maximum depth of a reasoning object that is searched for text. */
const depthMax = 4;

/** Extracts the text of a reasoning object of any shape. */
const textOfReasoning = (value: unknown, depth = 0): string => {
  if (depth > depthMax) return "";
  if (Array.isArray(value)) return value.map((item) => textOfReasoning(item, depth + 1)).join("");
  const record = Json.record(value);
  if (record === undefined) return "";
  for (const name of ["text", "thinking", "summary", "content", "reasoning"]) {
    const inner = record[name];
    if (typeof inner === "string") return inner;
    if (inner !== null && inner !== undefined) return textOfReasoning(inner, depth + 1);
  }
  return "";
};

/** True if a field has a value. Servers written in typed languages also send empty fields. */
export const isPresent = (value: unknown): boolean =>
  typeof value === "string" ? value !== "" : Array.isArray(value) ? value.length > 0 : hasKeys(Json.record(value));

const hasKeys = (record: Json.JsonRecord | undefined): boolean =>
  record !== undefined && Object.keys(record).length > 0;
