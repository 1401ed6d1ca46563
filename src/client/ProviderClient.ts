/**
 * Reaches a provider: one streaming HTTP/1.1 request, decoded to parts, with a truthful report of its delivery.
 *
 * No timeout of undici is left on, nothing is retried below the caller, no redirect is followed and no connection idles for
 * more than ten seconds (a NAT drops idle connections in silence, and the next request then dies on a dead socket). When
 * the stream's scope closes, by the end, a failure or an interruption, a response that is not complete loses its socket.
 */

import { Agent, Pool } from "@effect/platform-node/Undici";
import { Cause, Clock, Context, Duration, Effect, Layer, type Pull, type Scope, Stream } from "effect";
import type { Failure } from "../domain/Failure.ts";
import * as Decoder from "../provider/Decoder.ts";
import { classify, classifyResponse } from "../provider/FailureClassifier.ts";
import type { Part, Protocol, Tolerance } from "../provider/Protocol.ts";
import * as Connector from "./Connector.ts";
import { type Broken, Exchange, type Head, type Reporters } from "./Exchange.ts";
import { type ProviderError, type ProviderResponse, providerError } from "./ProviderError.ts";

/** The `connect` clock's default: milliseconds for name lookup, TCP and TLS together. README, "Clocks". */
export const connectMsDefault = 30_000;

/** Longest idle time of a kept connection, in milliseconds; a server's keep-alive hint cannot widen it. */
export const idleConnectionMs = 10_000;

/** Most bytes that are read of an answer that is no stream. */
export const errorBodyBytesMax = 64 * 1024;

/** Longest wait for the body of an answer that is no stream, in milliseconds. */
export const errorBodyMs = 10_000;

/** Hosts whose being reached is remembered, for the meaning of a failed name lookup. */
export const reachedHostsMax = 1024;

/** How a client connects. It has no other clocks: those of a run belong to the watchdog. */
export interface ProviderClientOptions {
  /** The `connect` clock, in milliseconds; default 30,000. */
  readonly connectMs?: number;
  /** Most connections to one origin; more requests wait. Default no limit: a stream occupies its connection. */
  readonly connections?: number;
  /** For private certificate authorities and client certificates. */
  readonly tls?: Connector.TlsOptions;
}

/** One streaming request, and who wants to be told how far it got. `S` is the state of its protocol's fold. */
export interface ProviderRequest<S> extends Reporters {
  readonly protocol: Protocol<S>;
  readonly tolerance?: Tolerance;
  readonly url: string | URL;
  /** Default POST. */
  readonly method?: "POST" | "GET";
  /** `content-type`, `accept` and `accept-encoding` have defaults. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes are sent as they are, anything else as JSON. */
  readonly body?: unknown;
}

/** Reaches providers over kept connections and gives their streams as parts; every failure is a `ProviderError`. */
export class ProviderClient extends Context.Service<
  ProviderClient,
  {
    /**
     * Sends a request when the stream is run and gives its parts; parts that arrived together come as one array. It ends
     * only after the provider's own terminal marker and fails with `ProviderError` otherwise (law L5).
     */
    readonly stream: <S>(request: ProviderRequest<S>) => Stream.Stream<Part, ProviderError>;
  }
>()("effect-stream-recovery/client/ProviderClient") {
  /** Makes a client whose connections are closed with its scope. */
  static readonly make = (
    options: ProviderClientOptions = {},
  ): Effect.Effect<ProviderClient["Service"], never, Scope.Scope> => make(options);

  static readonly layer = (options: ProviderClientOptions = {}): Layer.Layer<ProviderClient> =>
    Layer.effect(ProviderClient, ProviderClient.make(options));
}

const make = Effect.fnUntraced(function* (options: ProviderClientOptions) {
  const connector = Connector.make(options.connectMs ?? connectMsDefault, options.tls ?? {});
  const agent = yield* Effect.acquireRelease(
    Effect.sync(
      () =>
        new Agent({
          connect: connector.connect,
          // For one connection undici would take a bare Client, whose connect error fails every request that waits behind it.
          factory: (origin, poolOptions) => new Pool(origin, poolOptions),
          ...(options.connections === undefined ? {} : { connections: options.connections }),
          pipelining: 1,
          allowH2: false,
          headersTimeout: 0,
          bodyTimeout: 0,
          keepAliveTimeout: idleConnectionMs,
          keepAliveMaxTimeout: idleConnectionMs,
        }),
    ),
    (agent) => Effect.promise(() => agent.destroy()),
  );
  const transport: Transport = { agent, connector, reached: new Set() };
  return ProviderClient.of({
    stream: (request) =>
      Stream.unwrap(Effect.map(open(transport, request), (pull) => Stream.fromPull(Effect.succeed(pull)))),
  });
});

interface Transport {
  readonly agent: Agent;
  readonly connector: Connector.Connector;
  /** Hosts that answered before, oldest first. */
  readonly reached: Set<string>;
}

type Parts = readonly [Part, ...Array<Part>];

/** Opens the exchange within the stream's scope and gives the pull that reads it. */
const open = Effect.fnUntraced(function* <S>(transport: Transport, request: ProviderRequest<S>) {
  const clock = yield* Clock.Clock;
  const exchange = yield* Effect.acquireRelease(
    Effect.sync(() => dispatch(transport, request)),
    (exchange) => Effect.sync(() => exchange.abort()),
  );
  const decoder = Decoder.make(
    request.protocol,
    request.tolerance === undefined ? {} : { tolerance: request.tolerance },
  );
  const fail = (failure: Failure, cause?: unknown) => Effect.fail(providerError(failure, exchange.delivery, cause));
  const broken = (failed: Broken) =>
    fail(failureOf(failed, hasReached(transport, request), clock.currentTimeMillisUnsafe()), failed.error);
  let streaming = false;
  let answered: Head | undefined;
  // The first bytes, until they prove to be a stream: an answer that is none says in them what it is.
  let unproven: Array<Uint8Array> | undefined = [];
  let last: Pull.Pull<Parts, ProviderError> | undefined;

  const begin = Effect.gen(function* () {
    const head = yield* Effect.catch(exchange.head, broken);
    remember(transport, request);
    streaming = true;
    answered = head;
    if (!mayStream(head)) last = yield* refused(head, []);
  });

  const refused = Effect.fnUntraced(function* (head: Head, first: ReadonlyArray<Uint8Array>) {
    const response = yield* readResponse(exchange, head, first);
    return fail(classifyResponse(response, { nowMs: clock.currentTimeMillisUnsafe() }), response);
  });

  const pull: Pull.Pull<Parts, ProviderError> = Effect.gen(function* () {
    if (!streaming) yield* begin;
    while (last === undefined) {
      const chunks = yield* Effect.catch(exchange.read, broken);
      const parts = chunks === undefined ? [] : decode(decoder, chunks);
      unproven?.push(...(chunks ?? []));
      const late = chunks === undefined ? decoder.end() : undefined;
      parts.push(...(late?.parts ?? []));
      if (unproven !== undefined && answered !== undefined && isNoStream(decoder.failure))
        last = yield* refused(answered, unproven);
      else if (late !== undefined) last = late.end.complete ? Cause.done() : fail(late.end.failure, evidence(parts));
      else if (decoder.failure !== undefined) last = fail(decoder.failure, evidence(parts));
      if (late === undefined && last !== undefined) exchange.abort();
      if (parts.length > 0 || sizeOf(unproven ?? []) > errorBodyBytesMax) unproven = undefined;
      const [first, ...rest] = parts;
      if (first !== undefined) return [first, ...rest] satisfies Parts;
    }
    return yield* last;
  });
  return pull;
});

const dispatch = <S>(transport: Transport, request: ProviderRequest<S>): Exchange => {
  const exchange = new Exchange(request);
  try {
    const url = new URL(request.url);
    const [body, type] = bodyOf(request.body);
    const headers = new Headers({ accept: "text/event-stream", "accept-encoding": "identity", ...type });
    for (const [name, value] of Object.entries(request.headers ?? {})) headers.set(name, value);
    const options = {
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: request.method ?? "POST",
      headers: Object.fromEntries(headers),
      body,
      headersTimeout: 0,
      bodyTimeout: 0,
    };
    transport.connector.dispatching(exchange, () => transport.agent.dispatch(options, exchange));
  } catch (error) {
    exchange.refuse(error);
  }
  return exchange;
};

const bodyOf = (body: unknown): readonly [string | Uint8Array | null, Readonly<Record<string, string>>] => {
  if (body === undefined) return [null, {}];
  if (typeof body === "string" || body instanceof Uint8Array) return [body, { "content-type": "application/json" }];
  return [JSON.stringify(body), { "content-type": "application/json" }];
};

const decode = (decoder: Decoder.Decoder, chunks: ReadonlyArray<Uint8Array>): Array<Part> => {
  const parts: Array<Part> = [];
  for (const chunk of chunks) for (const part of decoder.push(chunk)) parts.push(part);
  return parts;
};

/** The JSON of the event that carried the failure: the provider's own words. */
const evidence = (parts: ReadonlyArray<Part>): unknown =>
  parts.findLast((part) => part.observation.failure !== undefined)?.json;

/**
 * Whether the body may be a stream. Gateways send healthy ones as text/plain, octet-stream, x-ndjson or without a type, so
 * that only JSON and pages are told by their type; of the rest the first bytes decide. A 204 or 205 has no body (RFC 9110).
 * Compressed bytes were not asked for and are no events.
 */
const mayStream = ({ headers, status }: Head): boolean => {
  const encoding = headers["content-encoding"];
  return (
    status >= 200 &&
    status <= 299 &&
    status !== 204 &&
    status !== 205 &&
    !documentTypes.test(headers["content-type"] ?? "") &&
    (encoding === undefined || /^\s*identity\s*$/i.test(encoding))
  );
};

const documentTypes = /^\s*(?:(?:application|text)\/(?:json|problem\+json|html|xhtml\+xml|xml))\b/i;

const isNoStream = (failure: Failure | undefined): boolean =>
  failure?.kind === "protocol" && failure.reason === "not_a_stream";

const sizeOf = (chunks: ReadonlyArray<Uint8Array>): number => chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);

/** Reads an answer that is no stream within its limits; what came until then counts, however it ended. */
const readResponse = Effect.fnUntraced(function* (exchange: Exchange, head: Head, first: ReadonlyArray<Uint8Array>) {
  const chunks = [...first];
  let length = sizeOf(first);
  const reading = Effect.gen(function* () {
    while (length < errorBodyBytesMax) {
      const more = yield* exchange.read;
      if (more === undefined) return;
      for (const chunk of more) {
        chunks.push(chunk.subarray(0, errorBodyBytesMax - length));
        length = Math.min(errorBodyBytesMax, length + chunk.byteLength);
      }
    }
  });
  // A body that broke or stalled does not change what its status says.
  yield* Effect.ignore(Effect.timeoutOption(reading, Duration.millis(errorBodyMs)));
  const bytes = Buffer.concat(chunks).subarray(0, errorBodyBytesMax);
  const response: ProviderResponse = { ...head, body: new TextDecoder().decode(bytes) };
  return response;
});

const failureOf = ({ error, operation, unsendable }: Broken, reachedHostBefore: boolean, nowMs: number): Failure => {
  if (error instanceof Connector.ConnectStalled) return { kind: "stalled", clock: "connect" };
  if (unsendable) return { kind: "caller_failed" };
  return classify(error, { operation, reachedHostBefore, nowMs });
};

const hostOf = ({ url }: { readonly url: string | URL }): string =>
  URL.canParse(String(url)) ? new URL(url).host : "";

const hasReached = <S>(transport: Transport, request: ProviderRequest<S>): boolean =>
  transport.reached.has(hostOf(request));

const remember = <S>({ reached }: Transport, request: ProviderRequest<S>): void => {
  const host = hostOf(request);
  if (reached.has(host)) return;
  const [oldest] = reached;
  if (reached.size >= reachedHostsMax && oldest !== undefined) reached.delete(oldest);
  reached.add(host);
};
