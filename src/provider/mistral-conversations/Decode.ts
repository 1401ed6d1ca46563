/**
 * Decodes streams of Mistral's `/v1/conversations` (docs.mistral.ai, "Agents & Conversations"; the events are `ConversationEvents` of
 * Mistral's own SDKs).
 *
 * Terminal rule (law L5): `conversation.response.done` is the marker, and has no finish reason. An error arrives as
 * `conversation.response.error` and ends the response.
 *
 * The pieces of a call are complete only with the marker, because no event ends a call.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { none, type Observation } from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import type { Content } from "../stream/Content.ts";
import * as Events from "../stream/EventProtocol.ts";
import { output, serverError } from "../stream/EventProtocol.ts";
import * as Payload from "../stream/Payload.ts";
import type { SseEvent } from "../stream/Protocol.ts";

/** A call as gathered so far. */
interface Call extends Events.Call {
  /** The id of its entry, which all of its events have. */
  readonly entry: string;
  readonly settled: boolean;
}

/** The state of the decoder. */
export interface State extends Events.State<Call> {}

type Step = Events.Step<State>;

const errorOf = (event: SseEvent, json: Json.JsonRecord): Failure | undefined => {
  const named = event.event === "error" || json.type === "conversation.response.error" || json.object === "error";
  if (!named && !Payload.isError(json.error)) return undefined;
  const { code, message } = json;
  return classifyEvent(Payload.isError(json.error) ? json : { error: { code, message } }) ?? serverError;
};

const onEvent = (state: State, event: Json.JsonRecord): Step => {
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

const onMessage = (state: State, { content, id: entry }: Json.JsonRecord): Step => {
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

/** Adds a piece of a call. The first one begins it, and the whole of a tool of Mistral's arrives at once. */
const onCall = (state: State, given: Json.JsonRecord, executor: Call["executor"]): Step => {
  const own = Json.string(given.tool_call_id);
  const entry = Json.string(given.id) || own;
  const known = state.calls.findIndex((call) => call.executor === executor && call.entry === entry && !call.settled);
  const before = state.calls[known];
  const written = given.arguments;
  const piece = typeof written === "string" ? written : written === undefined ? "" : JSON.stringify(written);
  const call: Call = {
    ...{ entry, executor, settled: false, id: before?.id ?? (own || entry), input: (before?.input ?? "") + piece },
    tool: before?.tool ?? Json.string(given.name),
  };
  if (before !== undefined) return Events.putCall(state, known, call, piece.length);
  const at = state.calls.length;
  const seen = { ...output, calls: [Events.signal(call, at, "input_started")] };
  return Events.putCall(state, at, call, piece.length, seen, Events.notesOf(call, at));
};

const onExecuted = (state: State, entry: string): Step => {
  const at = state.calls.findIndex((call) => call.executor === "provider" && !call.settled && call.entry === entry);
  const call = state.calls[at];
  if (call === undefined) return [state, output];
  const calls = state.calls.with(at, { ...call, settled: true });
  return [
    { ...state, calls },
    { ...output, calls: [Events.signal(call, at, "settled")] },
  ];
};

const onEnd = (state: State, usage: Json.JsonRecord): Step => {
  const counts = Payload.usage(usage.prompt_tokens, usage.completion_tokens);
  const counted = counts === undefined ? none : { ...none, usage: counts };
  if (state.terminal || state.failure !== undefined) return [state, counted];
  const calls = state.calls.flatMap((call, at) =>
    call.executor === "provider" ? [] : [Events.completeCall(call, at)],
  );
  const seen = calls.length === 0 ? counted : { ...counted, progress: "output" as const, calls };
  const marked: Observation = { ...seen, terminal: true, finish: "done" };
  return Events.complete(state, marked, !calls.every(({ phase }) => phase === "ready"));
};

/**
 * Mistral Conversations.
 *
 * Complete when: `conversation.response.done`
 * Tolerated: a `[DONE]` after it
 */
export const protocol = Events.eventProtocol({
  id: "mistral-conversations",
  initial: Events.initial<Call>,
  names: /^(?:conversation|message|tool|function|agent)\./,
  errorOf,
  onEvent,
});
