/** Describes one exchange with a provider in numbers. Every attempt has such a record, even if its run recovered. */
import type { Delivery } from "../domain/AttemptFacts.ts";
import type { Failure } from "../domain/Failure.ts";
import { isPublic } from "../recorder/export/ExportLabel.ts";
import type { Exchange } from "./connection/Exchange.ts";

/**
 * One request and its response, in numbers and names. It holds no path, query, header, body or message, and `code` contains
 * only known words of error codes. All times are milliseconds of the monotonic clock, all sizes bytes.
 */
export interface ExchangeRecord {
  /** Number of the exchange. The client counts its exchanges from 1, in the order in which they start. */
  readonly number: number;
  /** Scheme, host and port; empty if the address cannot be read. */
  readonly origin: string;
  /** Time since the end of the previous call to this origin; 0 while another call is running, undefined for the first call. */
  readonly idle_ms: number | undefined;
  /**
   * Number of kept connections to this origin that the client has closed since the previous call to this origin, because they were idle too
   * long or may have been dead.
   */
  readonly recycled: number;
  /** Number of the connection, which the client counts from 1; undefined if the exchange never had a connection. */
  readonly connection: number | undefined;
  /** True if the connection had carried an earlier request. */
  readonly reused: boolean;
  /** Time for which the connection was idle before this request; 0 for a new connection. */
  readonly connection_idle_ms: number | undefined;
  /**
   * Time from the start of the exchange to the first byte of the request. It includes credentials, waiting for a connection, name lookup,
   * TCP and TLS.
   */
  readonly wait_ms: number | undefined;
  readonly request_bytes: number;
  /** Time from the request's first byte to the response head. */
  readonly head_ms: number | undefined;
  /** Time from the request's first byte to the first byte of the response body. */
  readonly first_byte_ms: number | undefined;
  /** Size of the response body. */
  readonly bytes: number;
  readonly duration_ms: number;
  readonly status: number | undefined;
  /** Proven delivery of the request: `not_sent`, `ambiguous` or `accepted`. */
  readonly delivery: Delivery;
  /** `complete` after the terminal marker, `failed`, or `aborted` by the reader of the stream. */
  readonly outcome: "complete" | "failed" | "aborted";
  readonly failure: Failure["kind"] | undefined;
  /** Code of the failure; `_OTHER` if it contains unknown words. */
  readonly code: string | undefined;
}

/** The end of an exchange, as reported by its stream. */
export type Ending =
  | { readonly outcome: "complete" | "aborted" }
  | { readonly outcome: "failed"; readonly failure: Failure };

/** Properties of an exchange that are known before it begins. */
export interface Opening {
  readonly number: number;
  readonly origin: string;
  readonly idleMs: number | undefined;
  readonly recycled: number;
}

/**
 * Creates the record of an ended exchange.
 *
 * @param now monotonic milliseconds
 */
export const recordOf = (opening: Opening, exchange: Exchange, ending: Ending, now: number): ExchangeRecord => {
  const { carried, firstByteAt, headAt, openedAt, startedAt } = exchange.times;
  const durationOf = (from: number | undefined, to: number | undefined) =>
    from === undefined || to === undefined ? undefined : roundMs(to - from);
  const failure = ending.outcome === "failed" ? ending.failure : undefined;
  return {
    number: opening.number,
    origin: opening.origin,
    idle_ms: durationOf(0, opening.idleMs),
    recycled: opening.recycled,
    connection: carried?.connection,
    reused: carried?.reused ?? false,
    connection_idle_ms: durationOf(0, carried?.idleMs),
    wait_ms: durationOf(openedAt, startedAt),
    request_bytes: exchange.requestBytes,
    head_ms: durationOf(startedAt, headAt),
    first_byte_ms: durationOf(startedAt, firstByteAt),
    bytes: exchange.receivedBytes,
    duration_ms: roundMs(now - openedAt),
    status: exchange.status,
    delivery: exchange.delivery,
    outcome: ending.outcome,
    failure: failure?.kind,
    code: failure?.code === undefined || isPublic(failure.code) ? failure?.code : "_OTHER",
  };
};

/** Rounds to a tenth of a millisecond, because an event loop cannot measure more precisely. */
const roundMs = (ms: number): number => Math.round(ms * 10) / 10;
