/**
 * Joins continuations to a response of OpenAI Chat Completions.
 *
 * The seam is the place where a continuation joins the shown text. A choice streams as one content, so reasoning between two pieces does
 * not end the text. The splice drops the continuation's own role, reasoning before the seam and text that the gate withholds. It rewrites
 * choice and call indexes, positions in the text, and log probabilities (to null: a token may span the seam).
 */
import * as Json from "../../domain/Json.ts";
import type { ShownText } from "../../seam/ShownText.ts";
import * as ChunkSplice from "../seam/ChunkSplice.ts";
import type { Splice } from "../seam/Splice.ts";
import type { TextGate } from "../seam/TextGate.ts";
import { readReason } from "../stream/Payload.ts";
import * as ChatCalls from "./Calls.ts";
import { executedKey, indexOf } from "./Calls.ts";
import { isPlain, isPresent, isReasoningEntry, isReasoningField, readWords } from "./Content.ts";

/** Creates the splice of one response. */
export const splice = (): Splice => ChunkSplice.make(form);

type Before = ChunkSplice.Before<ChatShown>;

const recordSent = (own: ChatShown, entry: Json.JsonRecord, shown: ShownText): number => {
  const { delta, form } = wordsOf(entry);
  if (form === "message" && own.streamed) return 0;
  if (form === "text" && Json.string(entry.text) !== "") own.isBare = true;
  own.hasRole ||= Json.string(delta.role) !== "";
  const said = readWords(delta, 0);
  let characters = 0;
  for (const { key, kind, text } of said) {
    if (kind === "text") shown.say(text);
    else if (kind === "media" && key !== "text") shown.refuse("not_text_last");
    characters += text.length;
  }
  own.streamed ||= said.length > 0 && form !== "message";
  // The plain delta, by far the most common kind, has nothing else to record.
  if (isPlain(delta)) return characters;
  if (isRefusal(delta)) shown.refuse("refusal_shown");
  recordSentCalls(own, delta, shown);
  return characters;
};

const recordSentCalls = (own: ChatShown, delta: Json.JsonRecord, shown: ShownText): void => {
  for (const place of callPlaces(delta)) {
    own.calls = place === undefined ? own.calls + 1 : Math.max(own.calls, place + 1);
    shown.refuse("not_text_last");
  }
  for (const { call, key, place } of executedOf(delta)) {
    own.executed = Math.max(own.executed, place + 1);
    shown.recordHostedTool(key, ChatCalls.isSettled(call));
  }
};

const joiner = (gate: TextGate, before: Before): ChunkSplice.JoinEntry => {
  const { characters } = before.shown;
  const joining: Joining = { gate, before: { ...before.own, characters }, streamed: false, called: false };
  return (entry, chunk, isTerminal) => {
    const joined = joinWords(entry, joining);
    if (joined === undefined) return undefined;
    const finishes = readReason(entry.finish_reason) !== "";
    const held = finishes && isTerminal ? gate.close() : "";
    const choice = rewriteChoice(entry, joined.write(held), before);
    const isEmpty = joined.isEmpty && held === "" && !Object.entries(entry).some(isMore) && !isMetered(chunk);
    const write = (portion: ChunkSplice.Portion, mayFinish: boolean) => {
      const isOver = finishes && mayFinish;
      if (!isOver && (isEmpty || portion === "finish")) return undefined;
      const left = portion === "finish" ? withoutWords(choice) : choice;
      return isOver || !("finish_reason" in left) ? left : { ...left, finish_reason: null };
    };
    return { goesOn: joined.goesOn, finishes, write };
  };
};

const rewriteChoice = (entry: Json.JsonRecord, words: Json.JsonRecord, { index }: Before): Json.JsonRecord => {
  const { delta: _delta, message: _message, text: _text, logprobs, ...rest } = entry;
  return {
    ...rest,
    ...("index" in rest && index !== undefined ? { index } : {}),
    ...words,
    ...(logprobs === undefined ? {} : { logprobs: null }),
  };
};

const textOnly = (content: string, before: Before): Json.JsonRecord => {
  const { isBare, object } = before.own;
  const choice = {
    ...(before.index === undefined ? {} : { index: before.index }),
    ...(isBare ? { text: content } : { delta: { content } }),
    finish_reason: null,
  };
  return { ...ChunkSplice.namesOf(before), ...(object === undefined ? {} : { object }), choices: [choice] };
};

/** True if a field of a choice is neither its words nor its finish, for example the findings of a filter. */
const isMore = ([name, value]: readonly [string, unknown]): boolean => !choiceFields.has(name) && isPresent(value);

const choiceFields: ReadonlySet<string> = new Set([
  ...["index", "delta", "message", "text", "logprobs", "finish_reason", "native_finish_reason", "stop_reason"],
]);

/** Reduces a choice to its finish, after its words were sent. */
const withoutWords = (choice: Json.JsonRecord): Json.JsonRecord => {
  const { delta: _delta, text, ...rest } = choice;
  return text === undefined ? { ...rest, delta: {} } : { ...rest, text: "" };
};

/** True if a chunk has usage, which is at the top level or, in Groq's streams, under `x_groq`. */
const isMetered = ({ usage, x_groq }: Json.JsonRecord): boolean =>
  Json.record(usage) !== undefined || Json.record(Json.record(x_groq)?.usage) !== undefined;

const noCounts: Json.JsonRecord = {};

const count = (chunk: Json.JsonRecord, counted: ChunkSplice.Count): Json.JsonRecord => {
  if (!isMetered(chunk)) return noCounts;
  const usage = Json.record(chunk.usage);
  const groq = Json.record(chunk.x_groq);
  const inner = Json.record(groq?.usage);
  return {
    ...(usage === undefined ? {} : { usage: counted(usage) }),
    ...(inner === undefined ? {} : { x_groq: { ...groq, usage: counted(inner) } }),
  };
};

const chunkOf = (json: unknown): ChunkSplice.Chunk | undefined => {
  // Google's compatible endpoint sends errors in a list of one element.
  const chunk = Json.record(json) ?? Json.record(Json.list(json)[0]);
  return chunk === undefined ? undefined : { json: chunk };
};

const form: ChunkSplice.ChunkForm<ChatShown> = {
  names: ["id", "created", "model", "system_fingerprint"],
  entries: "choices",
  usage: {
    input: ["prompt_tokens", "input_tokens"],
    output: ["completion_tokens", "output_tokens"],
    total: "total_tokens",
    ofInput: ["prompt_tokens_details", "input_tokens_details"],
    summed: ["completion_tokens_details", "output_tokens_details"],
  },
  endsWithDone: true,
  finishCarriesText: false,
  finishOmits: ["usage", "x_groq"],
  chunkOf,
  indexOf: (index) => ChatCalls.indexOf(index) ?? 0,
  count,
  start: () => ({ object: undefined, hasRole: false, isBare: false, streamed: false, calls: 0, executed: 0 }),
  recordSentChunk: (own, { object }) => {
    if (object) own.object ??= object;
  },
  recordSentEntry: recordSent,
  joiner,
  textOnly,
};

/** Facts about the sent part of a response that `ShownText` does not hold. */
interface ChatShown {
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

/** The state with which the deltas of one attempt are rewritten. */
interface Joining {
  readonly gate: TextGate;
  /** The response when the attempt began, with the length of its text, in UTF-16 code units. */
  readonly before: Readonly<ChatShown> & { readonly characters: number };
  /** True if content of this attempt came as deltas. A complete message then only repeats it. */
  streamed: boolean;
  /** True if this attempt has sent a call. */
  called: boolean;
}

/** The words of a choice that passed the gate. */
interface JoinedWords {
  /**
   * Writes the fields of the choice.
   *
   * @param held text that was held and ends the content
   */
  readonly write: (held: string) => Json.JsonRecord;
  /** True if nothing is left to write. */
  readonly isEmpty: boolean;
  /** True if the choice has any content, even if all of it was held or dropped. */
  readonly goesOn: boolean;
}

/** The field of a choice that holds its words. */
type WordsForm = "delta" | "message" | "text";

/** Finds the words of a choice: in its delta, in the message that some servers send instead, or in the field `text`. */
const wordsOf = (entry: Json.JsonRecord): { readonly delta: Json.JsonRecord; readonly form: WordsForm } => {
  const delta = Json.record(entry.delta);
  if (delta !== undefined) return { delta, form: "delta" };
  const message = Json.record(entry.message);
  return message === undefined ? { delta: { content: entry.text }, form: "text" } : { delta: message, form: "message" };
};

/** The index of each call of the caller's tools in a delta; undefined if the server sends none. */
const callPlaces = (delta: Json.JsonRecord): ReadonlyArray<number | undefined> => {
  const places = entriesOf(delta.tool_calls)
    .filter(isCall)
    .map(({ index }) => indexOf(index));
  return places.length === 0 && isPresent(delta.function_call) ? [undefined] : places;
};

/** True if a delta contains a refusal by the provider. */
const isRefusal = (delta: Json.JsonRecord): boolean =>
  Json.string(delta.refusal) !== "" || Json.list(delta.content).some((entry) => Json.record(entry)?.type === "refusal");

/**
 * Passes the words of a choice through the gate. Within one delta the content precedes the calls. So if a delta also has something that is
 * not text, held text is sent with its content.
 *
 * @returns undefined if they cannot be joined, after the gate has failed
 */
const joinWords = (entry: Json.JsonRecord, joining: Joining): JoinedWords | undefined => {
  const { form, delta: said } = wordsOf(entry);
  // A message that repeats the whole response at its end adds no text, only calls that were not sent.
  const delta = form === "message" && joining.streamed ? unsentCallsOf(said, joining.called) : said;
  const { gate } = joining;
  const isBehind = gate.isJoined;
  const found = readWords(delta, 0);
  const content = contentOf(delta.content, gate);
  const others = isOther(delta);
  const held = others ? gate.closeText() : "";
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
  if (typeof content === "string") return gate.pass(content);
  if (!Array.isArray(content)) return content;
  const left: Array<unknown> = [];
  for (const entry of content) left.push(...entryOf(entry, gate));
  return left;
};

const entryOf = (entry: unknown, gate: TextGate): ReadonlyArray<unknown> => {
  const part = Json.record(entry);
  if (typeof entry === "string" || (part?.type === "text" && typeof part.text === "string")) {
    const text = gate.pass(part === undefined ? String(entry) : Json.string(part.text));
    return text === "" ? [] : [part === undefined ? text : { ...part, text }];
  }
  const type = Json.string(part?.type);
  if (part === undefined || type === "" || type === "reference" || type === "text" || isReasoningEntry(part))
    return gate.isJoined ? [entry] : [];
  const held = gate.closeText();
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
      withShiftedIndex(call, before.calls, form === "message" ? place : undefined),
    );
    return Array.isArray(value) ? moved : moved[0];
  }
  if (name === "executed_tools" && Array.isArray(value))
    return entriesOf(value).map((call) => withShiftedIndex(call, before.executed, undefined));
  if (name === "annotations" && Array.isArray(value))
    return value.flatMap((annotation) => annotationOf(annotation, gate.cut, before.characters));
  return value;
};

/** Moves a call past the indexes already sent. `place` applies if the server sends no index. */
const withShiftedIndex = (call: Json.JsonRecord, taken: number, place: number | undefined): Json.JsonRecord => {
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
const executedOf = (
  delta: Json.JsonRecord,
): ReadonlyArray<{ readonly call: Json.JsonRecord; readonly key: string; readonly place: number }> =>
  entriesOf(delta.executed_tools).map((call) => ({ call, key: executedKey(call), place: indexOf(call.index) ?? 0 }));
