/**
 * Describes a provider protocol as a pure fold from stream events to parts.
 *
 * Four things make a protocol: an id, `initial`, `step` and `halt`. `step` mutates nothing; `halt` is asked when the bytes
 * end cleanly and says `complete` only after the provider's own terminal marker (law L5). `Decoder.make` drives one over bytes.
 */
import type { Failure } from "../../domain/Failure.ts";
import type { Observation } from "../../domain/Observation.ts";
import type { Content } from "./Content.ts";

/** One event of a server-sent-event stream, as framed. */
export interface SseEvent {
  /** The `event:` field; `message` where the frame has none (WHATWG HTML, 9.2.6). */
  readonly event: string;
  /** The `data:` lines, joined by newlines, as they came. */
  readonly data: string;
  /** The last `id:` of the stream, where one was sent. */
  readonly id?: string;
  /** The `retry:` field of this frame, in milliseconds. */
  readonly retry?: number;
  /** Size of the frame on the wire, in bytes. */
  readonly bytes: number;
}

/** A comment line: keep-alive bytes that are no event. */
export interface SseComment {
  readonly comment: string;
  readonly bytes: number;
}

/** One decoded event: the original beside its parsed JSON, what it says and what it proves. Nothing is thrown away. */
export interface Part<Id extends string = string> {
  readonly protocol: Id;
  /** The original event, unchanged. For a comment `event` is `comment` and `data` its text. */
  readonly event: SseEvent;
  /** The parsed `data`; undefined for comments and the `[DONE]` sentinel. */
  readonly json: unknown;
  /** What of the event is new in the response. A repetition of what was said before is not in it. */
  readonly content: ReadonlyArray<Content>;
  readonly observation: Observation;
}

/** What the end of the bytes means. */
export type End = { readonly complete: true } | { readonly complete: false; readonly failure: Failure };

/** Where a protocol's healthy servers differ. Every tolerance is named, none is the default unless a recording proves it. */
export interface Tolerance {
  /** Chat: some healthy gateways end with `[DONE]` and never send a finish_reason. */
  readonly doneWithoutFinish?: boolean;
  /** Chat and Gemini: how many choices the request asked for (`n`, `candidateCount`). Left out: as many as appear. */
  readonly choices?: number;
}

/**
 * How the fold of a protocol went on with an event. States never change in place: who has the same state, and takes the same event,
 * has the same state behind it.
 */
export interface Fold {
  readonly before: unknown;
  readonly behind: unknown;
  /** The response begins with the event, and was decoded with this tolerance. */
  readonly begins: Tolerance | undefined;
}

/** A protocol as a fold. `S` is its state, immutable. */
export interface Protocol<S = unknown, Id extends string = string> {
  readonly id: Id;
  /** A JSON document with a 2xx status is a response too, as one event. Left out: it is no stream. */
  readonly documents?: boolean;
  readonly initial: (tolerance?: Tolerance) => S;
  readonly step: (state: S, event: SseEvent) => readonly [S, Part<Id>];
  readonly halt: (state: S) => End;
  /** What a part proves: the function that `StreamProcessor.run` takes as `observe`. */
  readonly observe: (part: Observed) => Observation;
}

/** Of a part what it proves. */
export type Observed = Pick<Part, "observation">;
