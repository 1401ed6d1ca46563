/**
 * Joins continuations to a response of OpenAI Chat Completions.
 *
 * A choice streams as one content, so reasoning between two pieces does not end the text. The splice drops the second role, reasoning
 * before the seam and text that the gate withholds. It rewrites choice and call indexes, positions in the text, and log probabilities (to
 * null: a token may span the seam).
 */
import * as Json from "../../domain/Json.ts";
import * as ChunkSplice from "../seam/ChunkSplice.ts";
import type { ShownText } from "../seam/ShownText.ts";
import type { Splice } from "../seam/Splice.ts";
import type { TextGate } from "../seam/TextGate.ts";
import { reason } from "../stream/Payload.ts";
import * as ChatCalls from "./Calls.ts";
import { isPlain, isPresent, words } from "./Content.ts";
import { type ChatShown, callPlaces, executedOf, isRefusal, type Joining, joinWords, wordsOf } from "./SplicedDelta.ts";

/** Creates the splice of one response. */
export const splice = (): Splice => ChunkSplice.make(form);

type Before = ChunkSplice.Before<ChatShown>;

const recordSent = (own: ChatShown, entry: Json.JsonRecord, shown: ShownText): number => {
  const { delta, form } = wordsOf(entry);
  if (form === "message" && own.streamed) return 0;
  if (form === "text" && Json.string(entry.text) !== "") own.isBare = true;
  own.hasRole ||= Json.string(delta.role) !== "";
  const said = words(delta, 0);
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
    const finishes = reason(entry.finish_reason) !== "";
    const held = finishes && isTerminal ? gate.close() : "";
    const choice = rewriteChoice(entry, joined.write(held), before);
    const isEmpty = joined.isEmpty && held === "" && !Object.entries(entry).some(isMore) && !isMetered(chunk);
    const write = (portion: ChunkSplice.Portion, mayFinish: boolean) => {
      const isOver = finishes && mayFinish;
      if (!isOver && (isEmpty || portion === "finish")) return undefined;
      const left = portion === "finish" ? wordless(choice) : choice;
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
const wordless = (choice: Json.JsonRecord): Json.JsonRecord => {
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
  // Google's compatible endpoint sends errors in a list of one.
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
