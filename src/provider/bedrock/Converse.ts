/**
 * Decodes `converse-stream` of Amazon Bedrock. Its events are those of Anthropic Messages under other names, so each is translated for that
 * decoder (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html).
 *
 * Terminal rule: the `stopReason` of `messageStop`. The usage follows in `metadata`. After an exception no `stopReason` counts.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import * as Observation from "../../domain/Observation.ts";
import * as Calls from "../anthropic/Calls.ts";
import * as Messages from "../anthropic/Decode.ts";
import { nothing } from "../stream/Content.ts";
import { makeFraming } from "../stream/EventStream.ts";
import { isBlank, unparsedPart } from "../stream/Payload.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { Protocol, SseEvent } from "../stream/Protocol.ts";
import { exceptionOf } from "./Exceptions.ts";

/** The protocol's id. */
export const id = "bedrock-converse";

type Part = Stream.Part<typeof id>;
type Step = readonly [Messages.State, Part];

/** Folds one event. If an event has no type, its only member names the type, as in Amazon's SDKs. */
const step = (state: Messages.State, event: SseEvent): Step => {
  const json = Json.parse(event.data)?.json;
  const failStep = (failure: Failure, more: Partial<Observation.Observation> = {}): Step => [
    { ...state, calls: Calls.none, end: state.end ?? { complete: false, failure } },
    { protocol: id, event, json, content: nothing, observation: { ...Observation.failed(failure), ...more } },
  ];
  const observeStep = (observation: Observation.Observation): Step => [
    state,
    { protocol: id, event, json, content: nothing, observation },
  ];
  const exception = exceptionOf(event);
  if (exception !== undefined) return failStep(exception);
  if (event.event === "ping" || isBlank(event.data)) return observeStep(Observation.ping);
  const member = event.event === "message" ? Object.entries(Json.record(json) ?? {})[0] : undefined;
  const name = member?.[0] ?? event.event;
  const frame = Json.record(member?.[1] ?? json);
  if (frame === undefined) {
    const { failure } = unparsedPart(id, { ...event, event: "message" }).observation;
    return failure === undefined ? observeStep(Observation.none) : failStep(failure);
  }
  if (name === "metadata") return observeStep(usageOf(frame));
  const malformed = name === "messageStop" ? malformedFailures.get(Json.string(frame.stopReason)) : undefined;
  if (malformed !== undefined) return failStep(malformed, { terminal: malformed.kind === "invalid_tool_input" });
  const [next, part] = Messages.step(markOpened(state, name), {
    event: "message",
    data: JSON.stringify(translate(name, frame)),
    bytes: event.bytes,
  });
  const { closes, ...observation } = part.observation;
  return [
    next,
    {
      ...{ protocol: id, event, json, content: part.content },
      // `metadata` usually follows the finish, but no client needs it.
      observation: closes === undefined ? observation : { ...observation, closes: "later" },
    },
  ];
};

/** Text begins without a `contentBlockStart`, so its first delta shows that the content has begun. */
const markOpened = (state: Messages.State, name: string): Messages.State =>
  state.content || name !== "contentBlockDelta" ? state : { ...state, content: true };

/** Finish reasons after which the model's output cannot be used. Another attempt may succeed. */
const malformedFailures: ReadonlyMap<string, Failure> = new Map([
  ["malformed_tool_use", { kind: "invalid_tool_input", in_band: true }],
  ["malformed_model_output", { kind: "server_error", in_band: true }],
]);

/** Translates an event to Anthropic's. An unknown event becomes one without a type, which shows nothing. */
const translate = (name: string, frame: Json.JsonRecord): object => {
  const index = frame.contentBlockIndex;
  switch (name) {
    case "messageStart":
      return { type: "message_start", message: { role: frame.role } };
    case "contentBlockStart":
      return { type: "content_block_start", index, content_block: blockOf(Json.record(frame.start) ?? {}) };
    case "contentBlockDelta": {
      const delta = Json.record(frame.delta) ?? {};
      const redacted = Json.record(delta.reasoningContent)?.redactedContent;
      return redacted === undefined
        ? { type: "content_block_delta", index, delta: deltaOf(delta) }
        : { type: "content_block_start", index, content_block: { type: "redacted_thinking", data: redacted } };
    }
    case "contentBlockStop":
      return { type: "content_block_stop", index };
    case "messageStop":
      return { type: "message_delta", delta: { stop_reason: frame.stopReason } };
    default:
      return {};
  }
};

const blockOf = (start: Json.JsonRecord): object => {
  const call = Json.record(start.toolUse);
  if (call !== undefined)
    return { type: Json.string(call.type) || "tool_use", id: call.toolUseId, name: call.name, input: {} };
  const result = Json.record(start.toolResult);
  if (result !== undefined) return { type: "tool_result", tool_use_id: result.toolUseId };
  return { type: start.image === undefined ? "" : "image" };
};

const deltaOf = ({ citation, reasoningContent, text, toolUse }: Json.JsonRecord): object => {
  if (text !== undefined) return { type: "text_delta", text };
  const call = Json.record(toolUse);
  if (call !== undefined) return { type: "input_json_delta", partial_json: call.input };
  const { signature, text: thinking } = Json.record(reasoningContent) ?? {};
  if (signature !== undefined) return { type: "signature_delta", signature };
  if (thinking !== undefined) return { type: "thinking_delta", thinking };
  return citation === undefined ? {} : { type: "citations_delta", citation };
};

/** Reads the token counts, of which the input excludes the cached tokens. */
const usageOf = ({ usage }: Json.JsonRecord): Observation.Observation => {
  const told = Json.record(usage);
  const input = Json.natural(told?.inputTokens);
  const output = Json.natural(told?.outputTokens);
  const cached = (Json.natural(told?.cacheReadInputTokens) ?? 0) + (Json.natural(told?.cacheWriteInputTokens) ?? 0);
  return {
    ...Observation.lifecycle,
    ...{ quiet: true, closes: "now" },
    usage: {
      ...(input === undefined ? {} : { input_tokens: input + cached }),
      ...(output === undefined ? {} : { output_tokens: output }),
    },
  };
};

/**
 * Amazon Bedrock's converse.
 *
 * Complete when: the `stopReason` of `messageStop` has come
 * Tolerated: a missing `metadata`
 */
export const protocol: Protocol<Messages.State, typeof id> = {
  id,
  framing: makeFraming(),
  initial: Messages.initial,
  step,
  halt: Messages.halt,
  observe: Messages.observe,
};
