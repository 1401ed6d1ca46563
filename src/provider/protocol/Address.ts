/**
 * Describes where the requests of a protocol go, and how one is recognised by its address and its body.
 */
import * as Json from "../../domain/Json.ts";

/** The fields of a request that say where it goes. */
export interface Target {
  /** Without slashes at its end. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Whether the request has a header, by its name in lower case. */
  readonly has: (header: string) => boolean;
}

/** A request that is the protocol's, by its address. */
export interface Claim {
  /** The model that the path names; empty where the body does. */
  readonly model: string;
  /** Whether a stream is asked for; left out where the body says it. */
  readonly streaming?: boolean;
}

/**
 * What of a request its provider keeps, so that posting it again makes and bills a second one. `request`: from when it may
 * have arrived. `response`: from the response's first event on.
 */
export type Keeping = "nothing" | "response" | "request";

/** Where the requests of a protocol go. */
export interface Address {
  /** The base address of the vendor's own API. */
  readonly vendor: string;
  /** The path of a request that streams, behind a base address with its version. */
  readonly path: (model: string) => string;
  /** The query of a request that streams. */
  readonly query?: Readonly<Record<string, string>>;
  /** The headers that every request has; undefined for servers that ask for no key. */
  readonly headers: (key: string | undefined) => Readonly<Record<string, string>>;
  /** Recognises the protocol's addresses behind any prefix: Azure, proxies and compatible endpoints have their own. */
  readonly claim: (target: Target) => Claim | undefined;
  /** Whether a body has what the protocol cannot do without: another server may have the same path. */
  readonly speaks: (body: Json.JsonRecord) => boolean;
  /** How many choices a body asks for, where it says so. */
  readonly choices: (body: Json.JsonRecord) => number | undefined;
  /** The request's own limit of output tokens, if its body sets one; left out: the protocol has none. */
  readonly outputTokens?: (body: Json.JsonRecord) => number | undefined;
  /** What its provider keeps of a request; left out where it keeps nothing. */
  readonly keeps?: (body: Json.JsonRecord, streaming: boolean) => Keeping;
  /** Whether the stream of such a request outlives its connection, so that it can be read on by a cursor; left out, none does. */
  readonly resumes?: (body: Json.JsonRecord, streaming: boolean) => boolean;
}

/** The choices of the OpenAI family. */
export const choicesByN = (body: Json.JsonRecord): number | undefined => Json.natural(body.n);

/** The header of a key that its owner bears. */
export const bearer = (key: string | undefined): Readonly<Record<string, string>> =>
  key === undefined ? {} : { authorization: `Bearer ${key}` };
