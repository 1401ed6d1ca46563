/**
 * Decodes streams of Gemini's Interactions API (ai.google.dev/gemini-api/docs/interactions/streaming).
 *
 * Terminal rule (law L5): `interaction.completed` is the marker, unless its status says that the interaction failed, was cancelled or still
 * runs. The `[DONE]` after the marker is not needed.
 *
 * A response is a list of steps. `step.start` opens a step and may already have content, `step.delta` adds to it, and `step.stop` ends it.
 * Older revisions of the API name the same events `content.*`, `interaction.start` and `interaction.complete`, and send a call whole.
 */
import type { Failure } from "../../domain/Failure.ts";
import { mcpName } from "../../domain/HostedTools.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { none, type Observation } from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import { type Content, lengthOf, nothing } from "../stream/Content.ts";
import * as Events from "../stream/EventProtocol.ts";
import { fail, output, serverError } from "../stream/EventProtocol.ts";
import * as Payload from "../stream/Payload.ts";
import type { SseEvent } from "../stream/Protocol.ts";

/** A call as gathered so far. `open` is true until its step ends or, for a tool of Google's, until its result. */
interface Call extends Events.Call {
  /** The index of its step. */
  readonly index: number;
  /** The arguments with which the step began, as JSON. Pieces replace them. */
  readonly begun: string;
  readonly open: boolean;
}

/** The state of the decoder. */
export interface State extends Events.State<Call> {}

type Step = Events.Step<State>;

const errorOf = (event: SseEvent, json: Json.JsonRecord): Failure | undefined => {
  const named = event.event === "error" || json.event_type === "error";
  if (!named && !Payload.isError(json.error)) return undefined;
  return classifyEvent(Payload.isError(json.error) ? { error: json.error } : { error: json }) ?? serverError;
};

const onEvent = (state: State, event: Json.JsonRecord): Step => {
  const index = Json.natural(event.index) ?? state.calls.length;
  switch (event.event_type) {
    case "step.start":
    case "content.start":
      return onStart(state, index, Json.record(event.step ?? event.content) ?? {});
    case "step.delta":
    case "content.delta":
      return onDelta(state, index, Json.record(event.delta) ?? {});
    case "step.stop":
    case "content.stop":
      return onStop(state, index);
    case "interaction.completed":
    case "interaction.complete":
      return onEnd(state, Json.record(event.interaction) ?? {});
    case "interaction.status_update":
      return [state, { ...none, quiet: true }];
    default:
      return [state, none];
  }
};

const onStart = (state: State, index: number, given: Json.JsonRecord): Step => {
  const type = Json.string(given.type);
  if (type.endsWith("_call")) return onCall(state, index, type, given);
  if (type.endsWith("_result")) return onResult(state, given);
  if (type === "thought") {
    const said = thought(index, textsIn(given.summary), given.signature);
    return [state, { ...none, progress: "reasoning", shows: "reasoning", characters: lengthOf(said) }, said];
  }
  if (type === "model_output") return shown(state, index, Json.list(given.content));
  return type === "user_input" ? [state, none] : shown(state, index, [given]);
};

const onDelta = (state: State, index: number, given: Json.JsonRecord): Step => {
  const type = Json.string(given.type);
  if (type === "arguments_delta") return onArguments(state, index, Json.string(given.arguments));
  if (type === "thought_summary" || type === "thought_signature") {
    const said = thought(index, textsIn([given.content]), given.signature);
    return [state, { ...none, progress: "reasoning", shows: "reasoning", characters: lengthOf(said) }, said];
  }
  // Older revisions send a call whole, in the only delta of its step. Newer ones add details of a tool of Google's.
  if (type.endsWith("_call")) return onCall(state, index, type, given);
  if (type.endsWith("_result")) return onResult(state, given);
  return type.startsWith("text_annotation") ? [state, none] : shown(state, index, [given]);
};

const textsIn = (contents: unknown): string =>
  Json.list(contents)
    .map((it) => Json.string(Json.record(it)?.text))
    .join("");

const thought = (index: number, text: string, signature: unknown): ReadonlyArray<Content> => {
  const key = `thought ${index}`;
  const signed = Json.string(signature);
  const words: Content = { kind: "reasoning", choice: 0, key, text, item: { type: "reasoning", field: "summary" } };
  if (signed === "") return text === "" ? nothing : [words];
  const json = { signature: signed };
  return [{ ...words, item: { type: "reasoning", field: "summary", json } }];
};

const textItem = { type: "text", field: "text" } as const;

/** Observes content that the caller sees. Content that is not text is a picture, a sound or another file. */
const shown = (state: State, index: number, contents: ReadonlyArray<unknown>): Step => {
  const said = contents.flatMap((it): ReadonlyArray<Content> => {
    const content = Json.record(it) ?? {};
    if (content.type === "text") {
      const text = Json.string(content.text);
      return text === "" ? [] : [{ kind: "text", choice: 0, key: `text ${index}`, text, item: textItem }];
    }
    const isFile = Json.string(content.data) !== "" || Json.string(content.uri) !== "";
    return isFile ? [{ kind: "media", choice: 0, key: `media ${index}`, text: "" }] : [];
  });
  if (said.length === 0) return [state, none];
  return [state, { ...none, progress: "output", shows: "text", characters: lengthOf(said) }, said];
};

const toolOf = (type: string, { name, server_name }: Json.JsonRecord): string => {
  if (type === "function_call") return Json.string(name);
  if (type === "mcp_server_tool_call") return mcpName(Json.string(server_name), Json.string(name));
  return type.replace(/_call$/, "");
};

const onCall = (state: State, index: number, type: string, given: Json.JsonRecord): Step => {
  const known = state.calls.findIndex((call) => call.index === index);
  const before = state.calls[known];
  const written = Json.record(given.arguments);
  const call: Call = {
    index,
    id: Json.string(given.id) || (before?.id ?? ""),
    tool: toolOf(type, given) || (before?.tool ?? ""),
    executor: type === "function_call" ? "runtime" : "provider",
    begun: written === undefined ? (before?.begun ?? "{}") : JSON.stringify(written),
    input: before?.input ?? "",
    open: true,
  };
  const at = known === -1 ? state.calls.length : known;
  const seen = before === undefined ? { ...output, calls: [Events.signal(call, at, "input_started")] } : output;
  return Events.putCall(state, at, call, call.begun.length, seen, Events.notesOf(call, at));
};

const onArguments = (state: State, index: number, piece: string): Step => {
  const at = state.calls.findIndex((call) => call.index === index && call.open);
  const call = state.calls[at];
  if (call === undefined) return [state, output];
  return Events.putCall(state, at, { ...call, input: call.input + piece }, piece.length);
};

const onStop = (state: State, index: number): Step => {
  const at = state.calls.findIndex((call) => call.index === index && call.open);
  const call = state.calls[at];
  if (call === undefined) return [state, none];
  return [closed(state, at, call), { ...output, calls: [Events.completeCall(call, at, call.begun)] }];
};

/** A call of Google's own tools stays open until its result. */
const closed = (state: State, at: number, call: Call): State =>
  call.executor === "provider" ? state : { ...state, calls: state.calls.with(at, { ...call, open: false }) };

/** Settles the call of a result: the one with its id, or else the oldest that has none. */
const onResult = (state: State, given: Json.JsonRecord): Step => {
  const own = Json.string(given.call_id);
  const isOpen = ({ executor, open }: Call) => executor === "provider" && open;
  const named = state.calls.findIndex((call) => isOpen(call) && own !== "" && call.id === own);
  const at = named === -1 ? state.calls.findIndex(isOpen) : named;
  const call = state.calls[at];
  if (call === undefined) return [state, output];
  const calls = state.calls.with(at, { ...call, open: false });
  return [
    { ...state, calls },
    { ...output, calls: [Events.signal(call, at, "settled")] },
  ];
};

const onEnd = (state: State, interaction: Json.JsonRecord): Step => {
  const usage = usageOf(Json.record(interaction.usage) ?? {});
  const counted = usage === undefined ? none : { ...none, usage };
  if (state.terminal || state.failure !== undefined) return [state, counted];
  const status = Json.string(interaction.status) || "completed";
  if (status === "in_progress" || status === "queued") return [state, counted];
  const failure = failures.get(status);
  if (failure !== undefined) return [fail(state, failure), { ...counted, failure }];
  const marked: Observation = { ...counted, terminal: true, closes: "later", finish: label(status) };
  const isWhole = status === "completed" || status === "requires_action";
  const broken = state.calls.some(
    (call) => call.executor === "runtime" && (call.open || Events.readInput(call, call.begun) === undefined),
  );
  return Events.complete(state, marked, isWhole && broken);
};

/** Statuses of an interaction that has not answered. */
const failures: ReadonlyMap<string, Failure> = new Map<string, Failure>([
  ["failed", serverError],
  ["cancelled", { kind: "cancelled", by: "provider", in_band: true }],
]);

/** Reads the token usage. Thinking is billed as output, and tool use as input. */
const usageOf = (usage: Json.JsonRecord): Observation["usage"] =>
  Payload.usage(
    sum(usage.total_input_tokens, usage.total_tool_use_tokens),
    sum(usage.total_output_tokens, usage.total_thought_tokens),
  );

const sum = (one: unknown, other: unknown): number | undefined => {
  const first = Json.natural(one);
  const second = Json.natural(other);
  return first === undefined ? second : first + (second ?? 0);
};

/**
 * Gemini Interactions.
 *
 * Complete when: `interaction.completed` with a terminal status
 * Tolerated: no `[DONE]`; the events of older revisions (`interaction.complete`, `content.delta`)
 */
export const protocol = Events.eventProtocol({
  id: "google-interactions",
  initial: Events.initial<Call>,
  names: /^(?:interaction|step|content)\./,
  errorOf,
  onEvent,
});
