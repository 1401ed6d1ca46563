/**
 * Rewrites the words of a choice for a client that has read the start of another response.
 *
 * Within one delta the content precedes the calls. Held text that precedes something that is not text is sent with the content.
 */
import * as Json from "../../domain/Json.ts";
import type { TextGate } from "../seam/TextGate.ts";
import { executedKey, indexOf } from "./Calls.ts";
import { isPresent, isReasoningEntry, isReasoningField, words } from "./Content.ts";

/** The parts of a response, other than its text, that were handed over. */
export interface ChatShown {
  object: unknown;
  hasRole: boolean;
  /** True if the words are in the field `text`, as in the older completions API. */
  isBare: boolean;
  /** True if content came as deltas. A complete message then only repeats it. */
  streamed: boolean;
  /** Number of call indexes in use, by the caller's tools (`calls`) and the provider's (`executed`). */
  calls: number;
  executed: number;
}

/** The state that the deltas of one attempt are rewritten with. */
export interface Joining {
  readonly gate: TextGate;
  /** The response when the attempt began, with the length of its text, in UTF-16 code units. */
  readonly before: Readonly<ChatShown> & { readonly characters: number };
  /** True if content of this attempt came as deltas. A complete message then only repeats it. */
  streamed: boolean;
  /** True if this attempt has sent a call. */
  called: boolean;
}

/** The words of a choice that passed the gate. */
export interface JoinedWords {
  /**
   * Writes the fields of the choice.
   *
   * @param held text that was held and ends the content
   */
  readonly write: (held: string) => Json.JsonRecord;
  /** True if nothing is left to write. */
  readonly isEmpty: boolean;
  /** True if the words continue the response, even if they were held or dropped. */
  readonly goesOn: boolean;
}

/** The field of a choice that holds its words. */
export type WordsForm = "delta" | "message" | "text";

/** Finds the words of a choice: in its delta, in the message that some servers send instead, or in the field `text`. */
export const wordsOf = (entry: Json.JsonRecord): { readonly delta: Json.JsonRecord; readonly form: WordsForm } => {
  const delta = Json.record(entry.delta);
  if (delta !== undefined) return { delta, form: "delta" };
  const message = Json.record(entry.message);
  return message === undefined ? { delta: { content: entry.text }, form: "text" } : { delta: message, form: "message" };
};

/** The index of each call of the caller's tools in a delta; undefined if the server sends none. */
export const callPlaces = (delta: Json.JsonRecord): ReadonlyArray<number | undefined> => {
  const places = entriesOf(delta.tool_calls)
    .filter(isCall)
    .map(({ index }) => indexOf(index));
  return places.length === 0 && isPresent(delta.function_call) ? [undefined] : places;
};

/** True if a delta contains a refusal by the provider. */
export const isRefusal = (delta: Json.JsonRecord): boolean =>
  Json.string(delta.refusal) !== "" || Json.list(delta.content).some((entry) => Json.record(entry)?.type === "refusal");

/**
 * Passes the words of a choice through the gate.
 *
 * @returns undefined if they cannot be joined, after the gate has failed
 */
export const joinWords = (entry: Json.JsonRecord, joining: Joining): JoinedWords | undefined => {
  const { form, delta: said } = wordsOf(entry);
  // A message that repeats the whole response at its end adds no text, only calls that were not sent.
  const delta = form === "message" && joining.streamed ? unsentCallsOf(said, joining.called) : said;
  const { gate } = joining;
  const isBehind = gate.isJoined;
  const found = words(delta, 0);
  const content = contentOf(delta.content, gate);
  const others = isOther(delta);
  const held = others ? gate.behindText() : "";
  if (held === undefined || gate.fault !== undefined) return undefined;
  if (isPresent(delta.audio)) {
    gate.fail("unwritable");
    return undefined;
  }
  joining.streamed ||= found.length > 0 && form !== "message";
  joining.called ||= callPlaces(delta).length > 0;
  const rest = restOf(delta, form, isBehind, joining);
  const all = withText(content, held);
  const isEmpty =
    !isPresent(all) && Object.entries(rest).every(([name, value]) => name === "role" || !isPresent(value));
  const write = (more: string) => {
    const text = withText(all, more);
    if (form === "text") return joining.before.isBare || "text" in entry ? { text: text ?? null } : textDelta(text);
    return { delta: text === undefined ? rest : { ...rest, content: text } };
  };
  return { write, isEmpty, goesOn: found.length > 0 || others };
};

const textDelta = (content: unknown): Json.JsonRecord => (isPresent(content) ? { delta: { content } } : {});

const unsentCallsOf = (message: Json.JsonRecord, called: boolean): Json.JsonRecord =>
  called ? {} : { tool_calls: message.tool_calls, function_call: message.function_call };

/** True if a delta has more than text and reasoning. */
const isOther = (delta: Json.JsonRecord): boolean =>
  callPlaces(delta).length > 0 ||
  isRefusal(delta) ||
  ["executed_tools", "audio", "images"].some((name) => isPresent(delta[name]));

/** The content that may be sent: a string, a list of entries, or an empty value. */
const contentOf = (content: unknown, gate: TextGate): unknown => {
  if (typeof content === "string") return gate.text(content);
  if (!Array.isArray(content)) return content;
  const left: Array<unknown> = [];
  for (const entry of content) left.push(...entryOf(entry, gate));
  return left;
};

const entryOf = (entry: unknown, gate: TextGate): ReadonlyArray<unknown> => {
  const part = Json.record(entry);
  if (typeof entry === "string" || (part?.type === "text" && typeof part.text === "string")) {
    const text = gate.text(part === undefined ? String(entry) : Json.string(part.text));
    return text === "" ? [] : [part === undefined ? text : { ...part, text }];
  }
  const type = Json.string(part?.type);
  if (part === undefined || type === "" || type === "reference" || type === "text" || isReasoningEntry(part))
    return gate.isJoined ? [entry] : [];
  const held = gate.behindText();
  if (held === undefined) return [];
  return held === "" ? [part] : [{ type: "text", text: held }, part];
};

const withText = (content: unknown, text: string): unknown => {
  if (text === "") return content;
  return Array.isArray(content) ? [...content, { type: "text", text }] : Json.string(content) + text;
};

const restOf = (delta: Json.JsonRecord, form: WordsForm, isBehind: boolean, joining: Joining): Json.JsonRecord => {
  const rest: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(delta)) {
    if (name === "content" || value === undefined) continue;
    if (name === "role" && (joining.before.hasRole || form === "message")) continue;
    if (isReasoningField(name) && !isBehind) continue;
    rest[name] = fieldOf(name, value, form, joining);
  }
  return rest;
};

const fieldOf = (name: string, value: unknown, form: WordsForm, { before, gate }: Joining): unknown => {
  if (name === "tool_calls" && isPresent(value)) {
    const moved = entriesOf(value).map((call, place) =>
      atPlace(call, before.calls, form === "message" ? place : undefined),
    );
    return Array.isArray(value) ? moved : moved[0];
  }
  if (name === "executed_tools" && Array.isArray(value))
    return entriesOf(value).map((call) => atPlace(call, before.executed, undefined));
  if (name === "annotations" && Array.isArray(value))
    return value.flatMap((annotation) => annotationOf(annotation, gate.cut, before.characters));
  return value;
};

/** Moves a call past the indexes already sent. `place` applies if the server sends no index. */
const atPlace = (call: Json.JsonRecord, taken: number, place: number | undefined): Json.JsonRecord => {
  const index = indexOf(call.index) ?? place;
  return index === undefined ? call : { ...call, index: index + taken };
};

/** Moves an annotation to its position in the client's text. Drops annotations of repeated text, because the client already has them. */
const annotationOf = (annotation: unknown, cut: number, characters: number): ReadonlyArray<unknown> => {
  const record = Json.record(annotation);
  const type = Json.string(record?.type);
  const inner = Json.record(record?.[type]);
  const places = inner ?? record;
  const start = Json.natural(places?.start_index);
  if (record === undefined || places === undefined || start === undefined) return [annotation];
  if (start < cut) return [];
  const end = Json.natural(places.end_index);
  const shift = characters - cut;
  const moved = { ...places, start_index: start + shift, ...(end === undefined ? {} : { end_index: end + shift }) };
  return [inner === undefined ? moved : { ...record, [type]: moved }];
};

const entriesOf = (value: unknown): ReadonlyArray<Json.JsonRecord> =>
  (Json.record(value) === undefined ? Json.list(value) : [value]).map((entry) => Json.record(entry) ?? {});

/** True if a call has content. Servers that fill every field send empty calls next to text. */
const isCall = (call: Json.JsonRecord): boolean => {
  const called = Json.record(call.function) ?? Json.record(call.custom) ?? Json.record(call[Json.string(call.type)]);
  return isPresent(call.id) || Object.values(called ?? {}).some(isPresent);
};

/** The provider's own calls in a delta, with the key and the index of each. */
export const executedOf = (
  delta: Json.JsonRecord,
): ReadonlyArray<{ readonly call: Json.JsonRecord; readonly key: string; readonly place: number }> =>
  entriesOf(delta.executed_tools).map((call) => ({ call, key: executedKey(call), place: indexOf(call.index) ?? 0 }));
