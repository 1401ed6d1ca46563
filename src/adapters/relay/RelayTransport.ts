/**
 * Describes how the relay reaches a provider: requests and heads as they are sent, and an exchange that can be given up.
 */
import { Predicate, Schema } from "effect";
import type { Delivery } from "../../domain/AttemptFacts.ts";
import { Failure } from "../../domain/Failure.ts";
import { dropOldest } from "../../domain/Limits.ts";
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

/** What is known of a head: it, why there is none, or nothing yet. */
export type PolledHead =
  | { readonly _tag: "head"; readonly head: RelayHead }
  | { readonly _tag: "error"; readonly error: unknown }
  | undefined;

/** A head on its way. `wait` calls back once, when there may be something to poll. */
export interface Coming {
  readonly pollHead: () => PolledHead;
  readonly wait: (wake: () => void) => void;
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
  /** The same head without a promise, where the transport has it so. */
  readonly coming?: Coming;
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
  /** Left out where no credential of an operator is sent. */
  readonly mask?: ErrorMask;
}

/** Takes an operator's secrets out of what a provider says of an error, before it is classified, recorded or handed on. */
export interface ErrorMask {
  readonly refusal: (refusal: RelayRefusal) => RelayRefusal;
  readonly bytes: (bytes: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;
  readonly text: (text: string) => string;
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

/** The value of a header, by its name in lower case; of several the first. Names are compared without case (RFC 9110, 5.1). */
export const headerOf = (headers: RelayHeaders, name: string): string | undefined => valuesOf(headers, name)[0];

/** All values of a header, by its name in lower case, in their order. */
export const valuesOf = (headers: RelayHeaders, name: string): ReadonlyArray<string> => {
  const known = indexes.get(headers) ?? indexOf(headers);
  return known.get(name) ?? noValues;
};

/**
 * The value of a header, for lists that are asked for few names: no index is made of them.
 *
 * @param name in lower case; of several the first counts
 */
export const fieldOf = (headers: RelayHeaders, name: string): string | undefined => {
  for (const [given, value] of headers) if (isNamed(given, name)) return value;
  return undefined;
};

/** Whether a header's name is another one in lower case. */
export const isNamed = (given: string, name: string): boolean =>
  given.length === name.length && (given === name || given.toLowerCase() === name);

/** One index for each list of headers: a request's are asked for some forty names. Lists of headers never change. */
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

/** An absolute address, taken apart. */
export type RelayAddress = Readonly<
  Pick<URL, "host" | "hostname" | "href" | "origin" | "pathname" | "search" | "searchParams">
>;

/** Most addresses that are remembered. */
export const addressesMax = 256;

/** Longest address that is remembered, in UTF-16 code units. */
const addressCharactersMax = 512;

/**
 * Takes an address apart. The same few are asked for again and again; one with a query may hold a key, and is not remembered.
 *
 * @returns undefined for one that cannot be read
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

/** The headers as a record of lower-case names, as classifiers read them; several of a name are joined (RFC 9110, 5.3). */
export const recordOf = (headers: RelayHeaders): Readonly<Record<string, string>> => {
  const record: Record<string, string> = {};
  for (const [given, value] of headers) {
    const name = given.toLowerCase();
    record[name] = record[name] === undefined ? value : `${record[name]}, ${value}`;
  }
  return record;
};

/** Headers that hold a credential in one of the four protocols. */
const secrets = ["authorization", "x-api-key", "api-key", "x-goog-api-key"] as const;

/** Headers that choose the account that it is used for. */
const accounts = ["openai-organization", "openai-project", "x-goog-user-project"] as const;

/**
 * The credential of a request as one text; empty where it carries none. Where in the request it stands says nothing: a key is the same
 * one in any header and in the address.
 *
 * Requests of one credential share what its provider says of a wait. What is read here is a secret: it is made a keyed digest of at
 * once, and kept nowhere.
 *
 * @param url absolute; Gemini's clients may give their key in it
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

const bare = (value: string): string => unsigned(value.trim().replace(/^bearer\s+/i, ""));

/** A request that is signed has another signature each time: its key's id names the credential. */
const unsigned = (value: string): string => /^AWS4-\S+\s+Credential=([^/,\s]+)/.exec(value)?.[1] ?? value;

/** Characters of a digest that are kept: 128 bits. */
export const digestCharacters = 32;
