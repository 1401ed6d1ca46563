/**
 * Decodes streams of OpenAI Chat Completions and of the many servers that imitate it.
 *
 * Terminal rule (law L5): a stream is complete when every choice has sent its `finish_reason`.
 *
 * - With `choices` given (the request's `n`): when that many have finished.
 * - Without `choices`: when all choices from 0 to the highest seen have finished. If one below the highest was never seen, the finish is
 *   the marker only with a clean end or `[DONE]`.
 * - `[DONE]` replaces the missing finish of a choice in two cases: another choice has finished (LiteLLM finishes choice 0 only), or the
 *   audio of every unfinished choice has reported its `expires_at` (OpenAI's audio models never send a finish).
 * - `[DONE]` without a finish is the marker if the server never sends the field `finish_reason` at all (Snowflake), and with
 *   `doneWithoutFinish: true` also if it sends null. It is never the marker after an error.
 *
 * If a limit cuts a call, OpenRouter sends the finish `tool_calls` and names the limit in `native_finish_reason`. The limit wins.
 *
 * Gateways in front of Gemini may send a finish in every chunk. A finish that comes with a call, or with the first content of its choice,
 * is therefore the marker only with a clean end or `[DONE]`, and later content without a finish revokes it.
 *
 * `[DONE]` is not needed after a finish: healthy servers omit it. The first marker wins, and neither an error object nor
 * `finish_reason: "error"` is ever a marker.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type CallSignal, failed, none, type Observation } from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import { type Content, nothing } from "../stream/Content.ts";
import * as Payload from "../stream/Payload.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { End, Observed, Protocol, SseEvent, Tolerance } from "../stream/Protocol.ts";
import * as ChatCalls from "./Calls.ts";
import * as ChatContent from "./Content.ts";
import * as ChatFinish from "./Finish.ts";

/** Maximum choices of one stream (the API's own limit for `n`). */
export const choicesMax = 128;

/** Maximum argument text gathered over all calls of a stream, in UTF-16 code units. */
export const argumentCharactersMax = 16 * 1024 * 1024;

interface Choice {
  readonly index: number;
  readonly calls: ReadonlyArray<ChatCalls.Call>;
  readonly finish: string | undefined;
  /** True if the finish came after content without a finish, so this server does not send a finish in every chunk. */
  readonly sure: boolean;
  /** True if content arrived without a finish. */
  readonly spoke: boolean;
  /** True if content arrived in deltas. A complete message then only repeats it. */
  readonly streamed: boolean;
  /** True if the finish says that the calls are complete. */
  readonly whole: boolean;
  /** True after the last audio delta, which carries `expires_at`. */
  readonly audioOver: boolean;
}

/** The immutable state of the decoder between two events. A text delta normally leaves the state unchanged. */
export interface State {
  readonly tolerance: Tolerance;
  readonly choices: ReadonlyArray<Choice>;
  readonly argumentCharacters: number;
  /** True if the server sends the field `finish_reason`, even as null. */
  readonly saysFinish: boolean;
  /** True if a choice finished with a call that cannot be parsed. */
  readonly invalid: boolean;
  readonly terminal: boolean;
  readonly failure: Failure | undefined;
}

/** The state before the first event. */
export const initial = (tolerance: Tolerance = {}): State => ({
  tolerance,
  choices: [],
  argumentCharacters: 0,
  saysFinish: false,
  invalid: false,
  terminal: false,
  failure: undefined,
});

/** The protocol's id. */
export const id = "openai-chat";

type Part = Stream.Part<typeof id>;

/** Folds one event into the state. */
export const step = (state: State, event: SseEvent): readonly [State, Part] => {
  if (Payload.isDone(event.data)) return withPart(onDone(state), event, undefined);
  const parsed = Json.parse(event.data);
  if (parsed === undefined) {
    const part = Payload.unparsedPart(id, event);
    return [fail(state, part.observation.failure), part];
  }
  // Google's compatible endpoint sends errors in a list of one element.
  const chunk = Json.record(parsed.json) ?? Json.record(Json.list(parsed.json)[0]);
  const failure = errorOf(event, chunk);
  if (failure !== undefined) return withPart([fail(state, failure), failed(failure)], event, parsed.json);
  if (chunk === undefined) return withPart([state, none], event, parsed.json);
  const seen: Seen = {
    content: nothing,
    text: 0,
    shows: "nothing",
    reasoning: 0,
    input: false,
    calls: noCalls,
    failure: undefined,
  };
  const stepped = onChunk(state, chunk, seen);
  return withPart(stepped, event, parsed.json, seen.content);
};

/** Decides at a clean end of the bytes if the response is complete. */
export const halt = (state: State): End => {
  if (state.failure !== undefined) return { complete: false, failure: state.failure };
  const finished = state.choices.length > 0 && state.choices.every((choice) => choice.finish !== undefined);
  const enough = state.terminal || state.choices.length >= (state.tolerance.choices ?? 1);
  if (!finished || !enough) return { complete: false, failure: { kind: "truncated" } };
  // An unparseable call after an unconfirmed finish is reported here, because no later event can report it.
  const unread = state.choices.some((choice) => choice.whole && !choice.sure && !ChatCalls.areReadable(choice.calls));
  return unread ? { complete: false, failure: ChatFinish.callUnread } : { complete: true };
};

/** Returns the observation of a part. */
export const observe = (part: Observed): Observation => part.observation;

/**
 * OpenAI Chat Completions.
 *
 * Complete when: every choice has its `finish_reason`, or `[DONE]` follows the finish of one choice or the end of its audio
 * Tolerated: no `[DONE]`; `[DONE]` without a `finish_reason` from servers that never send that key, and from others by
 * `tolerance.doneWithoutFinish`
 */
export const protocol: Protocol<State, typeof id> = { id, initial, step, halt, observe };

const noCalls: ReadonlyArray<CallSignal> = [];

type Stepped = readonly [State, Observation];

const withPart = (
  [state, observation]: Stepped,
  event: SseEvent,
  json: unknown,
  content: ReadonlyArray<Content> = nothing,
): readonly [State, Part] => [state, { protocol: id, event, json, content, observation }];

/** Records a failure. An error after the terminal marker changes nothing. */
const fail = (state: State, failure: Failure | undefined): State =>
  state.terminal || state.failure !== undefined ? state : { ...state, failure };

const errorOf = (event: SseEvent, chunk: Json.JsonRecord | undefined): Failure | undefined => {
  const named = event.event === "error" || chunk?.type === "error" || chunk?.object === "error";
  // This runs for every delta, so it first skips chunks that cannot contain an error.
  const error = Payload.isError(chunk?.error);
  const isPlain = Json.list(chunk?.choices).length > 0 || Json.record(chunk?.usage) !== undefined;
  if (!named && !error && isPlain && chunk?.base_resp === undefined) return undefined;
  const failure = classifyEvent(error || !named ? chunk : { error: chunk ?? {} });
  return failure ?? (named ? { kind: "server_error", in_band: true } : undefined);
};

const onDone = (state: State): Stepped => {
  const quiet: Observation = { ...none, quiet: true };
  if (state.terminal) return [state, { ...quiet, closes: "now" }];
  if (state.failure !== undefined || state.choices.length === 0) return [state, quiet];
  const open = state.choices.filter((choice) => choice.finish === undefined);
  const finished = open.length < state.choices.length || open.every((choice) => choice.audioOver);
  const tolerated = finished || (state.tolerance.doneWithoutFinish ?? !state.saysFinish);
  // Missing arguments do not count as `{}` here, because this server would not report that they were cut.
  if (open.length > 0 && (!tolerated || !open.every((choice) => ChatCalls.areReadable(choice.calls, false))))
    return [state, quiet];
  let { invalid } = state;
  const calls: Array<CallSignal> = [];
  const choices = state.choices.map((choice) => {
    if (choice.finish !== undefined && (choice.sure || !choice.whole)) return { ...choice, sure: true };
    const closed = ChatCalls.close(choice.calls, choice.index, "sure");
    calls.push(...closed.signals);
    invalid ||= closed.invalid;
    return { ...choice, calls: closed.calls, finish: choice.finish ?? "done", sure: true };
  });
  const progress = calls.length > 0 ? "output" : "started";
  return finish({ ...state, choices, invalid }, { ...quiet, quiet: calls.length === 0, progress, calls }, true);
};

const onChunk = (state: State, chunk: Json.JsonRecord, seen: Seen): Stepped => {
  let next = state;
  const choices = Json.list(chunk.choices);
  for (const entry of choices) next = onChoice(next, Json.record(entry) ?? {}, seen, chunk);
  const observation = observationOf(seen, choices.length, usageOf(chunk));
  if (seen.failure !== undefined) return [fail(next, seen.failure), { ...observation, failure: seen.failure }];
  if (next.terminal || next.failure !== undefined) return [next, observation];
  return finish(next, observation, false);
};

interface Seen {
  content: ReadonlyArray<Content>;
  text: number;
  shows: Observation["shows"];
  reasoning: number;
  /** True if call fields arrived, even without a new signal. */
  input: boolean;
  calls: ReadonlyArray<CallSignal>;
  failure: Failure | undefined;
}

const onChoice = (state: State, entry: Json.JsonRecord, seen: Seen, chunk: Json.JsonRecord): State => {
  const index = ChatCalls.indexOf(entry.index) ?? 0;
  const message = entry.delta === undefined || entry.delta === null ? Json.record(entry.message) : undefined;
  const delta = Json.record(entry.delta) ?? message ?? { content: entry.text };
  const position = state.choices.findIndex((choice) => choice.index === index);
  const before: Choice = state.choices[position] ?? { ...fresh, index };
  // A message that repeats the whole response at its end (MiniMax) shows nothing new. Only its calls are read again.
  const said = message !== undefined && before.streamed ? nothing : ChatContent.readWords(delta, index);
  const spoke = said.length > 0;
  look(said, seen);
  const streamed = before.streamed || (spoke && message === undefined);
  const repeats = message !== undefined && before.calls.length > 0;
  const gathered = hasCalls(delta) && !repeats ? ChatCalls.gather(before.calls, index, delta) : undefined;
  if (gathered !== undefined) {
    seen.input = true;
    seen.calls = [...seen.calls, ...gathered.signals];
    add(seen, ChatContent.readNotes(delta, index));
  }
  // Reports a choice even before it has content, because several choices rule out a continuation.
  if (position === -1 && !spoke) add(seen, [{ kind: "text", choice: index, key: "text", text: "" }]);
  const reason = Payload.readReason(entry.finish_reason);
  const saysFinish = state.saysFinish || "finish_reason" in entry;
  const goesOn = reason === "" && (spoke || gathered !== undefined) && !before.sure;
  const says = Payload.isError(entry.error);
  const audioOver = before.audioOver || isAudioEnd(delta);
  if (
    position !== -1 &&
    gathered === undefined &&
    reason === "" &&
    saysFinish === state.saysFinish &&
    streamed === before.streamed &&
    audioOver === before.audioOver
  ) {
    if (says) seen.failure ??= classifyEvent({ error: entry.error });
    if (!goesOn || (before.spoke && before.finish === undefined)) return state;
  }
  let choice: Choice = { ...before, audioOver, streamed, calls: gathered?.calls ?? before.calls };
  if (goesOn) choice = { ...choice, spoke: true, finish: undefined };
  let invalid = false;
  if (reason !== "" && !before.sure) {
    const native = Payload.readReason(entry.native_finish_reason);
    const sure = before.spoke && !gathered?.begins;
    const ended = end(choice, { reason, native }, sure, says ? { error: entry.error } : chunk);
    choice = ended.choice;
    invalid = ended.invalid;
    seen.calls = [...seen.calls, ...ended.signals];
    seen.failure ??= ended.failure;
  } else if (says) seen.failure ??= classifyEvent({ error: entry.error });
  const argumentCharacters = state.argumentCharacters + (gathered?.characters ?? 0);
  if (argumentCharacters > argumentCharactersMax || choice.calls.length > ChatCalls.callsMax || index >= choicesMax)
    seen.failure ??= { kind: "protocol", reason: "oversize" };
  const choices = position === -1 ? [...state.choices, choice] : state.choices.with(position, choice);
  return { ...state, choices, argumentCharacters, saysFinish, invalid: state.invalid || invalid };
};

const hasCalls = (delta: Json.JsonRecord): boolean =>
  isObject(delta.tool_calls) || isObject(delta.function_call) || isObject(delta.executed_tools);

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;

const isAudioEnd = (delta: Json.JsonRecord): boolean =>
  isObject(delta.audio) && Json.natural(Json.record(delta.audio)?.expires_at) !== undefined;

const fresh: Choice = {
  index: 0,
  calls: [],
  finish: undefined,
  sure: false,
  spoke: false,
  streamed: false,
  whole: false,
  audioOver: false,
};

const look = (said: ReadonlyArray<Content>, seen: Seen): void => {
  for (const { kind, text } of said) {
    if (kind === "reasoning") {
      if (seen.shows === "nothing") seen.shows = "reasoning";
      seen.reasoning += text.length;
    } else {
      seen.shows = "text";
      seen.text += text.length;
    }
  }
  if (said.length > 0) add(seen, said);
};

const add = (seen: Seen, content: ReadonlyArray<Content>): void => {
  seen.content = seen.content.length === 0 ? content : [...seen.content, ...content];
};

/** The finish reason of the choice, and the reason that the server behind a gateway reported. Each is empty if missing. */
interface Finish {
  readonly reason: string;
  readonly native: string;
}

interface Ended {
  readonly choice: Choice;
  readonly signals: ReadonlyArray<CallSignal>;
  readonly invalid: boolean;
  readonly failure: Failure | undefined;
}

const end = (choice: Choice, { native, reason }: Finish, sure: boolean, carrier: unknown): Ended => {
  const ending = ChatFinish.endingOf(reason, native);
  if (ending === "failed") {
    const failure = classifyEvent(carrier) ?? ChatFinish.failureOf(reason);
    return { choice: { ...choice, finish: undefined }, signals: [], invalid: false, failure };
  }
  const whole = ending === "whole";
  const { calls, invalid, signals } = whole
    ? ChatCalls.close(choice.calls, choice.index, sure ? "sure" : "unsure")
    : { calls: choice.calls, invalid: ending === "invalid_call", signals: noCalls };
  return {
    choice: { ...choice, calls, finish: label(reason), sure: sure || invalid, whole },
    signals,
    invalid,
    failure: undefined,
  };
};

const finish = (state: State, observation: Observation, done: boolean): Stepped => {
  const { choices, tolerance } = state;
  const first = choices.find((choice) => choice.finish !== undefined)?.finish;
  if (first === undefined || choices.some((choice) => choice.finish === undefined)) return [state, observation];
  const expected = tolerance.choices ?? Math.max(...choices.map((choice) => choice.index)) + 1;
  const sure = choices.every((choice) => choice.sure);
  if ((choices.length < expected || !sure) && !done && !state.invalid) {
    // `[DONE]` may follow. Only `[DONE]` or a clean end proves this finish; silence does not.
    return tolerance.choices === undefined || choices.length >= expected
      ? [state, { ...observation, terminal_at_end: true, closes: "later", finish: first }]
      : [state, observation];
  }
  const closes = done ? {} : ({ closes: "later" } as const);
  const marked: Observation = { ...observation, ...closes, terminal: true, finish: first };
  if (!state.invalid) return [{ ...state, terminal: true }, marked];
  // Only this terminal marker comes together with a failure: the whole response has arrived, but a call in it cannot be parsed.
  const unread = choices.some(({ calls }) => !ChatCalls.areReadable(calls));
  const failure = unread ? ChatFinish.callUnread : ChatFinish.invalidToolInput;
  return [
    { ...state, failure },
    { ...marked, failure },
  ];
};

const observationOf = (seen: Seen, choices: number, usage: Observation["usage"]): Observation => {
  const shows = seen.shows;
  const calls = seen.calls;
  if (shows === "nothing" && !seen.input && calls.length === 0) {
    return usage === undefined ? none : { ...none, quiet: choices === 0, usage };
  }
  return {
    ...none,
    progress: shows === "reasoning" && !seen.input && calls.length === 0 ? "reasoning" : "output",
    shows,
    characters: shows === "text" ? seen.text : seen.reasoning,
    calls,
    // Within one delta, the content precedes the calls. With several choices, or while an older call is still streaming, the order is
    // unknown.
    ...(shows === "text" && choices === 1 && haveAllBegun(calls) ? { text_before_calls: true } : {}),
    ...(usage === undefined ? {} : { usage }),
  };
};

const haveAllBegun = (calls: ReadonlyArray<CallSignal>): boolean =>
  calls.length > 0 &&
  calls.every((call) => calls.some((other) => other.ordinal === call.ordinal && other.phase === "input_started"));

/** Reads the usage, either at the top level or, in Groq's streams, under `x_groq`. */
const usageOf = (chunk: Json.JsonRecord): Observation["usage"] => {
  const usage = Json.record(chunk.usage) ?? Json.record(Json.record(chunk.x_groq)?.usage);
  if (usage === undefined) return undefined;
  const output = usage.completion_tokens ?? usage.output_tokens;
  const reasoning = Json.natural(Json.record(usage.completion_tokens_details)?.reasoning_tokens) ?? 0;
  // xAI reports reasoning tokens in addition to the completion tokens. Reasoning that exceeds the output cannot be part of it.
  const beside = reasoning > (Json.natural(output) ?? reasoning) ? reasoning : 0;
  return Payload.usage(usage.prompt_tokens ?? usage.input_tokens, beside === 0 ? output : Number(output) + beside);
};
