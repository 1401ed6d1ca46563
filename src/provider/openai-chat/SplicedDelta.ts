/**
 * Rewrites what a choice of a chat completion says for a client that has read the beginning of another response.
 *
 * In one delta the content stands before the calls. What was held in front of something that is no text goes with the content.
 */
import * as Json from "../../domain/Json.ts";
import type { AttemptGate } from "../seam/AttemptGate.ts";
import { executedKey, indexOf } from "./Calls.ts";
import { isPresent, isReasoningEntry, isReasoningField, words } from "./Content.ts";

/** What a delta is rewritten by. */
export interface Joining {
  readonly gate: AttemptGate;
  readonly before: {
    readonly hasRole: boolean;
    readonly isBare: boolean;
    /** Text that was shown, in UTF-16 code units. */
    readonly characters: number;
    /** Places of calls that are taken, of the caller's tools and of the provider's. */
    readonly calls: number;
    readonly executed: number;
  };
  /** Content of this attempt came as deltas, so that a whole message repeats it. */
  streamed: boolean;
  /** A call of this attempt came. */
  called: boolean;
}

/** What a choice says, as far as the gate let it pass. */
export interface JoinedWords {
  /**
   * Its fields as they are written.
   *
   * @param held what was held and ends the text, behind the words
   */
  readonly write: (held: string) => Json.JsonRecord;
  /** Nothing is left of them. */
  readonly isEmpty: boolean;
  /** They said something of the response, be it held or dropped. */
  readonly goesOn: boolean;
}

/** Where the words of a choice stand. */
export type WordsForm = "delta" | "message" | "text";

/** The words of a choice: in its delta, in the message that some servers send in its place, or in a bare text. */
export const wordsOf = (entry: Json.JsonRecord): { readonly delta: Json.JsonRecord; readonly form: WordsForm } => {
  const delta = Json.record(entry.delta);
  if (delta !== undefined) return { delta, form: "delta" };
  const message = Json.record(entry.message);
  return message === undefined ? { delta: { content: entry.text }, form: "text" } : { delta: message, form: "message" };
};

/** The places of the calls of the caller's tools that a delta speaks of; undefined where the server says none. */
export const callPlaces = (delta: Json.JsonRecord): ReadonlyArray<number | undefined> => {
  const places = entriesOf(delta.tool_calls)
    .filter(isCall)
    .map(({ index }) => indexOf(index));
  return places.length === 0 && isPresent(delta.function_call) ? [undefined] : places;
};

/** Whether a delta says a refusal of the provider's. */
export const isRefusal = (delta: Json.JsonRecord): boolean =>
  Json.string(delta.refusal) !== "" || Json.list(delta.content).some((entry) => Json.record(entry)?.type === "refusal");

/**
 * Asks the gate for the words of a choice.
 *
 * @returns undefined where they cannot be joined: the gate has been told
 */
export const joinWords = (entry: Json.JsonRecord, joining: Joining): JoinedWords | undefined => {
  const { form, delta: said } = wordsOf(entry);
  // A message that repeats the whole response at its end says nothing new.
  const delta = form === "message" && joining.streamed ? repeatedBy(said, joining.called) : said;
  const { gate } = joining;
  const isBehind = gate.joined;
  const found = words(delta, 0);
  const content = contentOf(delta.content, gate);
  const others = isOther(delta);
  const held = others ? gate.behindText() : "";
  if (held === undefined || gate.failed) return undefined;
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

const repeatedBy = (message: Json.JsonRecord, called: boolean): Json.JsonRecord =>
  called ? {} : { tool_calls: message.tool_calls, function_call: message.function_call };

/** Whether a delta says something that is neither text nor reasoning. */
const isOther = (delta: Json.JsonRecord): boolean =>
  callPlaces(delta).length > 0 ||
  isRefusal(delta) ||
  ["executed_tools", "audio", "images"].some((name) => isPresent(delta[name]));

/** The content that may leave: a text, a list of entries, or what says that there is none. */
const contentOf = (content: unknown, gate: AttemptGate): unknown => {
  if (typeof content === "string") return gate.text(content);
  if (!Array.isArray(content)) return content;
  const left: Array<unknown> = [];
  for (const entry of content) left.push(...entryOf(entry, gate));
  return left;
};

const entryOf = (entry: unknown, gate: AttemptGate): ReadonlyArray<unknown> => {
  const part = Json.record(entry);
  if (typeof entry === "string" || (part?.type === "text" && typeof part.text === "string")) {
    const text = gate.text(part === undefined ? String(entry) : Json.string(part.text));
    return text === "" ? [] : [part === undefined ? text : { ...part, text }];
  }
  const type = Json.string(part?.type);
  if (part === undefined || type === "" || type === "reference" || type === "text" || isReasoningEntry(part))
    return gate.joined ? [entry] : [];
  const held = gate.behindText();
  if (held === undefined) return [];
  return held === "" ? [part] : [{ type: "text", text: held }, part];
};

const withText = (content: unknown, text: string): unknown => {
  if (text === "") return content;
  return Array.isArray(content) ? [...content, { type: "text", text }] : Json.string(content) + text;
};

/** All fields but the content. */
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

/** A call behind those that are out; `place` is its own where the server says none. */
const atPlace = (call: Json.JsonRecord, taken: number, place: number | undefined): Json.JsonRecord => {
  const index = indexOf(call.index) ?? place;
  return index === undefined ? call : { ...call, index: index + taken };
};

/** An annotation at its place in the text that the client has; what is about the repeated text was said before. */
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

/** Servers that fill every field send calls of nothing beside text. */
const isCall = (call: Json.JsonRecord): boolean => {
  const called = Json.record(call.function) ?? Json.record(call.custom) ?? Json.record(call[Json.string(call.type)]);
  return isPresent(call.id) || Object.values(called ?? {}).some(isPresent);
};

/** The places of the provider's own calls that a delta speaks of, with what tells each apart. */
export const executedOf = (
  delta: Json.JsonRecord,
): ReadonlyArray<{ readonly call: Json.JsonRecord; readonly key: string; readonly place: number }> =>
  entriesOf(delta.executed_tools).map((call) => ({ call, key: executedKey(call), place: indexOf(call.index) ?? 0 }));
