/**
 * Describes how the events of a continuation are joined to those that a client has read: one a protocol, pure.
 *
 * A splice rewrites ids, positions and joined text. It never makes a terminal event (L5): the finish that a client reads is the
 * one that the provider sent.
 */
import type * as Json from "../../domain/Json.ts";
import type { Part, SseEvent } from "../stream/Protocol.ts";

/**
 * What of the new text may leave. A splice asks it for each piece of visible text, in order, before it writes an event.
 */
export interface TextGate {
  /** The seam is proven. Before that a splice writes nothing. */
  readonly joined: boolean;
  /** How much of the new text stands in front of the seam and never leaves, in UTF-16 code units; 0 until the seam is proven. */
  readonly cut: number;
  /** What may leave now: it is shorter than the piece at the seam, and longer where something was held before. */
  readonly text: (piece: string) => string;
  /** Something that is no text follows: what was held may leave, and goes in front of that. */
  readonly close: () => string;
  /** Something came that cannot be joined before the seam is proven (a call, a refusal, a picture), or that cannot be written. */
  readonly fail: (fault: "not_text" | "unwritable") => void;
}

/** An event that a splice writes: the name of its frame, and its data as JSON or, for a sentinel such as `[DONE]`, as text. */
export type SplicedEvent = Pick<SseEvent, "event"> & { readonly json: Json.JsonRecord | string };

/** What has left of a response, as a continuation needs it. */
export interface ShownResponse {
  /** All visible text since the last block that is no text. */
  readonly run: string;
  /** All visible text of the response, in UTF-16 code units. */
  readonly characters: number;
  /** Why the response cannot go on, as far as what has left says it. */
  readonly refusal: "refusal_shown" | "not_text_last" | "several_choices" | "too_long" | undefined;
}

/** Joins continuations to one response. It holds what the client has read; memory is bounded by the text that may be shown. */
export interface Splice {
  /**
   * An event has left for the client, of the first attempt or as a splice wrote it.
   *
   * @param json its data, parsed; a sentinel is a text
   * @param event the name of its frame, which of some servers is the one place that says its type
   */
  readonly left: (json: unknown, event?: string) => void;
  readonly shown: () => ShownResponse;
  /** A continuation begins. */
  readonly continued: (gate: TextGate) => SplicedAttempt;
}

/** Joins the events of one attempt. */
export interface SplicedAttempt {
  /**
   * Takes an event as it came.
   *
   * @returns what the client reads in its place, in order; nothing before the seam is proven
   */
  readonly take: (part: Part) => ReadonlyArray<SplicedEvent>;
  /** The bytes have ended cleanly: what is still held may leave. */
  readonly end: () => ReadonlyArray<SplicedEvent>;
}

export { shownCharactersMax } from "../../seam/TextSeam.ts";
