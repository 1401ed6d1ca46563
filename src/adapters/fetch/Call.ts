/**
 * Reads the request of a `fetch` call in every form that `fetch` accepts. The body stays readable, so that a request which is not recovered
 * can pass through unchanged.
 */

import { type DeclaredTools, mayBeRelayed, type RelayPlan, recognise } from "../relay/RelayPlan.ts";
import type { RelayHeaders } from "../relay/RelayTransport.ts";
import type { FetchHeaders } from "./Credentials.ts";
import type { FetchExtras } from "./StreamAttachment.ts";

/** The first argument of `fetch`. */
export type FetchInput = Parameters<typeof globalThis.fetch>[0];

/** A call of `fetch` after its body was read. */
export interface FetchCall {
  /** Undefined if there is nothing to recover. In that case `input` and `init` are passed on unchanged. */
  readonly plan: RelayPlan | undefined;
  readonly extras: FetchExtras;
  readonly signal: AbortSignal | undefined;
  /** Converts headers to the form in which the caller passed them: a record, pairs or a `Headers` object. */
  readonly convertHeaders: (headers: Headers) => FetchHeaders;
  readonly input: FetchInput;
  readonly init: RequestInit | undefined;
}

/**
 * Reads a call.
 *
 * @param declared the effects of the caller's tools
 * @throws the error of the body's stream
 */
export const readCall = async (
  input: FetchInput,
  init: RequestInit | undefined,
  declared: DeclaredTools,
): Promise<FetchCall> => {
  const request = input instanceof Request ? input : undefined;
  const signal = init?.signal ?? request?.signal;
  const formed = formOf(init?.headers);
  const untouched: FetchCall = { plan: undefined, extras: {}, signal, convertHeaders: formed, input, init };
  const method = init?.method ?? request?.method ?? "GET";
  const url = request?.url ?? String(input);
  const headers = headersOf(init?.headers ?? request?.headers);
  if (signal?.aborted === true || !mayBeRelayed(method, url, headers)) return untouched;
  const { body, used } = await bodyOf(init?.body ?? undefined, request);
  if (body === undefined) return untouched;
  const plan = recognise({ method, url, headers, body }, declared);
  if (plan === undefined) return used ? { ...untouched, init: { ...init, body } } : untouched;
  return { ...untouched, plan, extras: extrasOf(init, request) };
};

interface ReadBody {
  /** Undefined if there is no body, or if it is a form, which is not JSON. */
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
  /** True if the caller's body could be read only once and has been read. */
  readonly used: boolean;
}

const bodyOf = async (given: RequestInit["body"], request: Request | undefined): Promise<ReadBody> => {
  if (typeof given === "string") return { body: given, used: false };
  // The body is copied, because the caller may write to its buffer later, and a later attempt must send the same bytes.
  if (ArrayBuffer.isView(given))
    return { body: new Uint8Array(given.buffer, given.byteOffset, given.byteLength).slice(), used: false };
  if (given instanceof ArrayBuffer) return { body: new Uint8Array(given.slice(0)), used: false };
  if (given instanceof Blob) return { body: new Uint8Array(await given.arrayBuffer()), used: false };
  if (given instanceof ReadableStream)
    return { body: new Uint8Array(await new Response(given).arrayBuffer()), used: true };
  if (given !== undefined || request === undefined || request.body === null) return { body: undefined, used: false };
  return { body: new Uint8Array(await request.clone().arrayBuffer()), used: false };
};

const headersOf = (given: RequestInit["headers"]): RelayHeaders => [...new Headers(given)];

/**
 * Returns headers in the form in which they were given: a record with the names as written, pairs, or a `Headers` object. The wrapped
 * `fetch` may expect this form, for example if it spreads its headers.
 */
const formOf = (given: RequestInit["headers"]): FetchCall["convertHeaders"] => {
  if (given === undefined || typeof Reflect.get(given, "entries") === "function")
    return Array.isArray(given) ? (headers) => [...headers] : (headers) => headers;
  const names = new Map(Object.keys(given).map((name) => [name.toLowerCase(), name]));
  return (headers) => Object.fromEntries([...headers].map(([name, value]) => [names.get(name) ?? name, value]));
};

const extrasOf = (init: RequestInit | undefined, request: Request | undefined): FetchExtras => {
  const { body: _b, duplex: _d, headers: _h, method: _m, signal: _s, ...extras } = init ?? {};
  if (request === undefined) return extras;
  return { redirect: request.redirect, credentials: request.credentials, ...extras };
};
