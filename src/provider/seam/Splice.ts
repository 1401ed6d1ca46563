/**
 * Describes the splice of a protocol, which joins the events of a continuation to those that a client has read. Pure.
 *
 * A splice rewrites ids, positions and joined text. It never creates a terminal event (L5), so the finish that a client reads was sent by
 * the provider.
 */
import type * as Json from "../../domain/Json.ts";
import type { Part, SseEvent } from "../stream/Protocol.ts";

/** Decides how much of the new text may be sent. A splice passes it each piece of visible text, in order, before it writes an event. */
export interface TextGate {
  /** True if the seam is proven. Until then a splice writes nothing. */
  readonly isJoined: boolean;
  /** Length of the new text before the seam, in UTF-16 code units; 0 until the seam is proven. This text is never sent. */
  readonly cut: number;
  /** Returns the text that may be sent now. It is shorter than the piece at the seam, and longer if text was held before. */
  readonly text: (piece: string) => string;
  /** Called when something that is not text follows. Returns the held text, which has to be sent first. */
  readonly close: () => string;
  /** Called for content that cannot be joined before the seam is proven (a call, a refusal, a picture), or that cannot be written. */
  readonly fail: (fault: "not_text" | "unwritable") => void;
}

/** An event written by a splice: the name of its frame, and its data as JSON, or as a string for a sentinel (`[DONE]`). */
export type SplicedEvent = Pick<SseEvent, "event"> & { readonly json: Json.JsonRecord | string };

/** The sent part of a response, as a continuation needs it. */
export interface ShownResponse {
  /** All visible text since the last block that is not text. */
  readonly run: string;
  /** Length of all visible text of the response, in UTF-16 code units. */
  readonly characters: number;
  /** The reason why the response cannot be continued, as far as the sent part determines it. */
  readonly refusal: "refusal_shown" | "not_text_last" | "several_choices" | "too_long" | undefined;
}

/** Joins continuations to one response. It holds the text that the client has read, and the maximum of shown text bounds its memory. */
export interface Splice {
  /**
   * Called for each event that was sent to the client, either from the first attempt or as a splice wrote it.
   *
   * @param json the parsed data; text for a sentinel
   * @param event the name of its frame, which with some servers is the only statement of its type
   */
  readonly recordSent: (json: unknown, event?: string) => void;
  readonly response: () => ShownResponse;
  /** Starts a continuation. */
  readonly startContinuation: (gate: TextGate) => SplicedAttempt;
}

/** Joins the events of one attempt. */
export interface SplicedAttempt {
  /**
   * Takes an event as it arrived.
   *
   * @returns the events that replace it for the client, in order; none before the seam is proven
   */
  readonly take: (part: Part) => ReadonlyArray<SplicedEvent>;
  /** Called after bytes that ended cleanly. Returns the events that were still held. */
  readonly end: () => ReadonlyArray<SplicedEvent>;
}

export { shownCharactersMax } from "../../seam/TextSeam.ts";
