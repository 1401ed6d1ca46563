/**
 * Decodes streams of Ollama's own API: `/api/chat` and `/api/generate`, with one JSON object per line.
 *
 * Terminal rule (law L5): the line with `done: true` is the marker. An error arrives as the line `{ "error": "…" }`, under the status 200
 * that was sent before it (docs.ollama.com/api/errors), and after it no marker counts.
 *
 * A call arrives whole in one line. Ollama has no tools of its own, so every call is the caller's.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type CallSignal, none, type Observation } from "../../domain/Observation.ts";
import { classifyEvent } from "../../failure/FailureClassifier.ts";
import type { Content } from "../stream/Content.ts";
import * as Events from "../stream/EventProtocol.ts";
import { serverError } from "../stream/EventProtocol.ts";
import { framing } from "../stream/Ndjson.ts";
import * as Payload from "../stream/Payload.ts";
import type { SseEvent } from "../stream/Protocol.ts";
import { readWords } from "./Content.ts";

/** The immutable state of the decoder between two events. A line that contains only text leaves the state unchanged. */
export interface State extends Events.Ending {
  /** Number of calls so far. */
  readonly calls: number;
  /** True if the arguments of a call cannot be parsed. */
  readonly invalid: boolean;
}

const errorOf = (event: SseEvent, line: Json.JsonRecord): Failure | undefined => {
  const said = event.event === "error" || Payload.isError(line.error);
  // A line of another server may be an error without the field `error`.
  if (!said && (line.message ?? line.response ?? line.done ?? line.image) !== undefined) return undefined;
  return classifyEvent(said && line.error === undefined ? { error: line } : line) ?? (said ? serverError : undefined);
};

const onLine = (state: State, line: Json.JsonRecord): Events.Step<State> => {
  const content = readWords(line, state.calls);
  const called = Json.list(Json.record(line.message)?.tool_calls);
  const calls = callsOf(called, state.calls);
  const said = observationOf(content, calls, usageOf(line));
  const next = called.length === 0 ? state : afterCalls(state, calls, called.length);
  if (next.calls > Events.callsMax) return Events.failOversize(next, said, content);
  if (line.done !== true || state.terminal || state.failure !== undefined) return [next, said, content];
  const finish = label(Json.string(line.done_reason) || "stop");
  // A request without a prompt only loads or unloads a model. Its response is complete without content.
  const progress = finish === "load" || finish === "unload" ? "output" : said.progress;
  const marked: Observation = { ...said, progress, quiet: false, terminal: true, finish };
  const [after, observation] = Events.complete(next, marked, next.invalid);
  return [after, observation, content];
};

const afterCalls = (state: State, calls: ReadonlyArray<CallSignal>, count: number): State => ({
  ...state,
  calls: state.calls + count,
  invalid: state.invalid || calls.some(({ phase }) => phase === "input_complete"),
});

/** Returns the signals of the calls in a line: each begins and is ready at once. */
const callsOf = (called: ReadonlyArray<unknown>, before: number): ReadonlyArray<CallSignal> =>
  called.flatMap((entry, at): ReadonlyArray<CallSignal> => {
    const call = Json.record(entry);
    const target = Json.record(call?.function) ?? {};
    const given = { id: Json.string(call?.id), tool: Json.string(target.name), executor: "runtime" as const };
    // Servers that translate from OpenAI's protocol leave the arguments as a JSON string.
    const written = target.arguments;
    const input = typeof written === "string" ? written : JSON.stringify(written ?? {});
    return [Events.signal(given, before + at, "input_started"), Events.completeCall({ ...given, input }, before + at)];
  });

const observationOf = (
  content: ReadonlyArray<Content>,
  calls: ReadonlyArray<CallSignal>,
  usage: Observation["usage"],
): Observation => {
  let shows: Observation["shows"] = "nothing";
  let reasoning = 0;
  let text = 0;
  for (const { kind, text: said } of content) {
    if (kind === "reasoning") reasoning += said.length;
    else text += said.length;
    if (kind === "text" || kind === "media") shows = "text";
    else if (kind === "reasoning" && shows === "nothing") shows = "reasoning";
  }
  const counted = usage === undefined ? {} : { usage };
  // A line without content adds nothing to the client's text, so it is quiet, like a ping.
  if (shows === "nothing" && calls.length === 0) return { ...none, quiet: true, ...counted };
  return {
    ...none,
    progress: shows === "reasoning" && calls.length === 0 ? "reasoning" : "output",
    shows,
    characters: shows === "text" ? text : reasoning,
    calls,
    // Within one message, the content precedes the calls.
    ...(shows === "text" && calls.length > 0 ? { text_before_calls: true } : {}),
    ...counted,
  };
};

const usageOf = ({ eval_count, prompt_eval_count }: Json.JsonRecord): Observation["usage"] =>
  Payload.usage(prompt_eval_count, eval_count);

/**
 * Ollama, `/api/chat` and `/api/generate`.
 *
 * Complete when: a line with `done: true`
 * Tolerated: no `done_reason`; arguments as a JSON string
 */
export const protocol = Events.eventProtocol({
  id: "ollama",
  framing,
  initial: (): State => ({ calls: 0, invalid: false, terminal: false, failure: undefined }),
  errorOf,
  onEvent: onLine,
});
