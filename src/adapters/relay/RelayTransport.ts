/**
 * The interface between the relay and a provider: requests, heads, and exchanges that can be aborted.
 */
import { Predicate, Schema } from "effect";
import type { Delivery } from "../../domain/AttemptFacts.ts";
import { Failure } from "../../domain/Failure.ts";
import { dropOldest } from "../../domain/Limits.ts";
import type { PolledReader } from "../../runtime/attempt/AsyncSource.ts";

/** Header names and values, in order. A name may occur more than once. */
export type RelayHeaders = ReadonlyArray<readonly [name: string, value: string]>;

/** A request as the client made it. */
export interface RelayRequest {
  readonly method: string;
  /** Absolute URL. */
  readonly url: string;
  readonly headers: RelayHeaders;
  /** Sent unchanged with every attempt. */
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  /**
   * Identifies the client if one credential serves many, so that no request counts as the repeat of another client's request. It is not
   * sent.
   */
  readonly tenant?: string | undefined;
}

/** A response head as the provider sent it. */
export interface RelayHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: RelayHeaders;
}

/** Callbacks of a running exchange. Both are called synchronously and must not throw. */
export interface RelayReporters {
  /** Reports `ambiguous` (or `not_sent`, if that is proven) before any other action, and `accepted` at a head. */
  readonly delivery: (delivery: Delivery, status?: number) => void;
  /** Reports the number of body bytes that have just arrived. */
  readonly bytes: (count: number) => void;
}

/** Result of a poll for the head: the head, an error, or undefined if neither has arrived. */
export type PolledHead =
  | { readonly _tag: "head"; readonly head: RelayHead }
  | { readonly _tag: "error"; readonly error: unknown }
  | undefined;

/** A pending head. `wait` calls back once, when a poll may return something. */
export interface Coming {
  readonly pollHead: () => PolledHead;
  readonly wait: (wake: () => void) => void;
}

/** The bytes of a body as they arrive. */
export type Arrivals = Pick<PolledReader<Uint8Array<ArrayBuffer>>, "poll" | "wait">;

/** A request and its response, for one reader that reads the head first. */
export interface RelayExchange {
  /**
   * Resolves to the response head, with any status. Rejects with the provider's or the network's own error, which is classified
   * from its cause chain. If the `reason` of the error is a `Failure`, that failure counts.
   */
  readonly head: () => Promise<RelayHead>;
  /** Provides the same head without a promise, if the transport supports it. */
  readonly coming?: Coming;
  /**
   * Resolves to the bytes of the body that have arrived, at least one array; undefined at its clean end. They have no content encoding, so
   * a transport that did not request plain bytes decodes them. While no read waits, the transport buffers a bounded amount.
   */
  readonly read: () => Promise<ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined>;
  /**
   * Provides the same bytes without a promise per read, if the transport supports it. Called after the head. A polled body may be
   * continued with `read`. Returns undefined if this body requires promises.
   */
  readonly arrivals?: () => Arrivals | undefined;
  /** Aborts the exchange immediately. Must not throw or wait, and may be called at any time and repeatedly. */
  readonly abort: () => void;
}

/** Opens exchanges: over `fetch` for `./fetch`, over undici for the gateway. It must not retry. */
export interface RelayTransport {
  readonly open: (request: RelayRequest, reporters: RelayReporters) => RelayExchange;
  /** Omitted if no credential of an operator is sent. */
  readonly mask?: ErrorMask;
}

/** Removes an operator's secrets from a provider's error before it is classified, recorded or forwarded. */
export interface ErrorMask {
  readonly refusal: (refusal: RelayRefusal) => RelayRefusal;
  readonly bytes: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;
  readonly text: (text: string) => string;
}

/** A provider's unsuccessful response, unchanged. */
export interface RelayRefusal {
  readonly head: RelayHead;
  readonly body: ReadonlyArray<Uint8Array<ArrayBuffer>>;
  /** True if the body is complete, within the limits of `WholeBody.ts`. */
  readonly whole: boolean;
}

const isRefusal = (value: unknown): value is RelayRefusal =>
  Predicate.hasProperty(value, "head") && Predicate.hasProperty(value, "body") && Predicate.hasProperty(value, "whole");

/** Error of an attempt with a working transport, but an unsuccessful response or invalid bytes. */
export class RelayError extends Schema.TaggedError<RelayError>()("RelayError", {
  reason: Failure,
  message: Schema.String,
  /** The provider's own response, if any. */
  response: Schema.optionalKey(Schema.declare(isRefusal)),
}) {}

/**
 * Creates the error of a failed attempt.
 *
 * @param response the unsuccessful response
 */
export const relayError = (reason: Failure, response?: RelayRefusal): RelayError =>
  new RelayError({
    reason,
    message: `The provider's response failed: ${reason.kind}`,
    ...(response === undefined ? {} : { response }),
  });

/** Returns the first value of a header, by its lower-case name. Names are compared without case (RFC 9110, 5.1). */
export const headerOf = (headers: RelayHeaders, name: string): string | undefined => valuesOf(headers, name)[0];

/** Returns all values of a header in order, by its lower-case name. */
export const valuesOf = (headers: RelayHeaders, name: string): ReadonlyArray<string> => {
  const known = indexes.get(headers) ?? indexOf(headers);
  return known.get(name) ?? noValues;
};

/**
 * Returns the first value of a header without building an index, for lists from which few names are read.
 *
 * @param name name in lower case
 */
export const fieldOf = (headers: RelayHeaders, name: string): string | undefined => {
  for (const [given, value] of headers) if (isNamed(given, name)) return value;
  return undefined;
};

/** Returns true if a header's name equals a lower-case name, ignoring case. */
export const isNamed = (given: string, name: string): boolean =>
  given.length === name.length && (given === name || given.toLowerCase() === name);

/** One index per list of headers, because about forty names are looked up in a request. Lists of headers never change. */
const indexes = new WeakMap<RelayHeaders, ReadonlyMap<string, ReadonlyArray<string>>>();

const indexOf = (headers: RelayHeaders): ReadonlyMap<string, ReadonlyArray<string>> => {
  const index = new Map<string, Array<string>>();
  for (const [given, value] of headers) {
    const name = given.toLowerCase();
    const values = index.get(name);
    if (values === undefined) index.set(name, [value]);
    else values.push(value);
  }
  indexes.set(headers, index);
  return index;
};

const noValues: ReadonlyArray<string> = [];

/** The components of an absolute URL. */
export type RelayAddress = Readonly<
  Pick<URL, "host" | "hostname" | "href" | "origin" | "pathname" | "search" | "searchParams">
>;

/** Maximum URLs that are cached. */
export const addressesMax = 256;

/** Maximum length of a cached URL, in UTF-16 code units. */
const addressCharactersMax = 512;

/**
 * Parses a URL. Results are cached, because most requests use a few addresses. A URL with a query is not cached, because it may contain a
 * key.
 *
 * @returns undefined for an invalid URL
 */
export const readAddress = (text: string): RelayAddress | undefined => {
  const known = addresses.get(text);
  if (known !== undefined) return known;
  if (!URL.canParse(text)) return undefined;
  const { hash, host, hostname, href, origin, password, pathname, search, searchParams, username } = new URL(text);
  const address: RelayAddress = { host, hostname, href, origin, pathname, search, searchParams };
  const isPlain = search === "" && hash === "" && username === "" && password === "" && !text.includes("?");
  if (!isPlain || text.length > addressCharactersMax) return address;
  addresses.set(text, address);
  dropOldest(addresses, addressesMax);
  return address;
};

const addresses = new Map<string, RelayAddress>();

/** Converts headers to a record with lower-case names for classifiers. Joins multiple values of a name (RFC 9110, 5.3). */
export const recordOf = (headers: RelayHeaders): Readonly<Record<string, string>> => {
  const record: Record<string, string> = {};
  for (const [given, value] of headers) {
    const name = given.toLowerCase();
    record[name] = record[name] === undefined ? value : `${record[name]}, ${value}`;
  }
  return record;
};

/** Headers that contain a credential in one of the four protocols. */
const secrets = ["authorization", "x-api-key", "api-key", "x-goog-api-key"] as const;

/** Headers that choose the account to charge. */
const accounts = ["openai-organization", "openai-project", "x-goog-user-project"] as const;

/**
 * Returns the credential of a request as one string; empty if there is none. A key counts as the same in any header and in the URL.
 *
 * Requests with the same credential share the waits that their provider announces. The result is a secret: callers immediately convert it
 * to a keyed digest and keep it nowhere.
 *
 * @param url absolute URL; Gemini's clients may put their key into it
 */
export const credentialIn = (url: string, given: RelayHeaders): string => {
  const keys: Array<string> = [];
  const take = (key: string) => {
    if (key !== "" && !keys.includes(key)) keys.push(key);
  };
  if (url.includes("?")) take(readAddress(url)?.searchParams.get("key") ?? "");
  for (const name of secrets) {
    const value = fieldOf(given, name);
    if (value !== undefined) take(bare(value));
  }
  const found = [keys.length < 2 ? (keys[0] ?? "") : keys.sort().join(" ")];
  for (const name of accounts) found.push(fieldOf(given, name) ?? "");
  return found.every((value) => value === "") ? "" : JSON.stringify(found);
};

const bare = (value: string): string => withoutSignature(value.trim().replace(/^bearer\s+/i, ""));

/** Replaces a signature by the id of its key, because a signed request has a new signature each time. */
const withoutSignature = (value: string): string => /^AWS4-\S+\s+Credential=([^/,\s]+)/.exec(value)?.[1] ?? value;

/** Number of hexadecimal characters that are kept of a digest: 128 bits. */
export const digestCharacters = 32;
