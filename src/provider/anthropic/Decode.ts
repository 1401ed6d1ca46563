/**
 * Decodes streams of Anthropic Messages, also of other servers that speak it (Bedrock, Vertex, gateways).
 *
 * Terminal rule: the `stop_reason` of a `message_delta`. The first one wins and what follows changes nothing. `message_stop`
 * proves nothing on its own: gateways write it behind a truncated stream. After an `error` event no marker counts. A second
 * `message_start` after content is two responses spliced together, which the provider's own SDKs refuse too: damage. Before
 * content it is a harmless repeat.
 */
import { type Failure, incompleteCall } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import * as Observation from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import { type Content, lengthOf, nothing } from "../stream/Content.ts";
import { done, isBlank, reason as reasonOf, unparsedNamed } from "../stream/Payload.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { End, Observed, Protocol, SseEvent } from "../stream/Protocol.ts";
import * as AnthropicCalls from "./Calls.ts";
import * as AnthropicContent from "./Content.ts";

// state

/** The fold's state, immutable. */
export interface State {
  readonly started: boolean;
  /** A content block began. */
  readonly content: boolean;
  readonly calls: AnthropicCalls.Calls;
  readonly usage: Observation.Usage;
  /** The marker or the failure, whichever came first. */
  readonly end: End | undefined;
}

const start: State = { started: false, content: false, calls: AnthropicCalls.none, usage: {}, end: undefined };

/** The state before the first event. */
export const initial = (): State => start;

// step, halt, observe

/** The protocol's id. */
export const id = "anthropic-messages";

type Part = Stream.Part<typeof id>;

/** Takes one event: the next state, and the event as a part with what it proves. */
export const step = (state: State, event: SseEvent): readonly [State, Part] => {
  const parsed = event.data === done ? undefined : Json.parse(event.data);
  const [next, observation, content = nothing] = fold(state, event, parsed);
  return [next, { protocol: id, event, json: parsed?.json, content, observation }];
};

/** What the end of the bytes means: complete only after a `stop_reason`. */
export const halt = (state: State): End => state.end ?? { complete: false, failure: { kind: "truncated" } };

/** What a part proves. */
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
    return [state, (frame?.type ?? event.event) === "message_stop" ? last : late(event, frame)];
  // Gateways that translate from chat may close with its sentinel: here it is evidence of nothing.
  if (event.data === done) return [state, Observation.none];
  if (parsed === undefined) return plain(state, unparsedNamed(id, event));
  if (frame === undefined) return other(state, event, {});
  // Some servers say the type in the `event:` line alone.
  switch (frame.type ?? event.event) {
    case "content_block_delta":
      return delta(state, frame);
    case "content_block_start":
      return opened(state, frame);
    case "content_block_stop":
      return closed(state, indexOf(frame));
    case "message_start":
      return started(state, frame);
    case "message_delta":
      return finished(state, frame);
    case "message_stop":
      return [state, Observation.lifecycle];
    default:
      return other(state, event, frame);
  }
};

/** The protocol's last event. */
const last: Observation.Observation = { ...Observation.lifecycle, closes: "now" };

/** Data that is no JSON. */
const plain = (state: State, observation: Observation.Observation): Step =>
  observation.failure === undefined ? [state, observation] : fail(state, observation.failure);

/** After the marker or a failure parts pass through and prove nothing; a late error is named and changes nothing. */
const late = (event: SseEvent, frame: Json.JsonRecord | undefined): Observation.Observation => {
  const failure = frame && errorOf(event, frame);
  return failure === undefined ? Observation.none : Observation.failed(failure);
};

/** An error, or an unknown event. */
const other = (state: State, event: SseEvent, frame: Json.JsonRecord): Step => {
  const failure = errorOf(event, frame);
  return failure === undefined ? [state, Observation.none] : fail(state, failure);
};

/** The error that an event carries, in any of its shapes. */
const errorOf = (event: SseEvent, frame: Json.JsonRecord): Failure | undefined => {
  const named = frame.type === "error" || event.event === "error";
  if (!named && !frame.error) return undefined;
  return classifyEvent(frame.error || !named ? frame : { error: frame }) ?? { kind: "server_error", in_band: true };
};

const started = (state: State, frame: Json.JsonRecord): Step => {
  if (state.started && state.content) return damaged(state);
  return withUsage({ ...state, started: true }, Json.record(frame.message)?.usage, Observation.lifecycle);
};

// content

const opened = (state: State, frame: Json.JsonRecord): Step => {
  const block = Json.record(frame.content_block) ?? {};
  const type = Json.string(block.type);
  const next = state.content ? state : { ...state, content: true };
  const index = indexOf(frame);
  const said = AnthropicContent.opened(index, block);
  if (type === "text") return [next, visible(said), said];
  if (type === "image") return [next, Observation.text(0), said];
  // A redacted or hidden thinking block has no deltas: that it opens is all the progress there is to see.
  if (type === "thinking" || type === "redacted_thinking") return [next, Observation.reasoning(lengthOf(said)), said];
  if (type.endsWith("tool_result")) return calls(next, AnthropicCalls.settle(next.calls, block), produced, said);
  if (type.endsWith("tool_use")) {
    const change = AnthropicCalls.begin(next.calls, index, block);
    return calls(
      next,
      change,
      produced,
      type === "tool_use" ? AnthropicContent.called(change?.[1] ?? [], block) : said,
    );
  }
  // compaction, container_upload, fallback and what comes next: produced, and not known to be visible.
  return [next, produced];
};

const delta = (state: State, frame: Json.JsonRecord): Step => {
  const change = Json.record(frame.delta) ?? {};
  const index = indexOf(frame);
  const said = AnthropicContent.grown(index, change);
  switch (change.type) {
    case "text_delta":
      return [state, visible(said), said];
    case "thinking_delta":
      return [state, Observation.reasoning(lengthOf(said)), said];
    case "signature_delta":
      return [state, { ...Observation.none, progress: "reasoning" }, said];
    case "input_json_delta":
      return calls(state, AnthropicCalls.append(state.calls, index, Json.string(change.partial_json)), produced, said);
    default:
      return [state, produced, said];
  }
};

const closed = (state: State, index: string): Step =>
  calls(state, AnthropicCalls.close(state.calls, index), Observation.lifecycle, AnthropicContent.closed(index));

/** A block's index as text: servers send it as a number, as text, or leave it out. */
const indexOf = (frame: Json.JsonRecord): string => String(frame.index);

/** An empty text block is how text begins, and is no progress. */
const visible = (said: ReadonlyArray<Content>): Observation.Observation => {
  const characters = lengthOf(said);
  return characters === 0 ? Observation.lifecycle : Observation.text(characters);
};

/** Output that shows nothing by itself. */
const produced: Observation.Observation = { ...Observation.none, progress: "output" };

/** Takes a change of the calls; without a signal the part proves `otherwise`. */
const calls = (
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

const finished = (state: State, frame: Json.JsonRecord): Step => {
  const reason = reasonOf(Json.record(frame.delta)?.stop_reason);
  if (reason === "") return withUsage(state, frame.usage, { ...Observation.lifecycle, quiet: true });
  if (reason === "error") return fail(state, classifyEvent(frame) ?? { kind: "server_error", in_band: true });
  const marker: Observation.Observation = { ...Observation.terminal(label(reason)), closes: "required" };
  const completed: State = { ...state, calls: AnthropicCalls.none, end: { complete: true } };
  if (!vouches(reason)) return withUsage(completed, frame.usage, marker);
  const { ready, broken } = AnthropicCalls.finish(state.calls);
  const observation =
    ready.length === 0 ? marker : { ...marker, ...Observation.calls(ready), terminal: true, finish: label(reason) };
  if (!broken) return withUsage(completed, frame.usage, observation);
  const failure = { kind: "invalid_tool_input", in_band: true, code: incompleteCall } as const;
  return withUsage({ ...completed, end: { complete: false, failure } }, frame.usage, { ...observation, failure });
};

/**
 * These say that the model ended its calls itself; a limit, a refusal or a pause may have cut one. The last three are of
 * gateways that translate from chat and keep its words.
 */
const vouching: ReadonlySet<string> = new Set(["tool_use", "end_turn", "tool_calls", "stop", "function_call"]);
const vouches = (reason: string): boolean => vouching.has(reason);

const fail = (state: State, failure: Failure): Step => [
  { ...state, calls: AnthropicCalls.none, end: { complete: false, failure } },
  Observation.failed(failure),
];

const damaged = (state: State): Step => fail(state, { kind: "protocol", reason: "damaged_frame" });

/** Totals so far. Input is the sum of the uncached and both cached counts; some servers repeat it as 0 at the end. */
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
