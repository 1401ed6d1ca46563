/**
 * Describes a provider protocol as a pure fold from stream events to parts.
 *
 * A protocol has an id, `initial`, `step` and `halt`. `step` mutates nothing. `halt` is called when the bytes end cleanly and returns
 * `complete` only after the provider's own terminal marker (law L5). `Decoder.make` runs a protocol over bytes.
 */
import type { Failure } from "../../domain/Failure.ts";
import type { Observation } from "../../domain/Observation.ts";
import type { Content } from "./Content.ts";
import type { Framing, SseEvent } from "./Framing.ts";

export type { SseComment, SseEvent } from "./Framing.ts";

/** One decoded event with its parsed JSON, its content and its observation. Nothing is discarded. */
export interface Part<Id extends string = string> {
  readonly protocol: Id;
  /** The original event, unchanged. For a comment, `event` is `comment` and `data` its text. */
  readonly event: SseEvent;
  /** The parsed `data`; undefined for comments and the `[DONE]` sentinel. */
  readonly json: unknown;
  /** The new content of the event, without content that the provider repeats. */
  readonly content: ReadonlyArray<Content>;
  readonly observation: Observation;
}

/** The result of a clean end of the bytes. */
export type End = { readonly complete: true } | { readonly complete: false; readonly failure: Failure };

/**
 * Differences between healthy servers of a protocol. Each tolerance has a name. A tolerance is on by default only if a recording proves
 * that it is needed.
 */
export interface Tolerance {
  /** Chat: some healthy gateways end with `[DONE]` and never send a `finish_reason`. */
  readonly doneWithoutFinish?: boolean;
  /** Chat and Gemini: the number of choices requested (`n`, `candidateCount`). If omitted, the choices that appear are counted. */
  readonly choices?: number;
}

/** A step of a protocol's fold over one event. States are immutable, so the same event applied to the same state gives the same result. */
export interface Fold {
  readonly before: unknown;
  readonly behind: unknown;
  /** The tolerance with which the response is decoded. Set if the response begins with this event. */
  readonly begins: Tolerance | undefined;
}

/** A protocol as a fold. `S` is its immutable state. */
export interface Protocol<S = unknown, Id extends string = string> {
  readonly id: Id;
  /** True to accept a JSON document with a 2xx status as a response with a single event. If omitted, a document is not a stream. */
  readonly documents?: boolean;
  /** The form of the stream. If omitted, server-sent events. */
  readonly framing?: Framing;
  readonly initial: (tolerance?: Tolerance) => S;
  readonly step: (state: S, event: SseEvent) => readonly [S, Part<Id>];
  readonly halt: (state: S) => End;
  /** Returns the observation of a part. `StreamProcessor.run` takes this function as `observe`. */
  readonly observe: (part: Observed) => Observation;
}

/** A part, reduced to its observation. */
export type Observed = Pick<Part, "observation">;

/** Returns a protocol under another id, for a wire that carries the same events. */
export const renamed = <S, Id extends string>(protocol: Protocol<S>, id: Id): Protocol<S, Id> => ({
  ...protocol,
  id,
  step: (state, event) => {
    const [next, part] = protocol.step(state, event);
    return [next, { ...part, protocol: id }];
  },
});
