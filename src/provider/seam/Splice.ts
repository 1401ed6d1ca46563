/**
 * Describes the splice of a protocol, which joins the events of a continuation to those that a client has read. Pure.
 *
 * A splice rewrites ids, positions and joined text. It never creates a terminal event (L5), so the finish that a client reads was sent by
 * the provider.
 */
import type * as Json from "../../domain/Json.ts";
import type { ShownResponse } from "../../seam/ShownText.ts";
import type { Part, SseEvent } from "../stream/Protocol.ts";
import type { TextGate } from "./TextGate.ts";

/** An event written by a splice: the name of its frame, and its data as JSON, or as a string for a sentinel (`[DONE]`). */
export type SplicedEvent = Pick<SseEvent, "event"> & { readonly json: Json.JsonRecord | string };

/** Joins continuations to one response. It holds the text that the client has read, up to the maximum length of shown text. */
export interface Splice {
  /**
   * Called for each event that was sent to the client, either from the first attempt or as a splice wrote it.
   *
   * @param json the parsed data; text for a sentinel
   * @param event the name of its frame; some servers state the type of an event only there
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
