/**
 * Decodes protocols whose events have a type and a terminal event, and whose calls are gathered from several events. A protocol supplies a
 * table: its names, its errors, and the fold of one event.
 */
import { type Failure, incompleteCall } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { type CallSignal, failed, none, type Observation } from "../../domain/Observation.ts";
import { type Content, nothing, single } from "./Content.ts";
import * as Payload from "./Payload.ts";
import type { Protocol, SseEvent } from "./Protocol.ts";

/** Maximum calls of one stream. */
export const callsMax = 512;

/** Maximum argument text gathered over all calls of a stream, in UTF-16 code units. */
const argumentCharactersMax = 16 * 1024 * 1024;

/** The end of a response as far as it is known. Each protocol's state includes it. */
export interface Ending {
  readonly terminal: boolean;
  readonly failure: Failure | undefined;
}

/** A call as gathered so far. */
export interface Call {
  readonly id: string;
  readonly tool: string;
  readonly executor: CallSignal["executor"];
  readonly input: string;
}

/** The immutable state of a decoder that gathers calls. A text delta leaves the state unchanged. */
export interface State<C extends Call = Call> extends Ending {
  readonly calls: ReadonlyArray<C>;
  readonly argumentCharacters: number;
}

/** The next state, the observation of an event, and its content if it has any. */
export type Step<S> = readonly [S, Observation, ReadonlyArray<Content>?];

/** A protocol, in the terms of this decoder. */
export interface EventTable<S extends Ending, Id extends string> extends Pick<Protocol<S, Id>, "id" | "framing"> {
  readonly initial: () => S;
  /** Names of the protocol's own events, in which text that is not JSON is damage. Omitted if its events have no names. */
  readonly names?: RegExp;
  /** Returns the failure that an event reports; undefined for an event that is no error. */
  readonly errorOf: (event: SseEvent, json: Json.JsonRecord) => Failure | undefined;
  readonly onEvent: (state: S, json: Json.JsonRecord) => Step<S>;
}

/** Creates the state before the first event. */
export const initial = <C extends Call>(): State<C> => ({
  ...{ calls: [], argumentCharacters: 0, terminal: false, failure: undefined },
});

/** Creates a protocol from its table. */
export const eventProtocol = <S extends Ending, Id extends string>(table: EventTable<S, Id>): Protocol<S, Id> => {
  const { errorOf, framing, id, initial, names, onEvent } = table;
  const fold = (state: S, event: SseEvent, parsed: ReturnType<typeof Json.parse>): Step<S> => {
    if (Payload.isDone(event.data)) return [state, { ...none, quiet: true, ...(state.terminal ? closing : {}) }];
    if (parsed === undefined) {
      const isOwn = names?.test(event.event) === true;
      const observation = isOwn ? failed(damage) : Payload.unparsedPart(id, event).observation;
      return [fail(state, observation.failure), observation];
    }
    const json = Json.record(parsed.json) ?? {};
    const failure = errorOf(event, json);
    return failure === undefined ? onEvent(state, json) : [fail(state, failure), failed(failure)];
  };
  return {
    id,
    ...(framing === undefined ? {} : { framing }),
    initial,
    step: (state, event) => {
      const parsed = Json.parse(event.data);
      const [next, observation, content = nothing] = fold(state, event, parsed);
      return [next, { protocol: id, event, json: parsed?.json, content, observation }];
    },
    // At a clean end of the bytes, only the terminal marker completes a response.
    halt: ({ failure, terminal }) => {
      if (failure !== undefined) return { complete: false, failure };
      return terminal ? { complete: true } : { complete: false, failure: { kind: "truncated" } };
    },
    observe: ({ observation }) => observation,
  };
};

const closing = { closes: "now" } as const;
const damage: Failure = { kind: "protocol", reason: "damaged_frame" };

/** Records a failure. An error after the terminal marker changes nothing. */
export const fail = <S extends Ending>(state: S, failure: Failure | undefined): S =>
  state.terminal || state.failure !== undefined || failure === undefined ? state : { ...state, failure };

/** Completes a response whose calls can be read. One with a broken call is a failure, but its marker has come. */
export const complete = <S extends Ending>(state: S, marked: Observation, isBroken: boolean): Step<S> =>
  isBroken ? [fail(state, callUnread), { ...marked, failure: callUnread }] : [{ ...state, terminal: true }, marked];

const callUnread: Failure = { kind: "invalid_tool_input", in_band: true, code: incompleteCall };

/** An error of the server without a known code. */
export const serverError: Failure = { kind: "server_error", in_band: true };

/** The observation of output that shows nothing, for example a piece of a call. */
export const output: Observation = { ...none, progress: "output" };

/** Adds or replaces a call, and counts its further argument text. Beyond the maximum, the response fails. */
export const putCall = <C extends Call, S extends State<C>>(
  state: S,
  at: number,
  call: C,
  characters: number,
  seen: Observation = output,
  content: ReadonlyArray<Content> = nothing,
): Step<S> => {
  const calls = at < state.calls.length ? state.calls.with(at, call) : [...state.calls, call];
  const next: S = { ...state, calls, argumentCharacters: state.argumentCharacters + characters };
  if (calls.length <= callsMax && next.argumentCharacters <= argumentCharactersMax) return [next, seen, content];
  return failOversize(next, seen, content);
};

/** Fails because a response has more calls, or longer ones, than a decoder gathers. */
export const failOversize = <S extends Ending>(
  state: S,
  seen: Observation,
  content: ReadonlyArray<Content>,
): Step<S> => [fail(state, oversize), { ...seen, failure: oversize }, content];

const oversize: Failure = { kind: "protocol", reason: "oversize" };

/** Returns the signal of a call. */
export const signal = (
  call: Pick<Call, "id" | "tool" | "executor">,
  ordinal: number,
  phase: CallSignal["phase"],
): CallSignal => ({
  ...{ choice: 0, ordinal, executor: call.executor, phase },
  ...(call.id === "" ? {} : { id: label(call.id) }),
  ...(call.tool === "" ? {} : { tool: label(call.tool) }),
});

/**
 * Returns the signal of a call whose input is complete. It is ready if the input can be read and the caller runs it.
 *
 * @param empty the input of a call without text
 */
export const completeCall = (call: Call, ordinal: number, empty?: string): CallSignal => {
  const input = call.executor === "provider" ? undefined : readInput(call, empty);
  return input === undefined ? signal(call, ordinal, "input_complete") : { ...signal(call, ordinal, "ready"), input };
};

/** Returns the arguments of a call; undefined if they cannot be parsed. A function without parameters may have no text. */
export const readInput = ({ input }: Pick<Call, "input">, empty = "{}"): string | undefined => {
  const text = input.trim() === "" ? empty : input;
  return Json.parse(text) === undefined ? undefined : text;
};

/** Keeps what a signal cannot: an id that is longer than a label, and that a tool of the provider's was called. */
export const notesOf = ({ executor, id }: Pick<Call, "executor" | "id">, ordinal: number): ReadonlyArray<Content> => {
  if (executor === "provider")
    return [{ kind: "item", choice: 0, key: `hosted ${ordinal}`, text: "", item: { type: "hosted", json: {} } }];
  if (label(id) === id) return nothing;
  return [{ kind: "item", choice: 0, key: single, text: "", item: { type: "note", json: { ordinal, id } } }];
};
