/**
 * Decodes streams of Cohere's `/v2/chat` (docs.cohere.com, "A Guide to Streaming Responses" and "Streaming for tool use").
 *
 * Terminal rule (law L5): `message-end` with a finish reason is the marker. The reasons `ERROR` and `TIMEOUT`, and any reason with an
 * `error`, mean that the server aborted, so they are never the marker. The `[DONE]` after the marker is optional.
 *
 * The arguments of a call arrive in pieces, and `tool-call-end` completes them. A limit may cut the last call before that event.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { none, type Observation } from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import * as ChatFinish from "../openai-chat/Finish.ts";
import { type Content, nothing } from "../stream/Content.ts";
import * as Events from "../stream/EventProtocol.ts";
import { fail, output, serverError } from "../stream/EventProtocol.ts";
import * as Payload from "../stream/Payload.ts";
import type { SseEvent } from "../stream/Protocol.ts";

/** A call as gathered so far. `open` is true until `tool-call-end`. */
interface Call extends Events.Call {
  /** The `index` of its events. */
  readonly index: number;
  readonly open: boolean;
}

/** The state of the decoder. */
export interface State extends Events.State<Call> {}

type Step = Events.Step<State>;

/** Cohere's own errors are `{ message }`, without the `type` that every event has. */
const errorOf = (event: SseEvent, json: Json.JsonRecord): Failure | undefined => {
  const named = event.event === "error" || json.type === "error";
  const bare = json.type === undefined && typeof json.message === "string";
  if (!named && !bare && !Payload.isError(json.error)) return undefined;
  return classifyEvent(Payload.isError(json.error) ? json : { error: json }) ?? serverError;
};

const onEvent = (state: State, event: Json.JsonRecord): Step => {
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

const onContent = (state: State, { text, thinking, type }: Json.JsonRecord, index: number): Step => {
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
const showContent = (state: State, content: Content): Step => {
  const { kind, text } = content;
  if (kind === "text" && text === "") return [state, none];
  const shows = kind === "text" ? "text" : "reasoning";
  const progress = kind === "text" ? "output" : "reasoning";
  return [state, { ...none, progress, shows, characters: text.length }, text === "" ? nothing : [content]];
};

const onCallStart = (state: State, index: unknown, given: Json.JsonRecord): Step => {
  const called = Json.record(given.function) ?? {};
  const at = state.calls.length;
  const call: Call = {
    ...{ index: Json.natural(index) ?? at, id: Json.string(given.id), executor: "runtime", open: true },
    ...{ tool: Json.string(called.name), input: Json.string(called.arguments) },
  };
  const seen = { ...output, calls: [Events.signal(call, at, "input_started")] };
  return Events.putCall(state, at, call, call.input.length, seen, Events.notesOf(call, at));
};

/** Returns the place of the open call with this index; the last open call if none has it. */
const placeOf = ({ calls }: State, index: unknown): number => {
  const own = calls.findLastIndex((call) => call.open && call.index === index);
  return own === -1 ? calls.findLastIndex(({ open }) => open) : own;
};

const onCallDelta = (state: State, index: unknown, given: Json.JsonRecord): Step => {
  const at = placeOf(state, index);
  const call = state.calls[at];
  const piece = Json.string(Json.record(given.function)?.arguments);
  if (call === undefined) return [state, none];
  return Events.putCall(state, at, { ...call, input: call.input + piece }, piece.length);
};

const onCallEnd = (state: State, index: unknown): Step => {
  const at = placeOf(state, index);
  const call = state.calls[at];
  if (call === undefined) return [state, none];
  const closed = { ...call, open: false };
  return [
    { ...state, calls: state.calls.with(at, closed) },
    { ...output, calls: [Events.completeCall(closed, at)] },
  ];
};

const onEnd = (state: State, delta: Json.JsonRecord, carrier: unknown): Step => {
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
  const isRead = (call: Call): boolean => !call.open && Events.readInput(call) !== undefined;
  return Events.complete(state, marked, ending === "whole" && !state.calls.every(isRead));
};

/** Reads the tokens that the model used or, if they are missing, the billed tokens. */
const usageOf = ({ billed_units, tokens }: Json.JsonRecord): Observation["usage"] => {
  const counts = Json.record(tokens) ?? Json.record(billed_units) ?? {};
  return Payload.usage(counts.input_tokens, counts.output_tokens);
};

/**
 * Cohere Chat, `/v2/chat`.
 *
 * Complete when: `message-end` with a finish reason of the model
 * Tolerated: no `[DONE]`
 */
export const protocol = Events.eventProtocol({
  id: "cohere-chat",
  initial: Events.initial<Call>,
  names: /^(?:message|content|tool|citation)-/,
  errorOf,
  onEvent,
});
