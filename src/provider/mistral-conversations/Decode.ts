/**
 * Decodes streams of Mistral's `/v1/conversations` (docs.mistral.ai, "Agents & Conversations"; the events are `ConversationEvents` of
 * Mistral's own SDKs).
 *
 * Terminal rule (law L5): `conversation.response.done` is the marker, and has no finish reason. An error arrives as
 * `conversation.response.error` and ends the response.
 *
 * The pieces of a call are complete only with the marker, because no event ends a call.
 */
import { type Failure, incompleteCall } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type CallSignal, failed, none, type Observation } from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import { type Content, nothing, single } from "../stream/Content.ts";
import * as Payload from "../stream/Payload.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { End, Observed, Protocol, SseEvent } from "../stream/Protocol.ts";

/** Maximum calls of one stream. */
export const callsMax = 512;

/** Maximum argument text gathered over all calls of a stream, in UTF-16 code units. */
export const argumentCharactersMax = 16 * 1024 * 1024;

/** A call as gathered so far. */
interface Call {
  /** The id of its entry, which all of its events have. */
  readonly entry: string;
  readonly id: string;
  readonly tool: string;
  readonly executor: CallSignal["executor"];
  readonly input: string;
  readonly settled: boolean;
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
export const id = "mistral-conversations";

type Part = Stream.Part<typeof id>;
type Stepped = readonly [State, Observation, ReadonlyArray<Content>?];

/** Folds one event into the state. */
export const step = (state: State, event: SseEvent): readonly [State, Part] => {
  if (Payload.isDone(event.data)) {
    const observation: Observation = { ...none, quiet: true };
    return [state, { protocol: id, event, json: undefined, content: nothing, observation }];
  }
  const parsed = Json.parse(event.data);
  if (parsed === undefined) {
    const observation = /^(?:conversation|message|tool|function|agent)\./.test(event.event)
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
 * Mistral Conversations.
 *
 * Complete when: `conversation.response.done`
 * Tolerated: a `[DONE]` after it
 */
export const protocol: Protocol<State, typeof id> = { id, initial, step, halt, observe };

/** Records a failure. An error after the terminal marker changes nothing. */
const fail = (state: State, failure: Failure | undefined): State =>
  state.terminal || state.failure !== undefined || failure === undefined ? state : { ...state, failure };

const serverError: Failure = { kind: "server_error", in_band: true };

const errorOf = (event: SseEvent, json: Json.JsonRecord): Failure | undefined => {
  const named = event.event === "error" || json.type === "conversation.response.error" || json.object === "error";
  if (!named && !Payload.isError(json.error)) return undefined;
  const { code, message } = json;
  return classifyEvent(Payload.isError(json.error) ? json : { error: { code, message } }) ?? serverError;
};

const onEvent = (state: State, event: Json.JsonRecord): Stepped => {
  switch (event.type) {
    case "message.output.delta":
      return onMessage(state, event);
    case "function.call.delta":
      return onCall(state, event, "runtime");
    case "tool.execution.started":
      return onCall(state, event, "provider");
    case "tool.execution.done":
      return onExecuted(state, Json.string(event.id));
    case "conversation.response.done":
      return onEnd(state, Json.record(event.usage) ?? {});
    default:
      return [state, none];
  }
};

const textItem = { type: "text", field: "text" } as const;
const thoughtItem = { type: "reasoning", field: "thinking" } as const;

const onMessage = (state: State, { content, id: entry }: Json.JsonRecord): Stepped => {
  const chunks =
    typeof content === "string" ? [{ type: "text", text: content }] : Array.isArray(content) ? content : [content];
  const said = chunks.flatMap((it) => contentOf(Json.record(it) ?? {}, Json.string(entry)));
  const shows = said.some(({ kind }) => kind !== "reasoning") ? "text" : "reasoning";
  if (said.length === 0) return [state, none];
  const counted = said.filter(({ kind }) => (kind === "reasoning") === (shows === "reasoning"));
  const characters = counted.reduce((sum, { text }) => sum + text.length, 0);
  return [state, { ...none, progress: shows === "text" ? "output" : "reasoning", shows, characters }, said];
};

const contentOf = (chunk: Json.JsonRecord, entry: string): ReadonlyArray<Content> => {
  switch (chunk.type) {
    case "text": {
      const text = Json.string(chunk.text);
      return text === "" ? [] : [{ kind: "text", choice: 0, key: `text ${entry}`, text, item: textItem }];
    }
    case "thinking": {
      const { thinking } = chunk;
      const texts =
        typeof thinking === "string" ? [thinking] : Json.list(thinking).map((it) => Json.string(Json.record(it)?.text));
      return [{ kind: "reasoning", choice: 0, key: `thinking ${entry}`, text: texts.join(""), item: thoughtItem }];
    }
    case "tool_file":
    case "image_url":
    case "document_url":
      return [{ kind: "media", choice: 0, key: `file ${entry}`, text: "" }];
    default:
      return [];
  }
};

const signal = (call: Call, ordinal: number, phase: CallSignal["phase"]): CallSignal => ({
  ...{ choice: 0, ordinal, executor: call.executor, phase },
  ...(call.id === "" ? {} : { id: label(call.id) }),
  ...(call.tool === "" ? {} : { tool: label(call.tool) }),
});

const output: Observation = { ...none, progress: "output" };

/** Adds a piece of a call. The first one begins it, and the whole of a tool of Mistral's arrives at once. */
const onCall = (state: State, given: Json.JsonRecord, executor: CallSignal["executor"]): Stepped => {
  const own = Json.string(given.tool_call_id);
  const entry = Json.string(given.id) || own;
  const at = state.calls.findIndex((call) => call.executor === executor && call.entry === entry && !call.settled);
  const known = state.calls[at];
  const written = given.arguments;
  const piece = typeof written === "string" ? written : written === undefined ? "" : JSON.stringify(written);
  const call: Call = {
    ...{ entry, executor, settled: false, id: known?.id ?? (own || entry), input: (known?.input ?? "") + piece },
    tool: known?.tool ?? Json.string(given.name),
  };
  const calls = known === undefined ? [...state.calls, call] : state.calls.with(at, call);
  const next = { ...state, calls, argumentCharacters: state.argumentCharacters + piece.length };
  const begun = known === undefined ? [signal(call, calls.length - 1, "input_started")] : [];
  const isOversize = calls.length > callsMax || next.argumentCharacters > argumentCharactersMax;
  if (isOversize) return [fail(next, oversize), { ...output, calls: begun, failure: oversize }];
  return [next, { ...output, calls: begun }, known === undefined ? noteOf(call, calls.length - 1) : nothing];
};

const oversize: Failure = { kind: "protocol", reason: "oversize" };

/** Keeps what a signal cannot: an id that is longer than a label, and that a tool of Mistral's was called. */
const noteOf = ({ executor, id: own }: Call, ordinal: number): ReadonlyArray<Content> => {
  if (executor === "provider")
    return [{ kind: "item", choice: 0, key: `hosted ${ordinal}`, text: "", item: { type: "hosted", json: {} } }];
  if (label(own) === own) return nothing;
  return [{ kind: "item", choice: 0, key: single, text: "", item: { type: "note", json: { ordinal, id: own } } }];
};

const onExecuted = (state: State, entry: string): Stepped => {
  const at = state.calls.findIndex((call) => call.executor === "provider" && !call.settled && call.entry === entry);
  const call = state.calls[at];
  if (call === undefined) return [state, output];
  const calls = state.calls.with(at, { ...call, settled: true });
  return [
    { ...state, calls },
    { ...output, calls: [signal(call, at, "settled")] },
  ];
};

/** Returns the arguments of a call; `{}` for a function without parameters; undefined if they cannot be parsed. */
const inputOf = ({ input }: Call): string | undefined => {
  const text = input.trim() === "" ? "{}" : input;
  return Json.parse(text) === undefined ? undefined : text;
};

const onEnd = (state: State, usage: Json.JsonRecord): Stepped => {
  const counts = Payload.usage(usage.prompt_tokens, usage.completion_tokens);
  const counted = counts === undefined ? none : { ...none, usage: counts };
  if (state.terminal || state.failure !== undefined) return [state, counted];
  const calls = state.calls.flatMap((call, at): ReadonlyArray<CallSignal> => {
    if (call.executor === "provider") return [];
    const input = inputOf(call);
    return [input === undefined ? signal(call, at, "input_complete") : { ...signal(call, at, "ready"), input }];
  });
  const seen = calls.length === 0 ? counted : { ...counted, progress: "output" as const, calls };
  const marked: Observation = { ...seen, terminal: true, finish: "done" };
  if (calls.every(({ phase }) => phase === "ready")) return [{ ...state, terminal: true }, marked];
  return [fail(state, callUnread), { ...marked, failure: callUnread }];
};

const callUnread: Failure = { kind: "invalid_tool_input", in_band: true, code: incompleteCall };
