/**
 * Defines the interface between the relay and a provider: requests, heads, and exchanges that can be aborted.
 */
import { Predicate, Schema } from "effect";
import type { Delivery } from "../../domain/AttemptFacts.ts";
import { Failure } from "../../domain/Failure.ts";
import { dropOldest } from "../../domain/Limits.ts";
import type { PolledReader } from "../../runtime/attempt/AsyncSource.ts";

/** Header names and values, in order. A name may occur more than once. */
export type RelayHeaders = ReadonlyArray<readonly [name: string, value: string]>;

/** A request, as the client sent it. */
export interface RelayRequest {
  readonly method: string;
  /** Absolute URL. */
  readonly url: string;
  readonly headers: RelayHeaders;
  /** Body of the request, sent unchanged with every attempt. */
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  /**
   * Identifies the client if several clients use the same credential, so that a request never counts as the repeat of another client's. It
   * is not sent to the provider.
   */
  readonly tenant?: string | undefined;
}

/** A response head, as the provider sent it. */
export interface RelayHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: RelayHeaders;
}

/** Callbacks of an exchange. They are called synchronously and must not throw. */
export interface RelayReporters {
  /** Reports `ambiguous` (or `not_sent`, if that is certain) before anything is sent, and `accepted` when the head arrives. */
  readonly delivery: (delivery: Delivery, status?: number) => void;
  /** Reports the number of body bytes that have arrived since the last call. */
  readonly bytes: (count: number) => void;
}

/** Result of a poll for the head: the head, an error, or undefined if neither has arrived yet. */
export type PolledHead =
  | { readonly _tag: "head"; readonly head: RelayHead }
  | { readonly _tag: "error"; readonly error: unknown }
  | undefined;

/** A head that has not arrived yet. `wait` calls back once, when a poll may succeed. */
export interface Coming {
  readonly pollHead: () => PolledHead;
  readonly wait: (wake: () => void) => void;
}

/** The bytes of a body, as they arrive. */
export type Arrivals = Pick<PolledReader<Uint8Array<ArrayBuffer>>, "poll" | "wait">;

/** A request and its response, for one reader. The reader must read the head first. */
export interface RelayExchange {
  /**
   * Resolves to the response head, with any status. Rejects with the error of the provider or the network. The error is classified by its
   * cause chain; if its `reason` is a `Failure`, that failure is used.
   */
  readonly head: () => Promise<RelayHead>;
  /** Provides the head without a promise, if the transport supports that. */
  readonly coming?: Coming;
  /**
   * Resolves to the body bytes that have arrived, at least one array; undefined at the clean end. The bytes have no content encoding: the
   * transport decodes them if the provider encoded them. While no read waits, the transport buffers a limited amount.
   */
  readonly read: () => Promise<ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined>;
  /**
   * Provides the bytes without a promise per read, if the transport supports that. It may be called after the head. The reader may switch
   * from polling to `read`. Returns undefined if this body can only be read with promises.
   */
  readonly arrivals?: () => Arrivals | undefined;
  /** Aborts the exchange at once. It may be called at any time and repeatedly, and must not throw or wait. */
  readonly abort: () => void;
}

/** Opens exchanges. `./fetch` uses `fetch`, the gateway uses undici. A transport must not retry. */
export interface RelayTransport {
  readonly open: (request: RelayRequest, reporters: RelayReporters) => RelayExchange;
  /** Masks the operator's credential in errors. Omitted if requests contain no such credential. */
  readonly mask?: ErrorMask;
}

/** Masks an operator's secrets in a provider's error, before the error is classified, recorded or forwarded. */
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

/** An attempt failed although its transport worked: the response was unsuccessful, or its bytes are invalid. */
export class RelayError extends Schema.TaggedError<RelayError>()("RelayError", {
  reason: Failure,
  message: Schema.String,
  /** The provider's response, if there is one. */
  response: Schema.optionalKey(Schema.declare(isRefusal)),
}) {}

/**
 * Creates the error of an attempt that failed with a response.
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
 * Returns the first value of a header without an index. It is faster for lists from which only a few names are read.
 *
 * @param name name in lower case
 */
export const fieldOf = (headers: RelayHeaders, name: string): string | undefined => {
  for (const [given, value] of headers) if (isNamed(given, name)) return value;
  return undefined;
};

/**
 * Returns true if a header has this name, ignoring case.
 *
 * @param name name in lower case
 */
export const isNamed = (given: string, name: string): boolean =>
  given.length === name.length && (given === name || given.toLowerCase() === name);

/** Cache of indexes, by list of headers, because about forty names are looked up per request. Lists of headers never change. */
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

/** Maximum number of cached URLs. */
export const addressesMax = 256;

/** Maximum length of a cached URL, in UTF-16 code units. */
const addressCharactersMax = 512;

/**
 * Parses a URL. Results are cached, because most requests use a few addresses. A URL with a query is not cached, because the query may
 * contain a key.
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

/** Converts headers to a record with lower-case names, for classifiers. Several values of the same name are joined (RFC 9110, 5.3). */
export const recordOf = (headers: RelayHeaders): Readonly<Record<string, string>> => {
  const record: Record<string, string> = {};
  for (const [given, value] of headers) {
    const name = given.toLowerCase();
    record[name] = record[name] === undefined ? value : `${record[name]}, ${value}`;
  }
  return record;
};

/** Headers that contain a credential in one of the protocols. */
const secrets = ["authorization", "x-api-key", "api-key", "x-goog-api-key"] as const;

/** Headers that select the account that pays. */
const accounts = ["openai-organization", "openai-project", "x-goog-user-project"] as const;

/**
 * Returns the credentials of a request as one string; empty if there are none. A key has the same form whether it is in a header or in the
 * URL.
 *
 * Requests with the same credentials wait for the same announced cooldowns. The result is secret: callers convert it to a keyed digest at
 * once and do not store it.
 *
 * @param url absolute URL; Gemini's clients may put their key into it
 */
export const credentialIn = (url: string, given: RelayHeaders): string => {
  const known = credentials.get(given);
  if (known?.url === url) return known.credential;
  const credential = findCredential(url, given);
  credentials.set(given, { url, credential });
  return credential;
};

/** The credential of the last request with each list of headers. The list contains it too. */
const credentials = new WeakMap<RelayHeaders, { readonly url: string; readonly credential: string }>();

const findCredential = (url: string, given: RelayHeaders): string => {
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

/** Replaces a signature with the id of its key, because the signature differs for each request. */
const withoutSignature = (value: string): string => /^AWS4-\S+\s+Credential=([^/,\s]+)/.exec(value)?.[1] ?? value;

/** Number of hexadecimal characters of a digest that are kept: 128 bits. */
export const digestCharacters = 32;
