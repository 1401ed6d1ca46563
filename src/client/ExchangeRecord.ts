/**
 * Describes one exchange with a provider in numbers: the telemetry of every attempt, also of recovered ones.
 */
import type { Delivery } from "../domain/AttemptFacts.ts";
import type { Failure } from "../domain/Failure.ts";
import { isPublic } from "../recorder/export/ExportLabel.ts";
import type { Exchange } from "./connection/Exchange.ts";

/**
 * One request and its response, in numbers and names. It holds no path, query, header, body or message; `code` is a word that
 * error codes are made of. All times are milliseconds of the monotonic clock, all sizes bytes.
 */
export interface ExchangeRecord {
  /** Counts the exchanges of a client, from 1, in the order in which they began. */
  readonly number: number;
  /** Scheme, host and port; empty for an address that cannot be read. */
  readonly origin: string;
  /** Since the end of the previous call to this origin; 0 while one runs, undefined for the first. */
  readonly idle_ms: number | undefined;
  /** Kept connections to this origin that the client has closed since its previous call: idle too long, or no longer trusted. */
  readonly recycled: number;
  /** Counts the connections of a client, from 1; undefined where the exchange never got one. */
  readonly connection: number | undefined;
  /** The connection had carried a request before. */
  readonly reused: boolean;
  /** How long the connection had waited for this request; 0 for a fresh one. */
  readonly connection_idle_ms: number | undefined;
  /** From the start to the request's first byte: credentials, waiting for a connection, name lookup, TCP, TLS. */
  readonly wait_ms: number | undefined;
  /** Size of the request's body. */
  readonly request_bytes: number;
  /** From the request's first byte to the response head. */
  readonly head_ms: number | undefined;
  /** From the request's first byte to the first byte of the response's body. */
  readonly first_byte_ms: number | undefined;
  /** Bytes of the response's body. */
  readonly bytes: number;
  /** From the start to the end. */
  readonly duration_ms: number;
  readonly status: number | undefined;
  /** How far the request got. */
  readonly delivery: Delivery;
  /** `complete` after the terminal marker, `failed`, or `aborted` by the reader of the stream. */
  readonly outcome: "complete" | "failed" | "aborted";
  /** The kind of the failure. */
  readonly failure: Failure["kind"] | undefined;
  /** The failure's code; `_OTHER` for one of unknown words. */
  readonly code: string | undefined;
}

/** How an exchange ended, as its stream reports it. */
export type Ending =
  | { readonly outcome: "complete" | "aborted" }
  | { readonly outcome: "failed"; readonly failure: Failure };

/** The facts of an exchange before it begins. */
export interface Opening {
  readonly number: number;
  readonly origin: string;
  readonly idleMs: number | undefined;
  readonly recycled: number;
}

/**
 * Makes the record of an exchange that is over.
 *
 * @param now monotonic milliseconds
 */
export const recordOf = (opening: Opening, exchange: Exchange, ending: Ending, now: number): ExchangeRecord => {
  const { carried, firstByteAt, headAt, openedAt, startedAt } = exchange.times;
  const since = (from: number | undefined, to: number | undefined) =>
    from === undefined || to === undefined ? undefined : rounded(to - from);
  const failure = ending.outcome === "failed" ? ending.failure : undefined;
  return {
    number: opening.number,
    origin: opening.origin,
    idle_ms: since(0, opening.idleMs),
    recycled: opening.recycled,
    connection: carried?.connection,
    reused: carried?.reused ?? false,
    connection_idle_ms: since(0, carried?.idleMs),
    wait_ms: since(openedAt, startedAt),
    request_bytes: exchange.requestBytes,
    head_ms: since(startedAt, headAt),
    first_byte_ms: since(startedAt, firstByteAt),
    bytes: exchange.receivedBytes,
    duration_ms: rounded(now - openedAt),
    status: exchange.status,
    delivery: exchange.delivery,
    outcome: ending.outcome,
    failure: failure?.kind,
    code: failure?.code === undefined || isPublic(failure.code) ? failure?.code : "_OTHER",
  };
};

/** An event loop cannot measure less than a tenth of a millisecond. */
const rounded = (ms: number): number => Math.round(ms * 10) / 10;
