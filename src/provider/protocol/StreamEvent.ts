/**
 * Describes the events that this package itself writes into a protocol's response: one that keeps the connection alive, and those that end
 * an abandoned response.
 */
import type * as Json from "../../domain/Json.ts";
import type { TextFraming } from "../stream/Framing.ts";
import * as Sse from "../stream/Sse.ts";

/** An event of a stream: its data, and its name, if the protocol names events. */
export interface StreamEvent {
  readonly event?: string;
  readonly data: object;
}

/** The text of one write to the client, and the pause after it. */
export interface EndingWrite {
  readonly text: string;
  /** Sent in place of the text, for a protocol whose events are binary. */
  readonly bytes?: Uint8Array<ArrayBuffer>;
  /** Milliseconds until the next write or, after the last one, until the body ends. */
  readonly pauseMs: number;
}

/** The run that an event is written for. */
export interface EventRun {
  readonly id: string;
  /** The model in the request, if any. */
  readonly model?: string;
}

/**
 * Creates an event that clients of the protocol accept and do not show.
 *
 * @param last the data of the last event that was sent; undefined before the first
 */
export type NoOp = (last: Json.JsonRecord | undefined, run: EventRun) => StreamEvent;

/** The form in which a protocol reports to a client that its run was abandoned. */
export interface GivenUpForm {
  /** Creates the body of a response with an error status. `code` names the failure; undefined if unknown. */
  readonly document: (message: string, code: string | undefined, status: number) => object;
  /**
   * Creates the writes that end a stream after its response head was sent. The body then ends cleanly if clients are known to treat these
   * writes as an error, and breaks otherwise.
   *
   * @param last the data of the last event that was sent; undefined before the first
   */
  readonly ending: (message: string, last: Json.JsonRecord | undefined, run: EventRun) => ReadonlyArray<EndingWrite>;
}

/**
 * Pause between an error event and the end of its body, in milliseconds. cline drops an event if the body ends directly after it, and shows
 * the event after this pause (measured with cline 3.0.65).
 */
export const endingPauseMs = 200;

/**
 * Returns the failure code in a separate field of an error document. The protocol's own `code` does not contain it, because clients that
 * retry a broken connection read codes like `ECONNRESET` there.
 */
export const recoveryCodeField = (code: string | undefined): { readonly recovery_code?: string } =>
  code === undefined ? {} : { recovery_code: code };

/**
 * The type of an error response that the gateway writes itself. Before the response head is sent, clients decide by the status, so one type
 * serves all protocols and can say that the request was not at fault. Afterwards clients decide by the type, so each protocol has its own.
 */
export const documentType = "gateway_upstream_failed";

/** Encodes an event as the text of a stream. */
export const encodeEvent = ({ data, event }: StreamEvent, framing: TextFraming = Sse.framing): string =>
  framing.encode({ ...(event === undefined ? {} : { event }), data: JSON.stringify(data) });

/**
 * Ends a stream with events in a single write. A blank line comes first, because the bytes already sent may end inside an event.
 */
export const endingOf = (...events: ReadonlyArray<StreamEvent>): ReadonlyArray<EndingWrite> => [
  { text: `\n\n${events.map((event) => encodeEvent(event)).join("")}`, pauseMs: endingPauseMs },
];
