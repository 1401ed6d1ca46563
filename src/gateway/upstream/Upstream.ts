/**
 * Reaches the providers: connections of its own, kept for a few seconds and never trusted for long, nothing repeated below.
 */
import { Readable } from "node:stream";
import { Clock, Effect, type Scope } from "effect";
import type { RelayHead, RelayHeaders, RelayTransport } from "../../adapters/relay/RelayTransport.ts";
import { type ClientConfigError, keepAliveMs, proxyChoice } from "../../client/ClientConfig.ts";
import * as Connections from "../../client/connection/Connections.ts";
import * as Connector from "../../client/connection/Connector.ts";
import { Origins } from "../../client/connection/Origin.ts";
import { connectMsDefault } from "../../client/ProviderClient.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { forwarded, handedOn, pairsOf } from "./Headers.ts";
import { UpstreamExchange } from "./UpstreamExchange.ts";

/** A request that passes through. */
export interface PassedRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: RelayHeaders;
  /** What was read of it already, or its stream. */
  readonly body: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** The client's own word for the length of a streamed body. */
  readonly length: string | undefined;
}

/** Its response. */
export interface PassedResponse {
  readonly head: RelayHead;
  readonly body: Readable;
}

/** The way to the providers. */
export interface Upstream {
  readonly transport: RelayTransport;
  /** Sends a request once, gives its response as it comes, also encoded; rejects with undici's error. */
  readonly pass: (request: PassedRequest, signal: AbortSignal) => Promise<PassedResponse>;
}

/** Makes it; its connections are closed with the scope. */
export const make: Effect.Effect<Upstream, ClientConfigError, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const now = () => monotonicMs(clock);
  const origins = new Origins();
  const connector = Connector.make({ connectMs: connectMsDefault, tls: {}, proxy: yield* proxyChoice(undefined) });
  const idle = yield* keepAliveMs(undefined);
  const made = { connector, keepAliveMs: idle, connections: undefined, origins, now };
  const agent = yield* Connections.make(made);
  return {
    transport: {
      open: (request, reporters) =>
        new UpstreamExchange(request, reporters, {
          wire: { agent, connector },
          origin: origins.of(new URL(request.url).origin),
          monotonicMs: now,
          nowMs: () => clock.currentTimeMillisUnsafe(),
        }),
    },
    pass: async (request, signal) => {
      const url = new URL(request.url);
      const headers = forwarded(request.headers, false);
      const {
        body,
        headers: raw,
        statusCode,
        statusText,
      } = await agent.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: request.method,
        headers: (request.length === undefined ? headers : [...headers, ["content-length", request.length]]).flat(),
        body: bodyOf(request.body),
        responseHeaders: "raw",
        headersTimeout: 0,
        bodyTimeout: 0,
        signal,
      });
      // undici's type says an object; `raw` gives the flat list (its documentation of `responseHeaders`).
      const flat = raw as unknown as ReadonlyArray<string | Buffer>;
      return { head: { status: statusCode, statusText, headers: handedOn(pairsOf(flat)) }, body };
    },
  };
});

const bodyOf = (body: PassedRequest["body"]): Uint8Array | Readable | null => {
  if (body === undefined) return null;
  return body instanceof Uint8Array ? body : Readable.from(body, { objectMode: false });
};
