/**
 * Sends requests to providers over one set of connections: model requests as exchanges, all others unchanged.
 */
import { Readable } from "node:stream";
import {
  type RelayHead,
  type RelayHeaders,
  type RelayTransport,
  readAddress,
} from "../../adapters/relay/RelayTransport.ts";
import type { Waiting } from "../../client/connection/Connector.ts";
import { type Origins, originsMax } from "../../client/connection/Origin.ts";
import { pathTo } from "../../client/connection/OriginPath.ts";
import type { HttpConnections } from "../../client/ProviderRequest.ts";
import { dropOldest } from "../../domain/Limits.ts";
import type { Path } from "../../paths/Path.ts";
import { clientHeadersOf, flatOf, pairsOf, upstreamHeadersOf } from "./Headers.ts";
import { sliceBody } from "./SlicedBody.ts";
import { UpstreamExchange } from "./UpstreamExchange.ts";

/** A request that passes through. */
export interface PassedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: RelayHeaders;
  /** The whole body if it was already read, or else its stream. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** The client's own `content-length` for a streamed body. */
  readonly length: string | undefined;
}

/** The response to a request that passes through. */
export interface PassedResponse {
  readonly head: RelayHead;
  readonly body: Readable;
}

/** The connections to providers, and the paths over them. */
export interface Upstream {
  readonly transport: RelayTransport;
  /** Sends a request once and returns the response as it arrives, still encoded. Rejects with undici's error. */
  readonly pass: (request: PassedRequest, signal: AbortSignal) => Promise<PassedResponse>;
  /** The path to an address, without a credential. */
  readonly pathOf: (url: string) => Path;
}

/** Connections, clocks and callbacks that the requests of one upstream share. */
export interface UpstreamParts {
  readonly wire: HttpConnections;
  readonly origins: Origins;
  /** Monotonic time, in milliseconds. */
  readonly monotonicMs: () => number;
  /** Wall clock, in milliseconds since the epoch. */
  readonly nowMs: () => number;
  /** Called when a request starts. @returns a callback, called once when the request has ended */
  readonly begin: () => () => void;
}

/** Creates an upstream over existing connections. */
export const of = ({ begin, monotonicMs, nowMs, origins, wire }: UpstreamParts): Upstream => ({
  transport: {
    open: (request, reporters) => {
      const origin = origins.of(originOf(request.url));
      return new UpstreamExchange(request, reporters, { wire, origin, monotonicMs, nowMs, onOver: begin() });
    },
  },
  pathOf: memoizeByOrigin((origin) => pathTo({ ...wire, origins }, origin)),
  pass: async (request, signal) => {
    const over = begin();
    try {
      const response = await send(wire, request, signal);
      origins.of(new URL(request.url).origin).reached = true;
      response.body.once("close", over);
      return response;
    } catch (error) {
      over();
      throw error;
    }
  },
});

const originOf = (url: string): string => (readAddress(url) ?? new URL(url)).origin;

/** Caches one path per origin. */
const memoizeByOrigin = (make: (origin: string) => Path): Upstream["pathOf"] => {
  const paths = new Map<string, Path>();
  return (url) => {
    const origin = originOf(url);
    const path = paths.get(origin) ?? make(origin);
    paths.set(origin, path);
    dropOldest(paths, originsMax);
    return path;
  };
};

/** Sends a request. An abandoned request leaves no connection open, not even one that is still being opened. */
const send = async (wire: HttpConnections, request: PassedRequest, signal: AbortSignal): Promise<PassedResponse> => {
  const waiting: Waiting = { connecting: undefined };
  const abandon = (): unknown => waiting.connecting?.destroy(new Error("The request was abandoned"));
  signal.addEventListener("abort", abandon);
  try {
    return await wire.connector.withWaiting(waiting, () => responseOf(wire.agent, request, signal));
  } finally {
    signal.removeEventListener("abort", abandon);
  }
};

const responseOf = async (
  agent: HttpConnections["agent"],
  request: PassedRequest,
  signal: AbortSignal,
): Promise<PassedResponse> => {
  const url = new URL(request.url);
  const length: RelayHeaders = request.length === undefined ? [] : [["content-length", request.length]];
  const sent = bodyOf(request.body);
  const {
    body,
    headers: raw,
    statusCode,
    statusText,
  } = await agent.request({
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method: request.method,
    headers: flatOf([...upstreamHeadersOf(request.headers, false), ...length, ...sent.headers]),
    body: sent.body,
    responseHeaders: "raw",
    headersTimeout: 0,
    bodyTimeout: 0,
    signal,
  });
  // undici's type says an object, but `raw` returns the flat list (its documentation of `responseHeaders`).
  const flat = raw as unknown as ReadonlyArray<string | Buffer>;
  return { head: { status: statusCode, statusText, headers: clientHeadersOf(pairsOf(flat)) }, body };
};

const bodyOf = (body: PassedRequest["body"]): ReturnType<typeof sliceBody> | { body: null; headers: RelayHeaders } => {
  if (body === undefined) return { body: null, headers: [] };
  return body instanceof Uint8Array
    ? sliceBody(body)
    : { body: Readable.from(body, { objectMode: false }), headers: [] };
};
