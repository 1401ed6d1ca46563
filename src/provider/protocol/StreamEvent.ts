/**
 * Describes the events that this package writes into a response of a protocol by itself: one that waits, and those that end a
 * response which was given up.
 */
import type * as Json from "../../domain/Json.ts";

/** An event of a stream: its name, where the protocol's events have one, and its data. */
export interface StreamEvent {
  readonly event?: string;
  readonly data: object;
}

/** What one write to the client holds, and how long the client is left alone with it. */
export interface EndingWrite {
  readonly text: string;
  /** Milliseconds until the next write, and behind the last one until the body ends. */
  readonly pauseMs: number;
}

/** The run that an event is written for. */
export interface EventRun {
  readonly id: string;
  /** The model that the request names, where it names one. */
  readonly model?: string;
}

/**
 * Makes the event that clients of a protocol count and show nothing of.
 *
 * @param last the data of the last event that has left; undefined before the first
 */
export type NoOp = (last: Json.JsonRecord | undefined, run: EventRun) => StreamEvent;

/** How a run that is given up says so in the words of a protocol. */
export interface GivenUpForm {
  /** The body of a response whose status says that it failed. `code` is what broke, left out where it is not known. */
  readonly document: (message: string, code: string | undefined, status: number) => object;
  /**
   * The writes that end a stream of which a head has left. The body ends cleanly behind them where the client is known to
   * take them for an error, and breaks elsewhere.
   *
   * @param last the data of the last event that has left; undefined before the first
   */
  readonly ending: (message: string, last: Json.JsonRecord | undefined, run: EventRun) => ReadonlyArray<EndingWrite>;
}

/**
 * A client is left alone with an error event for so long before its body ends, in milliseconds: cline drops an event whose
 * body ends at once and shows it after so long (measured with cline 3.0.65).
 */
export const endingPauseMs = 200;

/**
 * What broke, as a document has it beside the protocol's own fields. Not as their `code`: clients that ask again after a broken
 * connection look for `ECONNRESET` and the like there.
 */
export const told = (code: string | undefined): { readonly recovery_code?: string } =>
  code === undefined ? {} : { recovery_code: code };

/**
 * The type of an error response that the gateway writes itself. Clients decide by the status before a head, so the type can say that the
 * request was not at fault. After a head they decide by the type, and each protocol has its own.
 */
export const documentType = "gateway_upstream_failed";

/** An event as the bytes of a stream have it. */
export const written = ({ data, event }: StreamEvent): string =>
  `${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`;

/**
 * The writes of an ending whose events go in one write. A blank line comes first, because what was handed over may have ended
 * inside of an event.
 */
export const endingOf = (...events: ReadonlyArray<StreamEvent>): ReadonlyArray<EndingWrite> => [
  { text: `\n\n${events.map(written).join("")}`, pauseMs: endingPauseMs },
];
