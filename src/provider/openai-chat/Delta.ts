/**
 * Says what one delta of a chat completion shows: text, or reasoning in any of its spellings.
 *
 * Where the spellings come from: `reasoning_content` DeepSeek, Qwen, Moonshot, vLLM · `reasoning`, `reasoning_details`
 * OpenRouter, Groq, Ollama, Cerebras · `reasoning_text`, `reasoning_opaque` GitHub Copilot · `thinking_blocks` LiteLLM ·
 * `thinking` and content lists with `{ type: "thinking" }` Mistral.
 */
import * as Json from "../../domain/Json.ts";

/** Characters are UTF-16 code units; the flags also hold for content without characters, as images and hidden reasoning. */
export interface Shown {
  readonly text: boolean;
  readonly textCharacters: number;
  readonly reasoning: boolean;
  readonly reasoningCharacters: number;
}

const nothing: Shown = { text: false, textCharacters: 0, reasoning: false, reasoningCharacters: 0 };

/** Reads a delta (or the `message` that some servers send in its place). */
export const shown = (delta: Json.JsonRecord): Shown => {
  const { content } = delta;
  if (isPlain(delta)) {
    return typeof content === "string" && content !== ""
      ? { ...nothing, text: true, textCharacters: content.length }
      : nothing;
  }
  const list = Array.isArray(content) ? contentParts(content) : nothing;
  const text = textOf(delta).length;
  const reasoning = reasoningCharacters(delta);
  const media = isPresent(delta.audio) || isPresent(delta.images) || isPresent(delta.annotations);
  if (text === 0 && !media && !list.text && reasoning === undefined && !list.reasoning) return nothing;
  return {
    text: text > 0 || media || list.text,
    textCharacters: text,
    reasoning: reasoning !== undefined || list.reasoning,
    reasoningCharacters: (reasoning ?? 0) + list.reasoningCharacters,
  };
};

/**
 * The visible text of a delta or message, in each of its spellings: the content as text or as a list, a refusal, the words of
 * audio. What counts as shown and what a continuation sends back are read here alone.
 */
export const textOf = (delta: Json.JsonRecord): string =>
  Json.string(delta.content) +
  Json.list(delta.content).map(partText).join("") +
  Json.string(delta.refusal) +
  Json.string(Json.record(delta.audio)?.transcript);

/** The text of an entry of a content list; an entry may be a bare text. */
const partText = (item: unknown): string => {
  const part = Json.record(item) ?? { text: item };
  return reasoningTypes.has(Json.string(part.type)) || part.type === "reference"
    ? ""
    : Json.string(part.text) || Json.string(part.refusal);
};

const reasoningTypes: ReadonlySet<string> = new Set(["thinking", "reasoning", "redacted_thinking"]);

/** The common delta, a role and a text: told by its keys, because looking for every spelling costs more than the rest. */
const isPlain = (delta: Json.JsonRecord): boolean => {
  for (const key in delta) {
    const value = delta[key];
    if (key === "content" ? Array.isArray(value) : key !== "role" && value !== null && value !== "") return false;
  }
  return true;
};

/** Plain texts come first: servers that send details too repeat the same words there. */
export const plainReasoning = ["reasoning_content", "reasoning", "reasoning_text", "thinking", "thinking_content"];
/** Fields with reasoning inside of objects or lists. */
export const structuredReasoning = [
  "reasoning_details",
  "thinking_blocks",
  "reasoning_opaque",
  "thinking",
  "reasoning",
];

/** Undefined when the delta has no reasoning; 0 for reasoning that cannot be read (encrypted, a signature). */
const reasoningCharacters = (delta: Json.JsonRecord): number | undefined => {
  for (const name of plainReasoning) {
    const value = delta[name];
    if (typeof value === "string" && value !== "") return value.length;
  }
  for (const name of structuredReasoning) {
    const value = delta[name];
    if (isPresent(value)) return readable(value).length;
  }
  return undefined;
};

/** How deep texts are looked for inside a reasoning object. */
const depthMax = 4;

/** The texts inside a reasoning object, whatever its shape. */
export const readable = (value: unknown, depth = 0): string => {
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

/** A content list: `text`, `refusal`, `thinking` or `reasoning`, else media, which counts as text; references are neither. */
const contentParts = (content: ReadonlyArray<unknown>): Shown => {
  let { text, reasoning, reasoningCharacters } = nothing;
  for (const item of content) {
    const part = Json.record(item) ?? { type: "text", text: item };
    const type = Json.string(part.type);
    if (reasoningTypes.has(type)) {
      reasoning = true;
      reasoningCharacters += readable(part).length;
    } else if (type !== "reference") {
      text ||= partText(part) !== "" || (type !== "text" && type !== "refusal" && type !== "");
    }
  }
  return { ...nothing, text, reasoning, reasoningCharacters };
};

const isPresent = (value: unknown): boolean =>
  typeof value === "string" ? value !== "" : Array.isArray(value) ? value.length > 0 : hasKeys(Json.record(value));

const hasKeys = (record: Json.JsonRecord | undefined): boolean =>
  record !== undefined && Object.keys(record).length > 0;
