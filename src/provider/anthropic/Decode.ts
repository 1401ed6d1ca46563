/**
 * Decodes streams of Anthropic Messages, including those of other servers that use this protocol (Bedrock, Vertex, gateways).
 *
 * Terminal rule: the `stop_reason` of a `message_delta`. The first one counts, and later events change nothing. `message_stop` alone proves
 * nothing, because gateways write it after a truncated stream. After an `error` event no `stop_reason` counts. A second `message_start`
 * before content is a harmless repeat. After content it means that two responses were spliced together; the provider's own SDKs refuse that
 * too, and it counts as damage.
 */
import { type Failure, incompleteCall } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import * as Observation from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import { type Content, lengthOf, nothing } from "../stream/Content.ts";
import { done, isBlank, readReason as reasonOf, unparsedObservation } from "../stream/Payload.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { End, Observed, Protocol, SseEvent } from "../stream/Protocol.ts";
import * as AnthropicCalls from "./Calls.ts";
import * as AnthropicContent from "./Content.ts";

// state

/** The immutable state of the decoder between two events. */
export interface State {
  readonly started: boolean;
  /** True after the first content block began. */
  readonly content: boolean;
  readonly calls: AnthropicCalls.Calls;
  readonly usage: Observation.Usage;
  /** The end by a `stop_reason` or by a failure, whichever arrived first. */
  readonly end: End | undefined;
}

const start: State = { started: false, content: false, calls: AnthropicCalls.none, usage: {}, end: undefined };

/** The state before the first event. */
export const initial = (): State => start;

// step, halt, observe

/** The protocol's id. */
export const id = "anthropic-messages";

type Part = Stream.Part<typeof id>;

/** Folds one event into the state, and returns the event as a part with its observation. */
export const step = (state: State, event: SseEvent): readonly [State, Part] => {
  const parsed = event.data === done ? undefined : Json.parse(event.data);
  const [next, observation, content = nothing] = fold(state, event, parsed);
  return [next, { protocol: id, event, json: parsed?.json, content, observation }];
};

/** Decides, when the bytes end, if the response is complete: only after a `stop_reason`. */
export const halt = (state: State): End => state.end ?? { complete: false, failure: { kind: "truncated" } };

/** Returns the observation of a part. */
export const observe = (part: Observed): Observation.Observation => part.observation;

/**
 * Anthropic Messages.
 *
 * Complete when: a `stop_reason` has come
 * Tolerated: a missing `message_stop`
 */
export const protocol: Protocol<State, typeof id> = { id, initial, step, halt, observe };

type Step = readonly [State, Observation.Observation, ReadonlyArray<Content>?];

const fold = (state: State, event: SseEvent, parsed: { readonly json: unknown } | undefined): Step => {
  const frame = Json.record(parsed?.json);
  if (frame?.type === "ping" || event.event === "ping" || isBlank(event.data)) return [state, Observation.ping];
  if (state.end !== undefined)
    return [state, (frame?.type ?? event.event) === "message_stop" ? last : observeLate(event, frame)];
  // Gateways that translate from Chat Completions may end with its sentinel `[DONE]`, which proves nothing here.
  if (event.data === done) return [state, Observation.none];
  if (parsed === undefined) return stepWith(state, unparsedObservation(id, event));
  if (frame === undefined) return onOther(state, event, {});
  // Some servers put the type in the `event:` line only.
  switch (frame.type ?? event.event) {
    case "content_block_delta":
      return onDelta(state, frame);
    case "content_block_start":
      return onBlockStart(state, frame);
    case "content_block_stop":
      return onBlockStop(state, indexOf(frame));
    case "message_start":
      return onMessageStart(state, frame);
    case "message_delta":
      return onMessageDelta(state, frame);
    case "message_stop":
      return [state, Observation.lifecycle];
    default:
      return onOther(state, event, frame);
  }
};

const last: Observation.Observation = { ...Observation.lifecycle, closes: "now" };

const stepWith = (state: State, observation: Observation.Observation): Step =>
  observation.failure === undefined ? [state, observation] : fail(state, observation.failure);

/**
 * Observes an event after the `stop_reason` or a failure. It is passed on but proves nothing. A late error is reported but does not change
 * the end.
 */
const observeLate = (event: SseEvent, frame: Json.JsonRecord | undefined): Observation.Observation => {
  const failure = frame && errorOf(event, frame);
  return failure === undefined ? Observation.none : Observation.failed(failure);
};

const onOther = (state: State, event: SseEvent, frame: Json.JsonRecord): Step => {
  const failure = errorOf(event, frame);
  return failure === undefined ? [state, Observation.none] : fail(state, failure);
};

const errorOf = (event: SseEvent, frame: Json.JsonRecord): Failure | undefined => {
  const named = frame.type === "error" || event.event === "error";
  if (!named && !frame.error) return undefined;
  return classifyEvent(frame.error || !named ? frame : { error: frame }) ?? { kind: "server_error", in_band: true };
};

const onMessageStart = (state: State, frame: Json.JsonRecord): Step => {
  if (state.started && state.content) return failDamaged(state);
  return withUsage({ ...state, started: true }, Json.record(frame.message)?.usage, Observation.lifecycle);
};

// content

const onBlockStart = (state: State, frame: Json.JsonRecord): Step => {
  const block = Json.record(frame.content_block) ?? {};
  const type = Json.string(block.type);
  const next = state.content ? state : { ...state, content: true };
  const index = indexOf(frame);
  const said = AnthropicContent.readStart(index, block);
  if (type === "text") return [next, observeVisible(said), said];
  if (type === "image") return [next, Observation.text(0), said];
  // A redacted or hidden thinking block has no deltas, so its start is the only visible progress.
  if (type === "thinking" || type === "redacted_thinking") return [next, Observation.reasoning(lengthOf(said)), said];
  if (type.endsWith("tool_result")) return applyCalls(next, AnthropicCalls.settle(next.calls, block), produced, said);
  if (type.endsWith("tool_use")) {
    const change = AnthropicCalls.begin(next.calls, index, block);
    return applyCalls(
      next,
      change,
      produced,
      type === "tool_use" ? AnthropicContent.readCall(change?.[1] ?? [], block) : said,
    );
  }
  // Compaction, container_upload, fallback and future types are output that is not known to be visible.
  return [next, produced];
};

const onDelta = (state: State, frame: Json.JsonRecord): Step => {
  const change = Json.record(frame.delta) ?? {};
  const index = indexOf(frame);
  const said = AnthropicContent.readDelta(index, change);
  switch (change.type) {
    case "text_delta":
      return [state, observeVisible(said), said];
    case "thinking_delta":
      return [state, Observation.reasoning(lengthOf(said)), said];
    case "signature_delta":
      return [state, { ...Observation.none, progress: "reasoning" }, said];
    case "input_json_delta":
      return applyCalls(
        state,
        AnthropicCalls.append(state.calls, index, Json.string(change.partial_json)),
        produced,
        said,
      );
    default:
      return [state, produced, said];
  }
};

const onBlockStop = (state: State, index: string): Step =>
  applyCalls(state, AnthropicCalls.close(state.calls, index), Observation.lifecycle, AnthropicContent.readStop(index));

/** Returns a block's index as a string. Servers send it as a number, as a string, or not at all. */
const indexOf = (frame: Json.JsonRecord): string => String(frame.index);

/** Observes visible content. A text block begins empty, and empty text is no progress. */
const observeVisible = (said: ReadonlyArray<Content>): Observation.Observation => {
  const characters = lengthOf(said);
  return characters === 0 ? Observation.lifecycle : Observation.text(characters);
};

const produced: Observation.Observation = { ...Observation.none, progress: "output" };

/** Applies a change of the calls. A part without a signal gets the observation `otherwise`. */
const applyCalls = (
  state: State,
  change: AnthropicCalls.Change,
  otherwise: Observation.Observation,
  said: ReadonlyArray<Content>,
): Step => {
  if (change === undefined) return fail(state, { kind: "protocol", reason: "oversize" });
  const [next, signals] = change;
  return [{ ...state, calls: next }, signals.length === 0 ? otherwise : Observation.calls(signals), said];
};

// the end

const onMessageDelta = (state: State, frame: Json.JsonRecord): Step => {
  const reason = reasonOf(Json.record(frame.delta)?.stop_reason);
  if (reason === "") return withUsage(state, frame.usage, { ...Observation.lifecycle, quiet: true });
  if (reason === "error") return fail(state, classifyEvent(frame) ?? { kind: "server_error", in_band: true });
  const marker: Observation.Observation = { ...Observation.terminal(label(reason)), closes: "required" };
  const completed: State = { ...state, calls: AnthropicCalls.none, end: { complete: true } };
  if (!isVouching(reason)) return withUsage(completed, frame.usage, marker);
  const { ready, broken } = AnthropicCalls.finish(state.calls);
  const observation =
    ready.length === 0 ? marker : { ...marker, ...Observation.calls(ready), terminal: true, finish: label(reason) };
  if (!broken) return withUsage(completed, frame.usage, observation);
  const failure = { kind: "invalid_tool_input", in_band: true, code: incompleteCall } as const;
  return withUsage({ ...completed, end: { complete: false, failure } }, frame.usage, { ...observation, failure });
};

/**
 * Stop reasons with which the model ended its calls itself. After any other reason (a limit, a refusal, a pause), a call may be incomplete.
 * The last three are Chat Completions reasons, from gateways that translate from there.
 */
const vouching: ReadonlySet<string> = new Set(["tool_use", "end_turn", "tool_calls", "stop", "function_call"]);
const isVouching = (reason: string): boolean => vouching.has(reason);

const fail = (state: State, failure: Failure): Step => [
  { ...state, calls: AnthropicCalls.none, end: { complete: false, failure } },
  Observation.failed(failure),
];

const failDamaged = (state: State): Step => fail(state, { kind: "protocol", reason: "damaged_frame" });

/**
 * Replaces the usage by newer running totals. The input is the sum of the uncached and both cached counts. Some servers report an input of
 * 0 in the last event.
 */
const withUsage = (state: State, value: unknown, observation: Observation.Observation): Step => {
  const told = Json.record(value);
  const input = Json.natural(told?.input_tokens);
  const output = Json.natural(told?.output_tokens);
  if (told === undefined || (input === undefined && output === undefined)) return [state, observation];
  const cached =
    (Json.natural(told.cache_creation_input_tokens) ?? 0) + (Json.natural(told.cache_read_input_tokens) ?? 0);
  const before = state.usage;
  const usage: Observation.Usage = {
    ...before,
    ...(input === undefined ? {} : { input_tokens: Math.max(before.input_tokens ?? 0, input + cached) }),
    ...(output === undefined ? {} : { output_tokens: Math.max(before.output_tokens ?? 0, output) }),
  };
  return [
    { ...state, usage },
    { ...observation, usage },
  ];
};
