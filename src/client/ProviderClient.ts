/**
 * Reaches a provider: one streaming HTTP/1.1 request, decoded to parts, with a truthful report of its delivery.
 *
 * No timeout of undici is left on, nothing is retried below the caller, no redirect is followed and no connection idles for
 * more than ten seconds (a NAT drops idle connections in silence, and the next request then dies on a dead socket). When
 * the stream's scope closes, by the end, a failure or an interruption, a response that is not complete loses its socket.
 */

import { Cause, Clock, Context, Effect, Layer, type Pull, type Scope, Stream } from "effect";
import type { Failure } from "../domain/Failure.ts";
import { classify, classifyResponse } from "../failure/FailureClassifier.ts";
import type { AnyProtocolId, Part, ProtocolId } from "../provider/Protocols.ts";
import * as Decoder from "../provider/stream/Decoder.ts";
import { monotonicMs } from "../recorder/MonotonicTime.ts";
import { type ClientConfigError, keepAliveMs } from "./ClientConfig.ts";
import * as Connections from "./connection/Connections.ts";
import * as Connector from "./connection/Connector.ts";
import { type Broken, Exchange, type Head } from "./connection/Exchange.ts";
import { type Origin, Origins } from "./connection/Origin.ts";
import type { ExchangeRecord } from "./ExchangeRecord.ts";
import * as Telling from "./ExchangeTelemetry.ts";
import { type ProviderError, providerError } from "./ProviderError.ts";
import { originOf, type ProviderRequest, send, type Wire } from "./ProviderRequest.ts";
import {
  errorBodyBytesMax,
  isDocument,
  mayHaveContent,
  mayStream,
  readDocument,
  readResponse,
  sizeOf,
} from "./ResponseReader.ts";

/** The `connect` clock's default: milliseconds for name lookup, TCP and TLS together; docs/clocks.md. */
export const connectMsDefault = 30_000;

/** How a client connects. It has no other clocks: those of a run belong to the watchdog. */
export interface ProviderClientOptions {
  /** The `connect` clock, in milliseconds; default 30,000. */
  readonly connectMs?: number;
  /**
   * Longest idle time of a kept connection, in milliseconds; default `STREAM_RECOVERY_KEEPALIVE_MS`, else 10,000. A server's
   * Keep-Alive header may shorten it and never widens it. Above a second undici's timers close it up to a second late.
   */
  readonly keepAliveMs?: number;
  /** Most connections to one origin; more requests wait. Default no limit: a stream occupies its connection. */
  readonly connections?: number;
  /** For private certificate authorities and client certificates. */
  readonly tls?: Connector.TlsOptions;
  /** Told of every exchange when it is over, however it came out. Called synchronously; what it throws is logged. */
  readonly onExchange?: (record: ExchangeRecord) => void;
}

/** Reaches providers over kept connections and gives their streams as parts; every failure is a `ProviderError`. */
export class ProviderClient extends Context.Service<
  ProviderClient,
  {
    /**
     * Sends a request when the stream is run and gives its parts; parts that arrived together come as one array. It ends
     * only after the provider's own terminal marker and fails with `ProviderError` otherwise (law L5).
     */
    readonly stream: <S, Id extends AnyProtocolId = ProtocolId>(
      request: ProviderRequest<S, Id>,
    ) => Stream.Stream<Part<Id>, ProviderError>;
  }
>()("effect-stream-recovery/client/ProviderClient") {
  /**
   * Makes a client whose connections are closed with its scope.
   *
   * @throws ClientConfigError for a `keepAliveMs`, or a `STREAM_RECOVERY_KEEPALIVE_MS`, that is no number of milliseconds
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
  const connector = Connector.make(options.connectMs ?? connectMsDefault, options.tls ?? {});
  const agent = yield* Connections.make({
    connector,
    keepAliveMs: yield* keepAliveMs(options.keepAliveMs),
    connections: options.connections,
    origins,
    now,
  });
  const teller = Telling.make(now, options.onExchange);
  const transport: Transport = { agent, connector, origins, now, teller };
  return ProviderClient.of({
    stream: (request) =>
      Stream.unwrap(Effect.map(open(transport, request), (pull) => Stream.fromPull(Effect.succeed(pull)))),
  });
});

interface Transport extends Wire {
  readonly origins: Origins;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly teller: Telling.Teller;
}

type Parts<Id extends AnyProtocolId> = readonly [Part<Id>, ...Array<Part<Id>>];

/** Opens the exchange within the stream's scope and gives the pull that reads it. */
const open = Effect.fnUntraced(function* <S, Id extends AnyProtocolId>(
  transport: Transport,
  request: ProviderRequest<S, Id>,
) {
  const clock = yield* Clock.Clock;
  const origin = transport.origins.of(originOf(request.url));
  const telling = yield* transport.teller(originOf(request.url), origin);
  const exchange = yield* Effect.acquireRelease(
    Effect.sync(() => telling.begin(new Exchange(request, transport.now))),
    (exchange) => Effect.sync(() => exchange.abort()),
  );
  yield* send(transport, request, exchange);
  return reading(request, exchange, origin, telling, () => clock.currentTimeMillisUnsafe());
});

/** The pull that reads an exchange to its end. */
const reading = <S, Id extends AnyProtocolId>(
  request: ProviderRequest<S, Id>,
  exchange: Exchange,
  origin: Origin,
  telling: Telling.Telling,
  nowMs: () => number,
): Pull.Pull<Parts<Id>, ProviderError> => {
  const decoder = decoderOf(request);
  const { broken, fail } = failing(exchange, origin, telling, nowMs);
  let answered: Head | undefined;
  // The first bytes, until they prove to be a stream: an answer that is none says in them what it is.
  let unproven: Array<Uint8Array> | undefined = [];
  let document: Uint8Array | undefined;
  let last: Pull.Pull<Parts<Id>, ProviderError> | undefined;

  const begin = Effect.gen(function* () {
    answered = yield* Effect.catch(exchange.head, broken);
    origin.reached = true;
    if (mayBegin(answered, request.protocol.documents === true)) return;
    if (request.protocol.documents !== true || !isDocument(answered)) last = yield* refused(answered, []);
    else {
      document = yield* Effect.catch(readDocument(exchange), broken);
      if (document === undefined) last = fail({ kind: "protocol", reason: "oversize" });
    }
  });

  const refused = Effect.fnUntraced(function* (head: Head, first: ReadonlyArray<Uint8Array>) {
    const response = yield* readResponse(exchange, head, first);
    return fail(classifyResponse(response, { nowMs: nowMs() }), response);
  });

  const arrived = Effect.suspend(() => {
    if (document === undefined) return Effect.catch(exchange.read, broken);
    const whole = [document];
    document = undefined;
    return Effect.succeed(whole);
  });

  return Effect.gen(function* () {
    if (answered === undefined) yield* begin;
    while (last === undefined) {
      const chunks = yield* arrived;
      let parts = chunks === undefined ? [] : decode(decoder, chunks);
      unproven?.push(...(chunks ?? []));
      const late = chunks === undefined ? decoder.end() : undefined;
      parts.push(...(late?.parts ?? []));
      if (parts.some(isMarker)) telling.complete();
      if (unproven !== undefined && answered !== undefined && isNoStream(decoder.failure))
        last = yield* refused(answered, unproven);
      else if (late !== undefined) last = late.end.complete ? done(telling) : fail(late.end.failure, evidence(parts));
      else if (decoder.failure !== undefined) last = fail(decoder.failure, evidence(parts));
      if (Decoder.isTold(decoder.failure)) parts = told(parts, decoder.failure);
      if (late === undefined && last !== undefined) exchange.abort();
      if (parts.length > 0 || sizeOf(unproven ?? []) > errorBodyBytesMax) unproven = undefined;
      const [first, ...rest] = parts;
      if (first !== undefined) return [first, ...rest] satisfies Parts<Id>;
    }
    return yield* last;
  });
};

/** Some servers send a stream as a document's type: the first bytes decide, but where a document is an answer too. */
const mayBegin = (head: Head, documents: boolean): boolean => mayStream(head) || (!documents && mayHaveContent(head));

const decoderOf = <S, Id extends AnyProtocolId>({ protocol, tolerance }: ProviderRequest<S, Id>) =>
  Decoder.make(protocol, tolerance === undefined ? {} : { tolerance });

/** How a reader fails: every failure is told of before the stream ends with it. */
const failing = (exchange: Exchange, origin: Origin, telling: Telling.Telling, nowMs: () => number) => {
  const fail = (failure: Failure, cause?: unknown) => {
    telling.failed(failure);
    return Effect.fail(providerError(failure, exchange.delivery, cause));
  };
  const broken = (failed: Broken) => fail(failureOf(failed, origin, nowMs()), failed.error);
  return { fail, broken };
};

const done = (telling: Telling.Telling): Pull.Pull<never> => {
  telling.complete();
  return Cause.done();
};

const decode = <Id extends AnyProtocolId>(
  decoder: Decoder.Decoder<Id>,
  chunks: ReadonlyArray<Uint8Array>,
): Array<Part<Id>> => {
  const parts: Array<Part<Id>> = [];
  for (const chunk of chunks) for (const part of decoder.push(chunk)) parts.push(part);
  return parts;
};

/** The JSON of the event that carried the failure: the provider's own words. */
const evidence = (parts: ReadonlyArray<Part<AnyProtocolId>>): unknown =>
  parts.find((part) => part.observation.failure !== undefined)?.json;

/** The event that failed with all that the provider said about it: the run decides on the first one that it sees. */
const told = <Id extends AnyProtocolId>(parts: Array<Part<Id>>, failure: Failure): Array<Part<Id>> => {
  const at = parts.findIndex(({ observation }) => observation.failure !== undefined);
  const part = parts[at];
  return part === undefined ? parts : parts.with(at, { ...part, observation: { ...part.observation, failure } });
};

const isMarker = ({ observation }: Part<AnyProtocolId>): boolean =>
  observation.terminal && observation.failure === undefined;

const isNoStream = (failure: Failure | undefined): boolean =>
  failure?.kind === "protocol" && failure.reason === "not_a_stream";

const failureOf = ({ error, operation, unsendable }: Broken, { reached }: Origin, nowMs: number): Failure => {
  if (error instanceof Connector.ConnectStalled) return { kind: "stalled", clock: "connect" };
  if (unsendable) return { kind: "caller_failed" };
  return classify(error, { operation, reachedHostBefore: reached, nowMs });
};
