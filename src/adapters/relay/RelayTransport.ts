/**
 * Describes how the relay reaches a provider: requests and heads as they are sent, and an exchange that can be given up.
 */
import { Predicate, Schema } from "effect";
import type { Delivery } from "../../domain/AttemptFacts.ts";
import { Failure } from "../../domain/Failure.ts";
import type { PolledReader } from "../../runtime/attempt/AsyncSource.ts";

/** Header names and values, in order; a name may come more than once. */
export type RelayHeaders = ReadonlyArray<readonly [name: string, value: string]>;

/** A request as the client made it. */
export interface RelayRequest {
  readonly method: string;
  /** Absolute. */
  readonly url: string;
  readonly headers: RelayHeaders;
  /** Sent as it is with every attempt. */
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  /** Whose it is, where one credential serves many: no client repeats another one's request. It is not sent. */
  readonly tenant?: string | undefined;
}

/** A response head as the provider sent it. */
export interface RelayHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: RelayHeaders;
}

/** The reporters of an exchange while it runs. Both are called synchronously and do not throw. */
export interface RelayReporters {
  /** A transport says `ambiguous` (or, where it can prove it, `not_sent`) before it does anything, `accepted` at a head. */
  readonly delivery: (delivery: Delivery, status?: number) => void;
  /** Bytes of the response body that have just come. */
  readonly bytes: (count: number) => void;
}

/** The bytes of a body as they arrive. */
export type Arrivals = Pick<PolledReader<Uint8Array<ArrayBuffer>>, "poll" | "wait">;

/** One request on its way and its response, for one reader that reads the head first. */
export interface RelayExchange {
  /**
   * The response head, of any status. It rejects with the provider's or the network's own error, which is classified from its
   * cause chain; of an error whose `reason` is a `Failure`, that failure counts.
   */
  readonly head: () => Promise<RelayHead>;
  /**
   * Bytes of the body that have arrived, at least one array; undefined at its clean end. They have no content encoding: a
   * transport that did not ask for plain bytes decodes them. While no read waits, the transport buffers within a bound.
   */
  readonly read: () => Promise<ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined>;
  /**
   * The same bytes without a promise for each read, where the transport has them so; asked for behind the head. A body that is polled
   * may be read on by `read`. Undefined where this body takes promises all the same.
   */
  readonly arrivals?: () => Arrivals | undefined;
  /** Gives the exchange up at once. Never throws, waits for nothing, may be called at any time and more than once. */
  readonly abort: () => void;
}

/** Opens exchanges: over `fetch` for `./fetch`, over undici for the gateway. It retries nothing by itself. */
export interface RelayTransport {
  readonly open: (request: RelayRequest, reporters: RelayReporters) => RelayExchange;
}

/** A provider's response that was no success, as it came. */
export interface RelayRefusal {
  readonly head: RelayHead;
  readonly body: ReadonlyArray<Uint8Array<ArrayBuffer>>;
  /** The body came to its end, within the limits of `WholeBody.ts`. */
  readonly whole: boolean;
}

const isRefusal = (value: unknown): value is RelayRefusal =>
  Predicate.hasProperty(value, "head") && Predicate.hasProperty(value, "body") && Predicate.hasProperty(value, "whole");

/** The error of an attempt whose transport did not fail: its response, or its bytes, were no success. */
export class RelayError extends Schema.TaggedError<RelayError>()("RelayError", {
  reason: Failure,
  message: Schema.String,
  /** The provider's own response, where there was one. */
  response: Schema.optionalKey(Schema.declare(isRefusal)),
}) {}

/**
 * Makes the error of a failed attempt.
 *
 * @param response the response that was no success
 */
export const relayError = (reason: Failure, response?: RelayRefusal): RelayError =>
  new RelayError({
    reason,
    message: `The provider's response failed: ${reason.kind}`,
    ...(response === undefined ? {} : { response }),
  });

/** The value of a header; of several the first. Names are compared without case (RFC 9110, 5.1). */
export const headerOf = (headers: RelayHeaders, name: string): string | undefined =>
  headers.find(([key]) => key.toLowerCase() === name)?.[1];

/** The headers as a record of lower-case names, as classifiers read them; several of a name are joined (RFC 9110, 5.3). */
export const recordOf = (headers: RelayHeaders): Readonly<Record<string, string>> => {
  const record: Record<string, string> = {};
  for (const [given, value] of headers) {
    const name = given.toLowerCase();
    record[name] = record[name] === undefined ? value : `${record[name]}, ${value}`;
  }
  return record;
};
