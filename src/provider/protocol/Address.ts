/** Describes the addresses of a protocol's requests. A request is recognised by its address and body. */
import * as Json from "../../domain/Json.ts";

/** The parts of a request that determine its address. */
export interface Target {
  /** The path, without trailing slashes. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Returns true if the request has a header, given in lower case. */
  readonly has: (header: string) => boolean;
}

/** A request that its address identifies as the protocol's. */
export interface Claim {
  /** The model in the path; empty if only the body names it. */
  readonly model: string;
  /** True if the address requests a stream; omitted if the body decides. */
  readonly streaming?: boolean;
}

/**
 * The part of a request that its provider keeps. Posting it again then creates and bills a second one. `request`: from the moment at which
 * it may have arrived. `response`: from the response's first event.
 */
export type Keeping = "nothing" | "response" | "request";

/** The addresses of a protocol's requests. */
export interface Address {
  readonly vendor: string;
  /** The path of a streaming request, relative to a base address with its version. */
  readonly path: (model: string) => string;
  readonly query?: Readonly<Record<string, string>>;
  /** The headers of every request. The key is undefined for servers that require none. */
  readonly headers: (key: string | undefined) => Readonly<Record<string, string>>;
  /** Recognises the protocol's paths after any prefix: Azure, proxies and compatible endpoints add their own. */
  readonly claim: (target: Target) => Claim | undefined;
  /** Returns true if a body has the fields that the protocol requires. Another server may use the same path. */
  readonly isRequestBody: (body: Json.JsonRecord) => boolean;
  /** The number of choices that a body requests, if stated. */
  readonly choices: (body: Json.JsonRecord) => number | undefined;
  /** The output token limit in the body, if set. Omitted if the protocol has none. */
  readonly outputTokens?: (body: Json.JsonRecord) => number | undefined;
  /** The part of a request that its provider keeps. Omitted if it keeps nothing. */
  readonly keeping?: (body: Json.JsonRecord, streaming: boolean) => Keeping;
  /**
   * Returns true if the stream of such a request outlives its connection and can be resumed by a cursor. Omitted if no stream of the
   * protocol can.
   */
  readonly isResumable?: (body: Json.JsonRecord, streaming: boolean) => boolean;
}

/** The number of choices in the OpenAI family. */
export const choicesByN = (body: Json.JsonRecord): number | undefined => Json.natural(body.n);

/** The bearer authorization header of a key. */
export const bearer = (key: string | undefined): Readonly<Record<string, string>> =>
  key === undefined ? {} : { authorization: `Bearer ${key}` };
