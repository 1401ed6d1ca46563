/**
 * Reads any server-sent-event stream: every event is a part, and the caller decides which part is the last.
 *
 * There is no built-in rule for the end (law L5): a stream without `terminal` and without `cleanEnd` is never complete.
 */
import * as Json from "../../domain/Json.ts";
import { none, type Observation } from "../../domain/Observation.ts";
import { nothing } from "./Content.ts";
import type { End, Observed, Part, Protocol, SseEvent } from "./Protocol.ts";

/** The caller's rules for a stream. The functions must be pure and must not throw. */
export interface Rules {
  /** Returns true if this event is the last one. `json` is its parsed data; undefined if it is not JSON. */
  readonly terminal?: (event: SseEvent, json: unknown) => boolean;
  /**
   * True if a clean end of the bytes counts as the terminal marker when no event does. Default false, because a cut often ends the bytes
   * cleanly.
   */
  readonly cleanEnd?: boolean;
  /**
   * Returns the observation of an event. By default all data of an event is text that the caller sees, so a request is never repeated
   * without asking after such data.
   */
  readonly observe?: (event: SseEvent, json: unknown) => Observation;
  /** True to accept a JSON document as a response with a single event. Default false. */
  readonly documents?: boolean;
}

/** The state of the fold: the result of a clean end, and `settled`, which is true once an event has fixed that result. */
export interface State {
  readonly end: End;
  readonly settled: boolean;
}

/** Creates a protocol from rules. */
export const protocol = (rules: Rules): Protocol<State, "sse"> => ({
  id: "sse",
  documents: rules.documents ?? false,
  initial: () => ({ end: rules.cleanEnd === true ? complete : truncated, settled: false }),
  step: (state, event) => {
    const json = Json.parse(event.data)?.json;
    const observation = markTerminal(rules, observationOf(rules, event, json), rules.terminal?.(event, json) === true);
    return [next(state, observation), { protocol: "sse", event, json, content: nothing, observation }];
  },
  halt: ({ end }) => end,
  observe,
});

/** Returns the observation of a part. */
export const observe = (part: Observed): Observation => part.observation;

/**
 * Returns the cursor of a part, for the `cursor` option of `StreamProcessor.run`. It is sent to the server as `Last-Event-ID` (WHATWG HTML,
 * 9.2.3).
 */
export const cursor = (part: Part<"sse">): string | undefined => part.event.id;

/**
 * Returns the rules of one JSON-RPC request over MCP's streamable HTTP: the response with the request's id is the last message. A server
 * may send this response as a JSON document instead of a stream. A JSON-RPC error is such a response too, because the method failed but the
 * stream did not.
 *
 * @param id the id of the request
 */
export const jsonRpc = (id: string | number): Rules => ({
  documents: true,
  terminal: (_event, json) => {
    // Revision 2025-03-26 of MCP allows batches.
    const messages = Array.isArray(json) ? json : [json];
    return messages.some((message) => {
      const response = Json.record(message);
      return response?.id === id && ("result" in response || "error" in response);
    });
  },
});

const complete: End = { complete: true };
const truncated: End = { complete: false, failure: { kind: "truncated" } };

const observationOf = ({ observe }: Rules, event: SseEvent, json: unknown): Observation =>
  observe === undefined
    ? { ...none, progress: "output", shows: "text", characters: event.data.length }
    : observe(event, json);

/** Marks an observation as terminal, or as a possible end, unless it carries an error. */
const markTerminal = (rules: Rules, observation: Observation, terminal: boolean): Observation => {
  if (observation.failure !== undefined) return observation;
  if (terminal) return { ...observation, terminal: true };
  return rules.cleanEnd === true ? { ...observation, terminal_at_end: true } : observation;
};

/** Applies an observation. The first terminal event or failure is final. */
const next = (state: State, { failure, terminal }: Observation): State => {
  if (state.settled || (failure === undefined && !terminal)) return state;
  return { end: failure === undefined ? complete : { complete: false, failure }, settled: true };
};
