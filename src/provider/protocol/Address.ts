/** Describes the URLs and headers of a protocol's requests. The gateway recognises a request by its address and body. */
import * as Json from "../../domain/Json.ts";

/** The parts of a request from which its protocol can be recognised. */
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
 * State that the provider keeps for a request, so that a repeated request creates and bills it a second time. `request`: from the moment at
 * which the request may have arrived. `response`: from the first event of the response. `conversation`: from the same moment as `request`,
 * and an error in the response does not undo it.
 */
export type Keeping = "nothing" | "response" | "request" | "conversation";

/** The servers to which a protocol's requests go by default. They share a base address, credentials and the form of errors. */
export type Family = "openai" | "anthropic" | "gemini" | "code-assist" | "ollama" | "cohere" | "bedrock";

/** The addresses of a protocol's requests. */
export interface Address {
  readonly family: Family;
  /** Targets of streaming requests, as examples for tables and tests. The first one is the protocol's own. */
  readonly examples: ReadonlyArray<string>;
  readonly vendor: string;
  /** Returns the path of a streaming request, relative to a base address that includes the version. */
  readonly path: (model: string) => string;
  readonly query?: Readonly<Record<string, string>>;
  /** Returns the headers of every request. `key` is undefined for servers that require none. */
  readonly headers: (key: string | undefined) => Readonly<Record<string, string>>;
  /** Recognises the protocol's paths after any prefix, because Azure, proxies and compatible endpoints add their own prefixes. */
  readonly claim: (target: Target) => Claim | undefined;
  /** Returns true if a body has the fields that the protocol requires. Another server may use the same path. */
  readonly isRequestBody: (body: Json.JsonRecord) => boolean;
  /** Returns the request in a body that wraps it. Omitted if the body is the request. */
  readonly requestIn?: (body: Json.JsonRecord) => Json.JsonRecord;
  /** Returns true if a body asks for a stream and the address does not decide it. If omitted, `stream: true` asks for one. */
  readonly isStreaming?: (body: Json.JsonRecord) => boolean;
  /** Returns the number of choices that a body requests, if stated. */
  readonly choices: (body: Json.JsonRecord) => number | undefined;
  /** Returns the output token limit in the body, if set. Omitted if the protocol has none. */
  readonly outputTokens?: (body: Json.JsonRecord) => number | undefined;
  /** Returns the state that the provider keeps for a request. Omitted if it keeps nothing. */
  readonly keeping?: (body: Json.JsonRecord, streaming: boolean) => Keeping;
  /**
   * Returns true if the stream of a request with this body outlives its connection and can be resumed by a cursor. Omitted if the protocol
   * has no such streams.
   */
  readonly isResumable?: (body: Json.JsonRecord, streaming: boolean) => boolean;
}

/** Returns the number of choices that a request of the OpenAI family asks for. */
export const choicesByN = (body: Json.JsonRecord): number | undefined => Json.natural(body.n);

/** Returns the bearer authorization header for a key. */
export const bearer = (key: string | undefined): Readonly<Record<string, string>> =>
  key === undefined ? {} : { authorization: `Bearer ${key}` };
