/**
 * Decodes streams of Cohere's `/v2/chat` (docs.cohere.com, "A Guide to Streaming Responses" and "Streaming for tool use").
 *
 * Terminal rule (law L5): `message-end` with a finish reason is the marker. The reasons `ERROR` and `TIMEOUT`, and any reason with an
 * `error`, mean that the server aborted, so they are never the marker. The `[DONE]` after the marker is optional.
 *
 * The arguments of a call arrive in pieces, and `tool-call-end` completes them. A limit may cut the last call before that event.
 */
import { type Failure, incompleteCall } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type CallSignal, failed, none, type Observation } from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import * as ChatFinish from "../openai-chat/Finish.ts";
import { type Content, nothing, single } from "../stream/Content.ts";
import * as Payload from "../stream/Payload.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { End, Observed, Protocol, SseEvent } from "../stream/Protocol.ts";

/** Maximum calls of one stream. */
export const callsMax = 512;

/** Maximum argument text gathered over all calls of a stream, in UTF-16 code units. */
export const argumentCharactersMax = 16 * 1024 * 1024;

/** A call as gathered so far. `open` is true until `tool-call-end`. */
interface Call {
  /** The `index` of its events. */
  readonly index: number;
  readonly id: string;
  readonly tool: string;
  readonly input: string;
  readonly open: boolean;
}

/** The immutable state of the decoder between two events. A text delta leaves the state unchanged. */
export interface State {
  readonly calls: ReadonlyArray<Call>;
  readonly argumentCharacters: number;
  readonly terminal: boolean;
  readonly failure: Failure | undefined;
}

/** The state before the first event. */
export const initial = (): State => ({ calls: [], argumentCharacters: 0, terminal: false, failure: undefined });

/** The protocol's id. */
export const id = "cohere-chat";

type Part = Stream.Part<typeof id>;
type Stepped = readonly [State, Observation, ReadonlyArray<Content>?];

/** Folds one event into the state. */
export const step = (state: State, event: SseEvent): readonly [State, Part] => {
  if (Payload.isDone(event.data)) {
    const observation: Observation = { ...none, quiet: true, ...(state.terminal ? { closes: "now" } : {}) };
    return [state, { protocol: id, event, json: undefined, content: nothing, observation }];
  }
  const parsed = Json.parse(event.data);
  if (parsed === undefined) {
    const observation = /^(?:message|content|tool|citation)-/.test(event.event)
      ? failed({ kind: "protocol", reason: "damaged_frame" })
      : Payload.unparsedPart(id, event).observation;
    return [fail(state, observation.failure), { protocol: id, event, json: undefined, content: nothing, observation }];
  }
  const json = Json.record(parsed.json) ?? {};
  const failure = errorOf(event, json);
  const [next, observation, content = nothing]: Stepped =
    failure === undefined ? onEvent(state, json) : [fail(state, failure), failed(failure)];
  return [next, { protocol: id, event, json: parsed.json, content, observation }];
};

/** Decides at a clean end of the bytes if the response is complete. */
export const halt = ({ failure, terminal }: State): End => {
  if (failure !== undefined) return { complete: false, failure };
  return terminal ? { complete: true } : { complete: false, failure: { kind: "truncated" } };
};

/** Returns the observation of a part. */
export const observe = (part: Observed): Observation => part.observation;

/**
 * Cohere Chat, `/v2/chat`.
 *
 * Complete when: `message-end` with a finish reason of the model
 * Tolerated: no `[DONE]`
 */
export const protocol: Protocol<State, typeof id> = { id, initial, step, halt, observe };

/** Records a failure. An error after the terminal marker changes nothing. */
const fail = (state: State, failure: Failure | undefined): State =>
  state.terminal || state.failure !== undefined || failure === undefined ? state : { ...state, failure };

const serverError: Failure = { kind: "server_error", in_band: true };

/** Cohere's own errors are `{ message }`, without the `type` that every event has. */
const errorOf = (event: SseEvent, json: Json.JsonRecord): Failure | undefined => {
  const named = event.event === "error" || json.type === "error";
  const bare = json.type === undefined && typeof json.message === "string";
  if (!named && !bare && !Payload.isError(json.error)) return undefined;
  return classifyEvent(Payload.isError(json.error) ? json : { error: json }) ?? serverError;
};

const onEvent = (state: State, event: Json.JsonRecord): Stepped => {
  const delta = Json.record(event.delta) ?? {};
  const message = Json.record(delta.message) ?? {};
  switch (event.type) {
    case "content-start":
    case "content-delta":
      return onContent(state, Json.record(message.content) ?? {}, Json.natural(event.index) ?? 0);
    case "tool-plan-delta": {
      const plan = Json.string(message.tool_plan);
      return plan === "" ? [state, none] : showContent(state, { ...thoughtContent("plan", plan), item: planItem });
    }
    case "tool-call-start":
      return onCallStart(state, event.index, Json.record(message.tool_calls) ?? {});
    case "tool-call-delta":
      return onCallDelta(state, event.index, Json.record(message.tool_calls) ?? {});
    case "tool-call-end":
      return onCallEnd(state, event.index);
    case "message-end":
      return onEnd(state, delta, event.id);
    default:
      return [state, none];
  }
};

const planItem = { type: "reasoning", field: "tool_plan" } as const;

const thoughtContent = (key: string, text: string): Content => ({ kind: "reasoning", choice: 0, key, text });

const onContent = (state: State, { text, thinking, type }: Json.JsonRecord, index: number): Stepped => {
  const words = Json.string(thinking);
  if (words !== "" || type === "thinking")
    return showContent(state, {
      ...thoughtContent(`thinking ${index}`, words),
      item: { type: "reasoning", field: "thinking" },
    });
  return showContent(state, {
    ...{ kind: "text", choice: 0, key: `text ${index}`, text: Json.string(text) },
    item: { type: "text", field: "text" },
  });
};

/** A thinking block counts as reasoning once it opens. Text counts as shown from its first character. */
const showContent = (state: State, content: Content): Stepped => {
  const { kind, text } = content;
  if (kind === "text" && text === "") return [state, none];
  const shows = kind === "text" ? "text" : "reasoning";
  const progress = kind === "text" ? "output" : "reasoning";
  return [state, { ...none, progress, shows, characters: text.length }, text === "" ? nothing : [content]];
};

const signal = (call: Call, ordinal: number, phase: CallSignal["phase"]): CallSignal => ({
  ...{ choice: 0, ordinal, executor: "runtime", phase },
  ...(call.id === "" ? {} : { id: label(call.id) }),
  ...(call.tool === "" ? {} : { tool: label(call.tool) }),
});

const output: Observation = { ...none, progress: "output" };

const onCallStart = (state: State, index: unknown, given: Json.JsonRecord): Stepped => {
  const called = Json.record(given.function) ?? {};
  const call: Call = {
    ...{ index: Json.natural(index) ?? state.calls.length, id: Json.string(given.id), open: true },
    ...{ tool: Json.string(called.name), input: Json.string(called.arguments) },
  };
  const content = callNote(given, state.calls.length);
  const calls = [signal(call, state.calls.length, "input_started")];
  const next = withArguments({ ...state, calls: [...state.calls, call] }, call.input.length);
  if (next.calls.length <= callsMax) return [next, { ...output, calls }, content];
  return [fail(next, oversize), { ...output, calls, failure: oversize }, content];
};

const oversize: Failure = { kind: "protocol", reason: "oversize" };

/** An id that is longer than a label is kept whole, because a result is sent back under it. */
const callNote = ({ id: own }: Json.JsonRecord, ordinal: number): ReadonlyArray<Content> => {
  const text = Json.string(own);
  if (label(text) === text) return nothing;
  const item = { type: "note", json: { ordinal, id: text } } as const;
  return [{ kind: "item", choice: 0, key: single, text: "", item }];
};

const withArguments = (state: State, characters: number): State => ({
  ...state,
  argumentCharacters: state.argumentCharacters + characters,
});

/** Returns the place of the open call with this index; the last open call if none has it. */
const placeOf = ({ calls }: State, index: unknown): number => {
  const own = calls.findLastIndex((call) => call.open && call.index === index);
  return own === -1 ? calls.findLastIndex(({ open }) => open) : own;
};

const onCallDelta = (state: State, index: unknown, given: Json.JsonRecord): Stepped => {
  const at = placeOf(state, index);
  const call = state.calls[at];
  const piece = Json.string(Json.record(given.function)?.arguments);
  if (call === undefined) return [state, none];
  const grown = { ...call, input: call.input + piece };
  const next = withArguments({ ...state, calls: state.calls.with(at, grown) }, piece.length);
  if (next.argumentCharacters <= argumentCharactersMax) return [next, output];
  return [fail(next, oversize), { ...output, failure: oversize }];
};

const onCallEnd = (state: State, index: unknown): Stepped => {
  const at = placeOf(state, index);
  const call = state.calls[at];
  if (call === undefined) return [state, none];
  const closed = { ...call, open: false };
  const next = { ...state, calls: state.calls.with(at, closed) };
  const input = inputOf(call);
  if (input === undefined) return [next, { ...output, calls: [signal(closed, at, "input_complete")] }];
  return [next, { ...output, calls: [{ ...signal(closed, at, "ready"), input }] }];
};

/** Returns the arguments of a call; `{}` for a tool without parameters; undefined if they cannot be parsed. */
const inputOf = ({ input }: Call): string | undefined => {
  const text = input.trim() === "" ? "{}" : input;
  return Json.parse(text) === undefined ? undefined : text;
};

const onEnd = (state: State, delta: Json.JsonRecord, carrier: unknown): Stepped => {
  const reason = Payload.readReason(delta.finish_reason);
  const usage = usageOf(Json.record(delta.usage) ?? {});
  const counted = usage === undefined ? none : { ...none, usage };
  if (state.terminal || state.failure !== undefined) return [state, counted];
  const ending = ChatFinish.endingOf(reason);
  if (Payload.isError(delta.error) || ending === "failed") {
    const failure = Payload.isError(delta.error)
      ? (classifyEvent({ error: delta.error, id: carrier }) ?? serverError)
      : ChatFinish.failureOf(reason);
    return [fail(state, failure), { ...counted, failure }];
  }
  if (reason === "") return [state, counted];
  const marked: Observation = { ...counted, terminal: true, closes: "later", finish: label(reason) };
  const broken = ending === "whole" && state.calls.some((call) => call.open || inputOf(call) === undefined);
  if (!broken) return [{ ...state, terminal: true }, marked];
  const failure: Failure = { kind: "invalid_tool_input", in_band: true, code: incompleteCall };
  return [fail(state, failure), { ...marked, failure }];
};

/** Reads the tokens that the model used or, if they are missing, the billed tokens. */
const usageOf = ({ billed_units, tokens }: Json.JsonRecord): Observation["usage"] => {
  const counts = Json.record(tokens) ?? Json.record(billed_units) ?? {};
  return Payload.usage(counts.input_tokens, counts.output_tokens);
};
