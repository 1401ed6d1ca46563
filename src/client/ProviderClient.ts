/**
 * Sends one streaming request to a provider, decodes the response to parts, and reports only the delivery that it can prove.
 *
 * The client disables undici's timeouts, retries no request and follows no redirect. By default it keeps no connection idle for more than
 * ten seconds, because a NAT may silently drop an idle connection and the next request would then fail on a dead socket. After an end, a
 * failure or an interruption of the stream, the socket of an incomplete response is destroyed.
 */

import {
  Cause,
  Clock,
  Context,
  type Duration,
  Effect,
  Layer,
  type Pull,
  type Redacted,
  type Scope,
  Stream,
} from "effect";
import { readMs } from "../domain/Durations.ts";
import type { Failure } from "../domain/Failure.ts";
import { classifyResponse } from "../failure/FailureClassifier.ts";
import { AttemptPath, type Path } from "../paths/Path.ts";
import type { Part, ProtocolId } from "../provider/Protocols.ts";
import * as Decoder from "../provider/stream/Decoder.ts";
import { monotonicMs } from "../recorder/MonotonicTime.ts";
import { type ClientConfigError, keepAliveMs, proxyChoice } from "./ClientConfig.ts";
import { withCredential } from "./CredentialDigest.ts";
import * as Connections from "./connection/Connections.ts";
import * as Connector from "./connection/Connector.ts";
import { Exchange, type ExchangeBreak, type Head } from "./connection/Exchange.ts";
import { failureOf } from "./connection/ExchangeFailure.ts";
import { type Origin, Origins } from "./connection/Origin.ts";
import { pathTo } from "./connection/OriginPath.ts";
import type { ExchangeRecord } from "./ExchangeRecord.ts";
import * as ExchangeTelemetry from "./ExchangeTelemetry.ts";
import { type ProviderError, providerError } from "./ProviderError.ts";
import { type HttpConnections, originOf, type ProviderRequest, send } from "./ProviderRequest.ts";
import {
  errorBodyBytesMax,
  isDocument,
  mayHaveContent,
  mayStream,
  readDocument,
  readResponse,
  sizeOf,
} from "./ResponseReader.ts";

/** Default of the `connect` clock, in milliseconds, for name lookup, TCP and TLS together; see docs/stream-processor.md. */
export const connectMsDefault = 30_000;

/** Connection options of a client. `connectMs` is its only clock; the watchdog of a run has all others. */
export interface ProviderClientOptions {
  /** The `connect` clock, as milliseconds or a duration, for proxy, name lookup, TCP and TLS together. Default 30,000. */
  readonly connectMs?: Duration.Input;
  /**
   * Maximum idle time of a kept connection, as milliseconds or a duration. Default `STREAM_RECOVERY_KEEPALIVE_MS`, or else 10,000. A server's Keep-Alive
   * header may shorten it but never extends it. Above one second, undici's timers close the connection up to a second late.
   */
  readonly keepAliveMs?: Duration.Input;
  /**
   * Maximum connections to one origin. Further requests wait for a connection. Default: no limit, because a stream occupies its connection.
   */
  readonly connections?: number;
  /** Private certificate authorities and client certificates. `NODE_EXTRA_CA_CERTS` works without this option. */
  readonly tls?: Connector.TlsOptions;
  /**
   * The egress proxy of every request, `http(s)://[user:password@]host[:port]`, or `direct` for none. Default: `HTTP_PROXY`,
   * `HTTPS_PROXY` and `NO_PROXY`, but never for this machine and the link-local network.
   */
  readonly proxy?: string | Redacted.Redacted<string>;
  /** Called synchronously when an exchange ends, with any outcome. An error that it throws is logged. */
  readonly onExchange?: (record: ExchangeRecord) => void;
}

/** Options of `ProviderClient.path`: what distinguishes the account of a request from other accounts at the same address. */
export interface PathOptions {
  /** An API key or token, together with any other value that selects the account. If omitted, all requests share one credential. */
  readonly credential?: string | Redacted.Redacted<string>;
}

/** Sends requests to providers over kept connections and returns their streams as parts. Every failure is a `ProviderError`. */
export class ProviderClient extends Context.Service<
  ProviderClient,
  {
    /**
     * Sends a request when the stream is run and emits its parts. Parts that arrived together are emitted as one array. The stream ends
     * only after the provider's own terminal marker. Otherwise it fails with `ProviderError` (law L5).
     */
    readonly stream: <S, Id extends string = ProtocolId>(
      request: ProviderRequest<S, Id>,
    ) => Stream.Stream<Part<Id>, ProviderError>;
    /**
     * Returns the path of requests to an address, for `RunOptions.path`. The path is the origin and the egress proxy, without the proxy's
     * login. Runs on the same path share knowledge of outages. Runs that also have the same credential share announced waits.
     *
     * @param options `credential` authorizes the requests; only a digest of it is kept
     * @throws TypeError if the address cannot be read
     */
    readonly path: (url: string | URL, options?: PathOptions) => Path;
  }
>()("effect-stream-recovery/client/ProviderClient") {
  /**
   * Creates a client whose connections close with its scope.
   *
   * @throws ClientConfigError if `keepAliveMs` or `STREAM_RECOVERY_KEEPALIVE_MS` is not a valid number of milliseconds, or the address of a
   *   proxy is invalid
   */
  static readonly make = (
    options: ProviderClientOptions = {},
  ): Effect.Effect<ProviderClient["Service"], ClientConfigError, Scope.Scope> => make(options);

  static readonly layer = (options: ProviderClientOptions = {}): Layer.Layer<ProviderClient, ClientConfigError> =>
    Layer.effect(ProviderClient, ProviderClient.make(options));
}

const make = Effect.fnUntraced(function* (options: ProviderClientOptions) {
  const clock = yield* Clock.Clock;
  const now = () => monotonicMs(clock);
  const origins = new Origins();
  const connectMs = readMs("connectMs", options.connectMs ?? connectMsDefault);
  const way = { connectMs, tls: options.tls ?? {}, proxy: yield* proxyChoice(options.proxy) };
  const connector = Connector.make(way);
  const agent = yield* Connections.make({
    connector,
    keepAliveMs: yield* keepAliveMs(options.keepAliveMs),
    connections: options.connections,
    origins,
    now,
    nowMs: () => clock.currentTimeMillisUnsafe(),
  });
  const observe = ExchangeTelemetry.make(now, options.onExchange);
  const transport: Transport = { agent, connector, origins, now, observe };
  return ProviderClient.of({
    stream: (request) =>
      Stream.unwrap(Effect.map(open(transport, request), (pull) => Stream.fromPull(Effect.succeed(pull)))),
    path: (url, { credential } = {}) => withCredential(pathTo(transport, url), credential),
  });
});

interface Transport extends HttpConnections {
  readonly origins: Origins;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly observe: ExchangeTelemetry.Observe;
}

interface Times {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Wall clock, milliseconds since the epoch. */
  readonly nowMs: () => number;
}

type Parts<Id extends string> = readonly [Part<Id>, ...Array<Part<Id>>];

/** Opens the exchange within the stream's scope and returns the pull that reads it. */
const open = Effect.fnUntraced(function* <S, Id extends string>(transport: Transport, request: ProviderRequest<S, Id>) {
  const clock = yield* Clock.Clock;
  yield* reportPath(transport, request.url);
  const origin = transport.origins.of(originOf(request.url));
  const telemetry = yield* transport.observe(originOf(request.url), origin);
  const exchange = yield* Effect.acquireRelease(
    Effect.sync(() => telemetry.begin(new Exchange(request, transport.now))),
    (exchange) => Effect.sync(() => exchange.abort()),
  );
  yield* send(transport, request, exchange);
  return readExchange(request, exchange, origin, telemetry, {
    now: transport.now,
    nowMs: () => clock.currentTimeMillisUnsafe(),
  });
});

/** Reports the path of the attempt to its run, before anything is sent. */
const reportPath = (transport: Transport, url: string | URL): Effect.Effect<void> =>
  Effect.map(AttemptPath, (report) => {
    if (report !== undefined && originOf(url) !== "") report(pathTo(transport, url));
  });

const readExchange = <S, Id extends string>(
  request: ProviderRequest<S, Id>,
  exchange: Exchange,
  origin: Origin,
  telemetry: ExchangeTelemetry.ExchangeTelemetry,
  times: Times,
): Pull.Pull<Parts<Id>, ProviderError> => {
  const decoder = decoderOf(request);
  const { broken, fail } = failureReporters(exchange, origin, telemetry, times);
  let head: Head | undefined;
  // The first bytes of the body, kept until they prove to be a stream. If they are not, the error is read from them.
  let unproven: Array<Uint8Array> | undefined = [];
  let document: Uint8Array | undefined;
  let last: Pull.Pull<Parts<Id>, ProviderError> | undefined;

  const begin = Effect.gen(function* () {
    head = yield* Effect.catch(exchange.head, broken);
    origin.reached = true;
    if (mayBegin(head, request.protocol.documents === true)) return;
    if (request.protocol.documents !== true || !isDocument(head)) last = yield* readRefusal(head, []);
    else {
      document = yield* Effect.catch(readDocument(exchange), broken);
      if (document === undefined) last = fail({ kind: "protocol", reason: "oversize" });
    }
  });

  const readRefusal = Effect.fnUntraced(function* (head: Head, first: ReadonlyArray<Uint8Array>) {
    const response = yield* readResponse(exchange, head, first);
    return fail(classifyResponse(response, { nowMs: times.nowMs() }), response);
  });

  const readNext = Effect.suspend(() => {
    if (document === undefined) return Effect.catch(exchange.read, broken);
    const whole = [document];
    document = undefined;
    return Effect.succeed(whole);
  });

  return Effect.gen(function* () {
    if (head === undefined) yield* begin;
    while (last === undefined) {
      const chunks = yield* readNext;
      let parts = chunks === undefined ? [] : decode(decoder, chunks);
      unproven?.push(...(chunks ?? []));
      const late = chunks === undefined ? decoder.end() : undefined;
      parts.push(...(late?.parts ?? []));
      if (parts.some(isMarker)) telemetry.complete();
      if (unproven !== undefined && head !== undefined && isNoStream(decoder.failure))
        last = yield* readRefusal(head, unproven);
      else if (late !== undefined) last = late.end.complete ? end(telemetry) : fail(late.end.failure, errorJson(parts));
      else if (decoder.failure !== undefined) last = fail(decoder.failure, errorJson(parts));
      if (Decoder.isTold(decoder.failure)) parts = withFailure(parts, decoder.failure);
      if (late === undefined && last !== undefined) exchange.abort();
      if (parts.length > 0 || sizeOf(unproven ?? []) > errorBodyBytesMax) unproven = undefined;
      const [first, ...rest] = parts;
      if (first !== undefined) return [first, ...rest] satisfies Parts<Id>;
    }
    return yield* last;
  });
};

/**
 * True if a stream may follow this response head. Some servers send a stream with the content type of a document. So the first bytes
 * decide, unless a document is also a valid response.
 */
const mayBegin = (head: Head, documents: boolean): boolean => mayStream(head) || (!documents && mayHaveContent(head));

const decoderOf = <S, Id extends string>({ protocol, tolerance }: ProviderRequest<S, Id>) =>
  Decoder.make(protocol, tolerance === undefined ? {} : { tolerance });

/** Creates functions that report a failure to the telemetry before the stream fails with it. */
const failureReporters = (
  exchange: Exchange,
  origin: Origin,
  telemetry: ExchangeTelemetry.ExchangeTelemetry,
  { now, nowMs }: Times,
) => {
  const fail = (failure: Failure, cause?: unknown) => {
    telemetry.fail(failure);
    return Effect.fail(providerError(failure, exchange.delivery, cause));
  };
  const failOnBreak = (failed: ExchangeBreak) =>
    fail(failureOf(failed, { origin, exchange, now: now(), nowMs: nowMs() }), failed.error);
  return { fail, broken: failOnBreak };
};

const end = (telemetry: ExchangeTelemetry.ExchangeTelemetry): Pull.Pull<never> => {
  telemetry.complete();
  return Cause.done();
};

const decode = <Id extends string>(
  decoder: Decoder.Decoder<Id>,
  chunks: ReadonlyArray<Uint8Array>,
): Array<Part<Id>> => {
  const parts: Array<Part<Id>> = [];
  for (const chunk of chunks) for (const part of decoder.push(chunk)) parts.push(part);
  return parts;
};

/** The JSON of the event that carried the failure, as the provider wrote it. */
const errorJson = (parts: ReadonlyArray<Part<string>>): unknown =>
  parts.find((part) => part.observation.failure !== undefined)?.json;

/** Adds the complete failure to the event that reported it first, because the run decides on the first failure that it sees. */
const withFailure = <Id extends string>(parts: Array<Part<Id>>, failure: Failure): Array<Part<Id>> => {
  const at = parts.findIndex(({ observation }) => observation.failure !== undefined);
  const part = parts[at];
  return part === undefined ? parts : parts.with(at, { ...part, observation: { ...part.observation, failure } });
};

const isMarker = ({ observation }: Part<string>): boolean => observation.terminal && observation.failure === undefined;

const isNoStream = (failure: Failure | undefined): boolean =>
  failure?.kind === "protocol" && failure.reason === "not_a_stream";
