/**
 * Reads what one event of a provider says in words: text, reasoning, files, and what a provider wants back with them.
 *
 * Calls, the marker and failures are read by the decoders; here is only what an observation counts and does not keep.
 */
import * as Json from "../../domain/Json.ts";
import { plainReasoning, readable, structuredReasoning } from "../../provider/openai-chat/Delta.ts";
import type { Part } from "../../provider/stream/Protocol.ts";

/** Something that one event says. `key` tells blocks of one kind apart; `keep` is what goes back with the block. */
export type Told =
  | { readonly kind: "text" | "reasoning"; readonly key: string; readonly text: string; readonly keep?: Kept }
  | { readonly kind: "file"; readonly mediaType: string; readonly data: string }
  /** What goes back with the calls of this event, in their order. */
  | { readonly kind: "calls"; readonly keep: ReadonlyArray<Kept | undefined> };

/** Opaque to everybody but the provider: signatures, encrypted reasoning, ids. */
export type Kept = Readonly<Record<string, string>>;

/** What of a response was told before: servers repeat whole texts at the end of an item or a message. */
export interface Before {
  /** The text of the answer so far. */
  readonly text: string;
}

/**
 * Reads an event.
 *
 * @param part the decoded event
 * @param before what the events before it said
 */
export const told = (part: Part, before: Before): ReadonlyArray<Told> => {
  const json = Json.record(part.json) ?? Json.record(Json.list(part.json)[0]);
  if (json === undefined) return nothing;
  switch (part.protocol) {
    case "openai-chat":
      return chat(part, json);
    case "openai-responses":
      return responses(part, json, before);
    case "anthropic-messages":
      return anthropic(json);
    case "google-gemini":
      return gemini(json);
  }
};

const nothing: ReadonlyArray<Told> = [];

// openai-chat

const chat = ({ observation }: Part, json: Json.JsonRecord): ReadonlyArray<Told> => {
  const entries = Json.list(json.choices).map((entry) => Json.record(entry) ?? {});
  const choice = entries.find((entry) => Number(entry.index ?? 0) === 0);
  if (choice === undefined) return nothing;
  const message = choice.delta === undefined || choice.delta === null ? Json.record(choice.message) : undefined;
  const delta = Json.record(choice.delta) ?? message ?? { content: choice.text };
  const found: Array<Told> = [];
  const thought = reasoningOf(delta);
  if (thought !== undefined)
    found.push({ kind: "reasoning", key: "0", text: thought.text, keep: { field: thought.field } });
  // A message that repeats the whole answer at its end (MiniMax) shows nothing, by the decoder's word.
  if (message !== undefined && observation.shows === "nothing") return found;
  const list = Json.list(delta.content).map((item) => Json.record(item) ?? { type: "text", text: item });
  for (const item of list) found.push(...chatContent(item));
  const text =
    Json.string(delta.content) + Json.string(delta.refusal) + Json.string(Json.record(delta.audio)?.transcript);
  if (text !== "") found.push({ kind: "text", key: "0", text });
  for (const image of Json.list(delta.images))
    found.push(...dataUrl(Json.string(Json.record(Json.record(image)?.image_url)?.url)));
  return found;
};

const chatContent = (item: Json.JsonRecord): ReadonlyArray<Told> => {
  const type = Json.string(item.type);
  if (type === "reference") return nothing;
  if (type === "thinking" || type === "reasoning" || type === "redacted_thinking")
    return [{ kind: "reasoning", key: "0", text: readable(item), keep: { field: "content" } }];
  const text = Json.string(item.text) || Json.string(item.refusal);
  return text === "" ? nothing : [{ kind: "text", key: "0", text }];
};

const reasoningOf = (delta: Json.JsonRecord): { readonly field: string; readonly text: string } | undefined => {
  for (const field of plainReasoning) {
    const text = Json.string(delta[field]);
    if (text !== "") return { field, text };
  }
  for (const field of structuredReasoning) {
    const text = readable(delta[field]);
    if (text !== "") return { field, text };
  }
  return undefined;
};

const dataUrl = (url: string): ReadonlyArray<Told> => {
  const [, mediaType = "", data = ""] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? [];
  return data === "" ? nothing : [{ kind: "file", mediaType, data }];
};

// openai-responses

const responses = ({ observation }: Part, json: Json.JsonRecord, before: Before): ReadonlyArray<Told> => {
  const type = Json.string(json.type);
  const item = Json.record(json.item);
  if (item?.type === "reasoning") return reasoningItem(type, item);
  const key = Json.string(json.item_id) || String(json.output_index ?? "");
  if (observation.shows === "reasoning" && type.startsWith("response.reasoning") && typeof json.delta === "string")
    return [{ kind: "reasoning", key, text: json.delta }];
  if (observation.shows !== "text" || observation.characters === 0) return nothing;
  const response = Json.record(json.response);
  if (response !== undefined) return unshown(response, before, observation.characters);
  const texts = [json.delta, json.text, json.refusal, json.transcript, textOf(json.part), messageText(item)];
  const text = texts.map(Json.string).find((value) => value !== "") ?? "";
  return text === "" ? nothing : [{ kind: "text", key, text }];
};

/** What only the final response tells: its last messages, as far as the decoder counts them as new. */
const unshown = (response: Json.JsonRecord, before: Before, characters: number): ReadonlyArray<Told> => {
  const messages = Json.list(response.output).map(Json.record);
  const all = messages.map((item) => (item?.type === "message" ? messageText(item) : "")).join("");
  const text = all.length === characters ? all : all.slice(before.text.length).slice(0, characters);
  return text === "" ? nothing : [{ kind: "text", key: "final", text }];
};

const messageText = (item: Json.JsonRecord | undefined): string => Json.list(item?.content).map(textOf).join("");

const textOf = (part: unknown): string => {
  const record = Json.record(part) ?? {};
  return Json.string(record.text) || Json.string(record.refusal) || Json.string(record.transcript);
};

/** An item of reasoning goes back by its id, and without a stored response only with its encrypted content. */
const reasoningItem = (type: string, item: Json.JsonRecord): ReadonlyArray<Told> => {
  const id = Json.string(item.id);
  const encrypted = Json.string(item.encrypted_content);
  const keep = { item_id: id, ...(encrypted === "" ? {} : { encrypted_content: encrypted }) };
  return type === "response.output_item.done" || type === "response.output_item.added"
    ? [{ kind: "reasoning", key: id, text: "", keep }]
    : nothing;
};

// anthropic-messages

const anthropic = (json: Json.JsonRecord): ReadonlyArray<Told> => {
  const key = String(json.index);
  const block = Json.record(json.content_block);
  if (block !== undefined) return anthropicBlock(block, key);
  const delta = Json.record(json.delta) ?? {};
  switch (delta.type) {
    case "text_delta":
      return [{ kind: "text", key, text: Json.string(delta.text) }];
    case "thinking_delta":
      return [{ kind: "reasoning", key, text: Json.string(delta.thinking) }];
    case "signature_delta":
      return [{ kind: "reasoning", key, text: "", keep: { signature: Json.string(delta.signature) } }];
    default:
      return nothing;
  }
};

const anthropicBlock = (block: Json.JsonRecord, key: string): ReadonlyArray<Told> => {
  switch (block.type) {
    case "text":
      return [{ kind: "text", key, text: Json.string(block.text) }];
    case "thinking": {
      const signature = Json.string(block.signature);
      const keep = signature === "" ? {} : { keep: { signature } };
      return [{ kind: "reasoning", key, text: Json.string(block.thinking), ...keep }];
    }
    case "redacted_thinking":
      return [{ kind: "reasoning", key, text: "", keep: { redacted_data: Json.string(block.data) } }];
    default:
      return nothing;
  }
};

// google-gemini

const gemini = (json: Json.JsonRecord): ReadonlyArray<Told> => {
  // Code Assist, the endpoint of Gemini CLI, wraps every chunk.
  const chunk = json.candidates === undefined ? (Json.record(json.response) ?? json) : json;
  const candidates = Json.list(chunk.candidates).map((entry) => Json.record(entry) ?? {});
  const candidate = candidates.find((entry) => (Json.natural(entry.index) ?? 0) === 0);
  const found: Array<Told> = [];
  const calls: Array<Kept | undefined> = [];
  for (const entry of Json.list(Json.record(candidate?.content)?.parts)) {
    const part = Json.record(entry) ?? {};
    const signature = Json.string(part.thoughtSignature);
    const keep = signature === "" ? {} : { keep: { thought_signature: signature } };
    const called = Json.record(part.functionCall);
    if (called !== undefined && called.willContinue !== true) calls.push(keep.keep);
    const text = Json.string(part.text);
    const media = Json.record(part.inlineData);
    if (text !== "" || (signature !== "" && called === undefined))
      found.push({ kind: part.thought === true ? "reasoning" : "text", key: "0", text, ...keep });
    if (media !== undefined)
      found.push({ kind: "file", mediaType: Json.string(media.mimeType), data: Json.string(media.data) });
  }
  return calls.length === 0 ? found : [...found, { kind: "calls", keep: calls }];
};
