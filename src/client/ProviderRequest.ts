/**
 * Describes one streaming request and sends it.
 */
import type { Dispatcher } from "@effect/platform-node/Undici";
import { Effect } from "effect";
import type { Protocol, ProtocolId, Tolerance } from "../provider/Protocols.ts";
import * as Sse from "../provider/stream/Sse.ts";
import type { Connector } from "./connection/Connector.ts";
import type { Exchange, Reporters } from "./connection/Exchange.ts";

/** Header names and values. */
export type RequestHeaders = Readonly<Record<string, string>>;

/** One streaming request, with the reporters of its progress. `S` is the state that its protocol keeps while it reads a response. */
export interface ProviderRequest<S, Id extends string = ProtocolId> extends Reporters {
  readonly protocol: Protocol<S, Id>;
  readonly tolerance?: Tolerance;
  readonly url: string | URL;
  /** Default POST. */
  readonly method?: "POST" | "GET";
  /**
   * `content-type`, `accept` and `accept-encoding` have defaults. An Effect is run for every attempt, so that the next attempt uses renewed
   * credentials. If the Effect fails, the failure counts as the caller's and the request is not sent.
   */
  readonly headers?: RequestHeaders | Effect.Effect<RequestHeaders, unknown>;
  /**
   * Sent as `Idempotency-Key`. Equal keys ask a server to process a request once and to repeat its first response. Stripe defines the
   * header in this way, with keys that are valid for 24 hours. No decision of this package assumes that a model provider honours the key.
   * `IdempotencyKey` creates keys that stay the same for all attempts of one request.
   */
  readonly idempotencyKey?: string;
  /** Strings and bytes are sent unchanged, any other value as JSON. */
  readonly body?: unknown;
}

type SentRequest = Pick<ProviderRequest<never>, "url" | "method" | "headers" | "idempotencyKey" | "body"> & {
  readonly protocol: Pick<Protocol, "framing">;
};

/** The connections over which requests are sent. */
export interface HttpConnections {
  readonly agent: Dispatcher;
  readonly connector: Connector;
}

/**
 * Reads the credentials and sends the request. If the credentials cannot be read or the request is invalid, nothing is sent and the
 * exchange fails.
 */
export const send = (wire: HttpConnections, request: SentRequest, exchange: Exchange): Effect.Effect<void> =>
  Effect.match(headersOf(request), {
    onSuccess: (headers) => dispatch(wire, request, headers, exchange),
    onFailure: (error) => exchange.refuse(error),
  });

/** Returns the origin of an address; empty if it cannot be read. */
export const originOf = (url: string | URL): string => (URL.canParse(String(url)) ? new URL(url).origin : "");

const headersOf = ({ headers = {} }: SentRequest): Effect.Effect<RequestHeaders, unknown> =>
  Effect.isEffect(headers) ? headers : Effect.succeed(headers);

const dispatch = (wire: HttpConnections, request: SentRequest, given: RequestHeaders, exchange: Exchange): void => {
  try {
    const url = new URL(request.url);
    const [body, type] = bodyOf(request.body);
    const { framing = Sse.framing } = request.protocol;
    const [accept = ""] = framing.contentType.split(";");
    const headers = new Headers({ accept, "accept-encoding": "identity", ...type });
    if (request.idempotencyKey !== undefined) headers.set("idempotency-key", request.idempotencyKey);
    for (const [name, value] of Object.entries(given)) headers.set(name, value);
    exchange.requestBytes = body?.byteLength ?? 0;
    const options = {
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: request.method ?? "POST",
      headers: Object.fromEntries(headers),
      body,
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    wire.connector.withWaiting(exchange, () => wire.agent.dispatch(options, exchange));
  } catch (error) {
    exchange.refuse(error);
  }
};

const bodyOf = (body: unknown): readonly [Uint8Array | null, RequestHeaders] => {
  if (body === undefined) return [null, {}];
  if (body instanceof Uint8Array) return [body, json];
  return [Buffer.from(typeof body === "string" ? body : JSON.stringify(body)), json];
};

const json = { "content-type": "application/json" };
