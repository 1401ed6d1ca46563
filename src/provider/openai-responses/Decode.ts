/**
 * Decodes streams of OpenAI Responses, including those of other servers that use this protocol (Azure, xAI, OpenRouter, Copilot, local
 * servers).
 *
 * Terminal rule: the terminal marker is `response.completed` or `response.incomplete`, or the `response.done` that older servers send for
 * both. The first one counts and later events change nothing, including OpenRouter's `[DONE]`. `response.failed`, `response.cancelled`,
 * `error`, and a final response with an error are never the marker, and no marker counts after one of them. A second `response.created`
 * before output is a harmless repeat. After output it means that two responses were spliced together, which is damage.
 */
import { type Failure, incompleteCall } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import * as Observation from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import { type Content, lengthOf, nothing } from "../stream/Content.ts";
import { done, isBlank, isError, unparsedObservation, usage } from "../stream/Payload.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { End, Observed, Protocol, SseEvent } from "../stream/Protocol.ts";
import * as ResponsesOutput from "./Calls.ts";
import * as ResponsesContent from "./Content.ts";
import * as ResponsesSlots from "./Slots.ts";

// state

/** The immutable state of the decoder between two events. */
export interface State {
  readonly created: boolean;
  readonly output: ResponsesSlots.Output;
  /** The end by the terminal marker or by a failure, whichever arrived first. */
  readonly end: End | undefined;
}

const start: State = { created: false, output: ResponsesSlots.none, end: undefined };

/** The state before the first event. */
export const initial = (): State => start;

// step, halt, observe

/** The protocol's id. */
export const id = "openai-responses";

type Part = Stream.Part<typeof id>;

/** Folds one event into the state, and returns the event as a part with its observation. */
export const step = (state: State, event: SseEvent): readonly [State, Part] => {
  const parsed = event.data === done ? undefined : Json.parse(event.data);
  const [next, observation, content = nothing] = fold(state, event, parsed);
  return [next, { protocol: id, event, json: parsed?.json, content, observation }];
};

/** Decides, when the bytes end, if the response is complete: only after `response.completed` or `response.incomplete`. */
export const halt = (state: State): End => state.end ?? { complete: false, failure: { kind: "truncated" } };

/** Returns the observation of a part. */
export const observe = (part: Observed): Observation.Observation => part.observation;

/**
 * OpenAI Responses.
 *
 * Complete when: `response.completed` or `response.incomplete` has come
 * Tolerated: a missing `output_item.added`, missing `event:` lines, a `[DONE]` after the end
 */
export const protocol: Protocol<State, typeof id> = { id, initial, step, halt, observe };

type Step = readonly [State, Observation.Observation, ReadonlyArray<Content>?];

const fold = (state: State, event: SseEvent, parsed: { readonly json: unknown } | undefined): Step => {
  const frame = Json.record(parsed?.json);
  if (isBlank(event.data) || isKeepAlive(event, frame)) return [state, Observation.ping];
  if (state.end !== undefined) return [state, observeLate(event, frame)];
  if (event.data === done) return [state, Observation.none];
  if (parsed === undefined) return stepWith(state, unparsedObservation(id, event));
  if (frame === undefined) return onOther(state, event, {});
  // Some servers put the type in the `event:` line only.
  return stepTyped(
    state,
    event,
    frame.type === undefined && event.event !== "message" ? { ...frame, type: event.event } : frame,
  );
};

const stepTyped = (state: State, event: SseEvent, frame: Json.JsonRecord): Step => {
  const { output } = state;
  switch (frame.type) {
    case "response.output_text.delta":
    case "response.refusal.delta":
    case "response.audio.transcript.delta":
    case "response.output_audio_transcript.delta":
      return take(state, ResponsesOutput.show(output, frame, ResponsesContent.readDelta(frame)));
    case "response.output_text.done":
    case "response.refusal.done":
      return take(state, ResponsesOutput.showWhole(output, frame, frame));
    case "response.content_part.added":
    case "response.content_part.done":
      return take(state, onPart(output, frame));
    case "response.audio.delta":
    case "response.output_audio.delta":
      return [state, Observation.text(0), ResponsesContent.readMedia(frame, false)];
    case "response.output_item.added":
      return take(state, ResponsesOutput.addItem(output, frame));
    case "response.output_item.done":
      return take(state, ResponsesOutput.applyDone(output, frame));
    case "response.output_text.annotation.added":
      return [state, ResponsesSlots.produced];
    case "response.created":
      return onCreated(state, frame);
    case "response.completed":
    case "response.incomplete":
    case "response.done":
      return onResponseEnd(state, frame);
    default:
      return onOther(state, event, frame);
  }
};

/** True for the keep-alive events of intermediate servers. They are not part of the API. */
const isKeepAlive = (event: SseEvent, frame: Json.JsonRecord | undefined): boolean =>
  event.event === "ping" ||
  frame?.type === "ping" ||
  frame?.type === "keepalive" ||
  frame?.type === "response.keepalive";

const stepWith = (state: State, observation: Observation.Observation): Step =>
  observation.failure === undefined ? [state, observation] : fail(state, observation.failure);

/**
 * Observes an event after the terminal marker or a failure. It is passed on but proves nothing. A late error is reported but does not
 * change the end.
 */
const observeLate = (event: SseEvent, frame: Json.JsonRecord | undefined): Observation.Observation => {
  const failure = frame && errorOf(event, frame);
  return failure === undefined ? Observation.none : Observation.failed(failure);
};

const take = (state: State, change: ResponsesSlots.Change): Step => {
  if (change === undefined) return fail(state, { kind: "protocol", reason: "oversize" });
  const [output, observation, said = nothing] = change;
  return [output === state.output ? state : { ...state, output }, observation, said];
};

const onCreated = (state: State, frame: Json.JsonRecord): Step => {
  if (state.created && !ResponsesSlots.isEmpty(state.output)) return failDamaged(state);
  const tools = Json.list(Json.record(frame.response)?.tools);
  const hostsXSearch = tools.some((tool) => Json.record(tool)?.type === "x_search");
  return [{ ...state, created: true, output: { ...state.output, hostsXSearch } }, Observation.lifecycle];
};

/**
 * Applies the start or the end of a content part. The end repeats the part's text. Reasoning is omitted, because `response.reasoning_text`
 * covers it.
 */
const onPart = (output: ResponsesSlots.Output, frame: Json.JsonRecord): ResponsesSlots.Change => {
  const content = Json.record(frame.part) ?? {};
  if (Json.string(content.type).startsWith("reasoning")) return [output, Observation.reasoning(0)];
  return ResponsesOutput.showWhole(output, frame, content);
};

/** Matches `response.<item type>_call[_<field>].<status>`. The events of all calls, including future ones, follow this pattern. */
const aboutCall = /^response\.([a-z_]*?_call)(?:_([a-z_]+))?\.([a-z_]+)$/;

const onOther = (state: State, event: SseEvent, frame: Json.JsonRecord): Step => {
  const type = Json.string(frame.type);
  const failure = errorOf(event, frame);
  if (failure !== undefined) return fail(state, failure);
  if (type.startsWith("response.reasoning")) {
    const said = ResponsesContent.readReasoning(frame);
    return [state, Observation.reasoning(lengthOf(said)), said];
  }
  const [, call, field = "", status = ""] = aboutCall.exec(type) ?? [];
  if (call === undefined) return [state, Observation.none];
  return take(state, ResponsesOutput.applyCallEvent(state.output, frame, call, field, status));
};

/**
 * The error in an event, in any of its shapes. An `error` next to the status of a call (for example of a hosted MCP server that failed)
 * belongs to that call and does not end the stream.
 */
const errorOf = (event: SseEvent, frame: Json.JsonRecord): Failure | undefined => {
  const type = Json.string(frame.type);
  if (type === "response.cancelled" || type === "response.canceled")
    return { kind: "cancelled", by: "provider", in_band: true };
  const plain = type === "error" || type === "response.failed";
  const named = plain || type === "response.error" || event.event === "error";
  const own = named || !type.startsWith("response.") ? frame.error : undefined;
  const error = [own, Json.record(frame.response)?.error].find(isError);
  if (!named && error === undefined) return type.startsWith("response.") ? undefined : classifyEvent(frame);
  // Wraps an error whose fields are directly in the event, or in a response that does not report that it failed.
  const boxed = plain ? frame : { error: error ?? frame };
  return classifyEvent(boxed) ?? { kind: "server_error", in_band: true };
};

// the end

const onResponseEnd = (state: State, frame: Json.JsonRecord): Step => {
  const response = Json.record(frame.response) ?? {};
  const failure = finalFailure(frame, response);
  if (failure !== undefined) return fail(state, failure);
  const reason = Json.string(Json.record(response.incomplete_details)?.reason);
  const complete = frame.type !== "response.incomplete" && response.status !== "incomplete";
  const change = ResponsesOutput.applyFinal(state.output, response, complete);
  if (change === undefined) return fail(state, { kind: "protocol", reason: "oversize" });
  const [{ broken }, seen, said = nothing] = change;
  const told = Json.record(response.usage);
  const totals = usage(told?.input_tokens, told?.output_tokens);
  const observation: Observation.Observation = {
    ...seen,
    terminal: true,
    finish: label(reason || (complete ? "completed" : "incomplete")),
    ...(totals === undefined ? {} : { usage: totals }),
  };
  const ended = { ...state, output: ResponsesSlots.none };
  // If a limit or a filter ended the response, the call may only be incomplete. If the response ended by itself, the model wrote a call
  // that cannot be parsed.
  if (!complete || !broken) return [{ ...ended, end: { complete: true } }, observation, said];
  const invalid = { kind: "invalid_tool_input", in_band: true, code: incompleteCall } as const;
  return [{ ...ended, end: { complete: false, failure: invalid } }, { ...observation, failure: invalid }, said];
};

/** The failure in a final response that carries an error or reports that it failed. Such a response is not the terminal marker. */
const finalFailure = (frame: Json.JsonRecord, response: Json.JsonRecord): Failure | undefined => {
  if (response.status === "cancelled" || response.status === "canceled")
    return { kind: "cancelled", by: "provider", in_band: true };
  const error = [frame.error, response.error].find(isError);
  if (error === undefined && response.status !== "failed") return undefined;
  return (error !== undefined ? classifyEvent({ error }) : undefined) ?? { kind: "server_error", in_band: true };
};

const fail = (state: State, failure: Failure): Step => [
  { ...state, output: ResponsesSlots.none, end: { complete: false, failure } },
  Observation.failed(failure),
];

const failDamaged = (state: State): Step => fail(state, { kind: "protocol", reason: "damaged_frame" });
