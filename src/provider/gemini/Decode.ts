/**
 * Decodes streams of Gemini's `streamGenerateContent?alt=sse`, from the Gemini API and Vertex AI.
 *
 * Terminal rule (law L5): there is no terminal event. A stream is complete when the bytes end cleanly and the last content of every
 * candidate came with a `finishReason`. Some servers send a `finishReason` in every chunk. So a finish is the terminal marker only with the
 * clean end (`terminal_at_end`), and later content without a finish revokes it.
 *
 * A blocked prompt has no candidates: `promptFeedback.blockReason` replaces the finish. `MALFORMED_FUNCTION_CALL` and
 * `UNEXPECTED_TOOL_CALL` are a finish with an unparseable call. If STOP arrives while a tool of Google has no result (for example code that
 * is running), the model is waiting for that result, so more must follow.
 */
import { type Failure, incompleteCall } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { failed, none, type Observation } from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import { type Content, lengthOf, nothing } from "../stream/Content.ts";
import * as Payload from "../stream/Payload.ts";
import type * as Stream from "../stream/Protocol.ts";
import type { End, Observed, Protocol, SseEvent, Tolerance } from "../stream/Protocol.ts";
import * as GeminiCalls from "./Calls.ts";
import * as GeminiContent from "./Content.ts";

/** Maximum candidates of one stream. The API allows 8. */
export const candidatesMax = 128;

/** Maximum argument text gathered over all calls of a stream, in UTF-16 code units. */
export const argumentCharactersMax = 16 * 1024 * 1024;

interface Candidate {
  readonly index: number;
  readonly calls: ReadonlyArray<GeminiCalls.Call>;
  /** The `finishReason` that came with or after the last content. */
  readonly finish: string | undefined;
  /** Tools that the metadata reported before the finish. */
  readonly hosted: ReadonlyArray<string>;
}

/** The immutable state of the decoder between two events. */
export interface State {
  readonly tolerance: Tolerance;
  readonly candidates: ReadonlyArray<Candidate>;
  readonly argumentCharacters: number;
  readonly blocked: string | undefined;
  readonly failure: Failure | undefined;
}

/** The state before the first event. */
export const initial = (tolerance: Tolerance = {}): State => ({
  tolerance,
  candidates: [],
  argumentCharacters: 0,
  blocked: undefined,
  failure: undefined,
});

/** The protocol's id. */
export const id = "google-gemini";

type Part = Stream.Part<typeof id>;

/** Folds one event into the state. */
export const step = (state: State, event: SseEvent): readonly [State, Part] => {
  // Gateways end every stream with the OpenAI sentinel, which proves nothing here.
  if (Payload.isDone(event.data)) {
    const observation = markPossibleEnd(state, { ...none, quiet: true });
    return [state, { protocol: id, event, json: undefined, content: nothing, observation }];
  }
  const parsed = Json.parse(event.data);
  if (parsed === undefined) {
    const part = Payload.unparsedPart(id, event);
    const { failure } = part.observation;
    if (failure === undefined) return [state, { ...part, observation: markPossibleEnd(state, part.observation) }];
    return [{ ...state, failure: state.failure ?? failure }, part];
  }
  // Errors arrive in a list of one element, as in a response without `alt=sse`.
  const outer = Json.record(parsed.json) ?? Json.record(Json.list(parsed.json)[0]) ?? {};
  // Code Assist, the endpoint of Gemini CLI, wraps every chunk in `response`.
  const chunk = outer.candidates === undefined ? (Json.record(outer.response) ?? outer) : outer;
  const failure = errorOf(event, outer) ?? (chunk === outer ? undefined : errorOf(event, chunk));
  const [next, observation, content = nothing] =
    failure === undefined ? onChunk(state, chunk) : [{ ...state, failure: state.failure ?? failure }, failed(failure)];
  return [next, { protocol: id, event, json: parsed.json, content, observation }];
};

/** Decides at a clean end of the bytes if the response is complete. */
export const halt = (state: State): End => {
  if (state.failure !== undefined) return { complete: false, failure: state.failure };
  return finishOf(state) === undefined ? { complete: false, failure: { kind: "truncated" } } : { complete: true };
};

/** Returns the observation of a part. */
export const observe = (part: Observed): Observation => part.observation;

/**
 * Google Gemini, `streamGenerateContent` with `alt=sse`.
 *
 * Complete when: the last content of every candidate came with a `finishReason`, and the bytes end cleanly
 * Tolerated: a `finishReason` in every chunk; `promptFeedback` alone
 */
export const protocol: Protocol<State, typeof id> = { id, initial, step, halt, observe };

const errorOf = (event: SseEvent, chunk: Json.JsonRecord): Failure | undefined => {
  const named = event.event === "error";
  const error = Payload.isError(chunk.error);
  if (!named && !error && (chunk.candidates ?? chunk.response) !== undefined) return undefined;
  const failure = classifyEvent(error || !named ? chunk : { error: chunk });
  return failure ?? (named ? { kind: "server_error", in_band: true } : undefined);
};

/** Returns the finish that the stream would have if it ended here. */
const finishOf = (state: State): string | undefined => {
  const { candidates } = state;
  if (candidates.length === 0) return state.blocked;
  const open = candidates.some(
    ({ calls, finish }) => finish === undefined || (finish === "STOP" && hasPendingHostedCall(calls)),
  );
  return open || candidates.length < (state.tolerance.choices ?? 1) ? undefined : candidates[0]?.finish;
};

/** True if a tool run by Google has no result yet. Only a token limit may end the response in this state. */
const hasPendingHostedCall = (calls: ReadonlyArray<GeminiCalls.Call>): boolean =>
  calls.some((call) => call.executor === "provider" && call.open);

type Stepped = readonly [State, Observation, ReadonlyArray<Content>?];

const onChunk = (state: State, chunk: Json.JsonRecord): Stepped => {
  const seen: Seen = {
    content: [],
    shows: "nothing",
    unseen: "started",
    text: 0,
    reasoning: 0,
    calls: [],
    textAfterCall: false,
    failure: undefined,
  };
  const candidates = Json.list(chunk.candidates);
  let next = state;
  for (const entry of candidates) next = onCandidate(next, Json.record(entry) ?? {}, seen);
  const blocked = Json.string(Json.record(chunk.promptFeedback)?.blockReason);
  if (blocked !== "" && blocked !== "BLOCK_REASON_UNSPECIFIED") next = { ...next, blocked: label(blocked) };
  const observation = observationOf(seen, candidates.length, usageOf(chunk));
  const failure = state.failure ?? seen.failure;
  if (failure !== undefined) return [{ ...next, failure }, withFailure(observation, seen.failure, next), seen.content];
  return [next, markPossibleEnd(next, observation), seen.content];
};

/** Marks every part after the last finish as a possible end. A part without that mark revokes the possible end. */
const markPossibleEnd = (state: State, observation: Observation): Observation => {
  const finish = finishOf(state);
  return finish === undefined ? observation : { ...observation, terminal_at_end: true, finish };
};

interface Seen {
  readonly content: Array<Content>;
  shows: Observation["shows"];
  /** The progress that parts without text prove. */
  unseen: "started" | "reasoning" | "output";
  text: number;
  reasoning: number;
  calls: Observation["calls"];
  textAfterCall: boolean;
  failure: Failure | undefined;
}

const onCandidate = (state: State, entry: Json.JsonRecord, seen: Seen): State => {
  const index = Json.natural(entry.index) ?? 0;
  const position = state.candidates.findIndex((candidate) => candidate.index === index);
  const before = state.candidates[position] ?? { index, calls: [], finish: undefined, hosted: [] };
  const gathering: GeminiCalls.Gathering = {
    candidate: index,
    calls: before.calls,
    signals: [],
    characters: 0,
    invalid: false,
  };
  let content = false;
  for (const part of Json.list(Json.record(entry.content)?.parts)) {
    if (onPart(Json.record(part) ?? {}, gathering, seen)) content = true;
  }
  // Reports a candidate even before it has content, because several candidates rule out a continuation.
  if (position === -1 && !content) seen.content.push({ kind: "text", choice: index, key: "text", text: "" });
  const reason = Payload.readReason(entry.finishReason);
  const ended = reason !== "";
  const found = hostedToolsIn(entry);
  const hosted = found.length === 0 ? before.hosted : [...new Set([...before.hosted, ...found])];
  // Metadata arrives with the text that it describes, so its tools are reported as calls only at the finish, after all text.
  if (ended) for (const tool of hosted) GeminiCalls.takeSettled(gathering, tool);
  if (gathering.signals.length > 0) seen.calls = [...seen.calls, ...gathering.signals];
  seen.failure ??= failureOf(gathering, ended ? reason : "");
  const argumentCharacters = state.argumentCharacters + gathering.characters;
  if (
    argumentCharacters > argumentCharactersMax ||
    gathering.calls.length > GeminiCalls.callsMax ||
    index >= candidatesMax
  )
    seen.failure ??= { kind: "protocol", reason: "oversize" };
  const finish = ended ? label(reason) : content ? undefined : before.finish;
  const isSame = gathering.calls === before.calls && finish === before.finish && hosted === before.hosted;
  if (position !== -1 && isSame && gathering.characters === 0) return state;
  const candidate: Candidate = { index, calls: gathering.calls, finish, hosted };
  const candidates = position === -1 ? [...state.candidates, candidate] : state.candidates.with(position, candidate);
  return { ...state, candidates, argumentCharacters };
};

/** Reads a part of the content. Returns true if the part contained anything. */
const onPart = (part: Json.JsonRecord, gathering: GeminiCalls.Gathering, seen: Seen): boolean => {
  const about = GeminiCalls.take(gathering, part);
  if (about !== undefined) {
    seen.content.push(...GeminiContent.readCall(part, gathering.candidate, about.ordinal));
    return true;
  }
  const said = GeminiContent.readWords(part, gathering.candidate);
  seen.content.push(...said);
  const characters = lengthOf(said);
  if (characters === 0 && !GeminiContent.isMedia(part)) {
    const unseen = GeminiContent.progressOfUnseen(part);
    if (seen.unseen !== "output" && unseen !== "started") seen.unseen = unseen;
    return false;
  }
  if (part.thought === true) {
    if (seen.shows === "nothing") seen.shows = "reasoning";
    seen.reasoning += characters;
    return true;
  }
  seen.shows = "text";
  seen.text += characters;
  if (gathering.signals.length > 0 || seen.calls.length > 0) seen.textAfterCall = true;
  return true;
};

const unreadable = new Set(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"]);

const failureOf = (gathering: GeminiCalls.Gathering, reason: string): Failure | undefined => {
  // STOP means that the model ended by itself, so a call without complete arguments is broken. At a token limit, such a call is only
  // incomplete.
  const broken = reason === "STOP" && GeminiCalls.isOpen(gathering.calls);
  if (broken || gathering.invalid) return { kind: "invalid_tool_input", in_band: true, code: incompleteCall };
  return unreadable.has(reason) ? { kind: "invalid_tool_input", in_band: true } : undefined;
};

const noTools: ReadonlyArray<string> = [];

/** Returns Google's own tools, detected by the metadata of their results. */
const hostedToolsIn = (entry: Json.JsonRecord): ReadonlyArray<string> => {
  if (entry.groundingMetadata === undefined && entry.urlContextMetadata === undefined) return noTools;
  const grounding = Json.record(entry.groundingMetadata);
  const found: Array<string> = [];
  if (grounding !== undefined && (grounding.searchEntryPoint || Json.list(grounding.webSearchQueries).length > 0))
    found.push("google_search");
  if (Json.list(Json.record(entry.urlContextMetadata)?.urlMetadata).length > 0) found.push("url_context");
  return found;
};

/** Adds a failure. If a call cannot be parsed and every candidate has finished, the observation is terminal too. No other failure is. */
const withFailure = (observation: Observation, failure: Failure | undefined, state: State): Observation => {
  if (failure === undefined) return observation;
  const finish = failure.kind === "invalid_tool_input" ? finishOf(state) : undefined;
  return finish === undefined ? { ...observation, failure } : { ...observation, failure, terminal: true, finish };
};

const observationOf = (seen: Seen, candidates: number, usage: Observation["usage"]): Observation => {
  if (seen.shows === "nothing" && seen.calls.length === 0) {
    const unseen = { ...none, progress: seen.unseen };
    return usage === undefined ? unseen : { ...unseen, quiet: candidates === 0, usage };
  }
  return {
    ...none,
    progress: seen.calls.length > 0 || seen.shows === "text" || seen.unseen === "output" ? "output" : "reasoning",
    shows: seen.shows,
    characters: seen.shows === "text" ? seen.text : seen.reasoning,
    calls: seen.calls,
    ...(seen.shows === "text" && seen.calls.length > 0 && !seen.textAfterCall ? { text_before_calls: true } : {}),
    ...(usage === undefined ? {} : { usage }),
  };
};

/** Reads the token usage. Thinking is billed as output, and tool use as input. */
const usageOf = (chunk: Json.JsonRecord): Observation["usage"] => {
  const usage = Json.record(chunk.usageMetadata);
  if (usage === undefined) return undefined;
  return Payload.usage(
    sum(usage.promptTokenCount, usage.toolUsePromptTokenCount),
    sum(usage.candidatesTokenCount, usage.thoughtsTokenCount),
  );
};

const sum = (one: unknown, other: unknown): number | undefined => {
  const first = Json.natural(one);
  const second = Json.natural(other);
  return first === undefined ? second : first + (second ?? 0);
};
