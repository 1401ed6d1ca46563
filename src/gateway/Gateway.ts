/**
 * Serves the providers' own protocols on a local address, and recovers what breaks behind it.
 *
 * The server is plain `node:http`: what has to be the same as without it (header names, their order and repetition, bytes,
 * flushed heads, a broken connection where a response broke) a framework would decide by itself. Everything above it is Effect.
 *
 * One request is one fiber. It is served by `RelayHandler` (a model request: a run of StreamProcessor), by `PassHandler`
 * (anything else) or by `PageHandler` (the gateway's own paths). A shutdown takes no new request, waits for what runs within a
 * limit, closes the processor so that the rest ends as `lifecycle_closed`, and then the connections.
 */

import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Duplex } from "node:stream";
import { Clock, Context, Deferred, Effect, FiberSet, Layer, Option, Redacted, type Scope } from "effect";
import type { RelayRepeats } from "../adapters/relay/RelayRepeats.ts";
import type { ClientConfigError } from "../client/ClientConfig.ts";
import * as RecoveryPolicy from "../policy/RecoveryPolicy.ts";
import { DeliveryStore } from "../recorder/delivery/DeliveryStore.ts";
import { monotonicMs } from "../recorder/MonotonicTime.ts";
import { RunRecorder } from "../recorder/RunRecorder.ts";
import { StreamProcessor } from "../runtime/StreamProcessor.ts";
import { StoreHealth } from "./api/StoreHealth.ts";
import { Attachments } from "./attach/Attachments.ts";
import * as CancelsElsewhere from "./attach/CancelsElsewhere.ts";
import { type SiblingServing, Siblings } from "./attach/Siblings.ts";
import { serveHeld } from "./attach/StreamHandler.ts";
import {
  GatewayError,
  type GatewayOptions,
  type GatewaySettings,
  hostDefault,
  type ListenTls,
  portDefault,
  settingsOf,
} from "./config/GatewayOptions.ts";
import { Deliveries } from "./delivery/Deliveries.ts";
import { Access } from "./log/AccessRecord.ts";
import { ClientResponse, errorBody, flushMs } from "./proxy/ClientResponse.ts";
import { Page } from "./proxy/PageHandler.ts";
import * as PathWatch from "./proxy/PathWatch.ts";
import { BodyStore } from "./proxy/RequestBody.ts";
import * as SharedRepeats from "./proxy/SharedRepeats.ts";
import { TrafficMeter } from "./proxy/TrafficMeter.ts";
import { type RequestServing, take } from "./Requests.ts";
import { RouteMemory } from "./routes/RouteMemory.ts";
import { addressOf, noProxy } from "./routing/Address.ts";
import * as Upstreams from "./upstream/Upstreams.ts";
import { WorkerBus } from "./workers/WorkerBus.ts";

/** A gateway that listens. */
export class Gateway extends Context.Service<
  Gateway,
  {
    readonly host: string;
    readonly port: number;
    /** `http://HOST:PORT`, without a slash at the end. */
    readonly url: string;
    /** Requests that are being served. */
    readonly serving: Effect.Effect<number>;
    /** Bytes of request bodies that are kept, because they may have to be sent again. */
    readonly keptBytes: Effect.Effect<number>;
    /**
     * Takes other options for the requests that come from now on; those that run keep theirs.
     *
     * @returns the options that differ and need a restart: where it listens, and the longest head
     * @throws GatewayError for an option that cannot be; then all stays as it was
     */
    readonly configure: (options: GatewayOptions) => Effect.Effect<ReadonlyArray<string>, GatewayError>;
  }
>()("effect-stream-recovery/gateway/Gateway") {
  /**
   * Starts a gateway; it drains and stops when the scope is closed.
   *
   * @throws GatewayError for an option that cannot be, or an address that cannot be had
   */
  static readonly make = (
    options: GatewayOptions = {},
  ): Effect.Effect<
    Gateway["Service"],
    GatewayError | ClientConfigError,
    StreamProcessor | TrafficMeter | Scope.Scope
  > => make(options);

  /** Serves the page too where there is one. */
  static readonly layer = (
    options: GatewayOptions = {},
  ): Layer.Layer<Gateway, GatewayError | ClientConfigError, StreamProcessor | TrafficMeter> =>
    Layer.effect(Gateway, make(options));
}

/** How the store's writes go; a store that is not watched is taken at its word. */
const storeState = Effect.map(Effect.serviceOption(StoreHealth), (health) =>
  Option.isNone(health) ? () => ({ writes: "ok" as const }) : health.value.now,
);

/** Closes the processor of a process that is about to end: its runs still write for a moment, to a store that may not answer. */
const closer = Effect.gen(function* () {
  const { close } = yield* StreamProcessor;
  const recorder = yield* Effect.serviceOption(RunRecorder);
  const hurry = Option.getOrUndefined(recorder)?.hurry ?? Effect.void;
  return { close: (why: string) => Effect.andThen(hurry, close(why)) };
});

const make = Effect.fn("Gateway.make")(function* (options: GatewayOptions) {
  const first = settingsOf(options);
  if (first instanceof GatewayError) return yield* first;
  const meter = yield* TrafficMeter;
  const processor = yield* closer;
  const upstreams = yield* Upstreams.make;
  const bodies = new BodyStore(first.limits);
  let draining = false;
  const closing = yield* Deferred.make<void>();
  const [repeats, memory] = [yield* SharedRepeats.make, new RouteMemory()];
  const page = Option.getOrUndefined(yield* Effect.serviceOption(Page));
  const [store, watch] = [yield* storeState, yield* PathWatch.make];
  const attached = yield* attaching(meter, Deferred.await(closing), () => serving.settings);
  const { attachments, cancels, serveSiblings } = attached;
  const servingOf = (settings: GatewaySettings, given: GatewayOptions): RequestServing => ({
    ...{ settings, attachments, cancels, bodies, memory, meter, page, store, watch, reach: upstreams.reach },
    draining: () => draining,
    closing: Deferred.await(closing),
    options: relayOptionsOf(settings, given, repeats),
  });
  let serving = servingOf(first, options);
  const served = yield* FiberSet.make<void>();
  const pages = yield* FiberSet.make<void>();
  const run = yield* FiberSet.runtime(served)<StreamProcessor>();
  const runPage = yield* FiberSet.runtime(pages)<StreamProcessor>();
  const clock = yield* Clock.Clock;
  yield* serveSiblings(run, () => serving.settings.limits.slowClientMs);
  const server = yield* serverOf(first, (request, response, expects) => {
    const client = clientOf(response, expects, serving.settings, clock);
    const address = addressOf(request.url ?? "");
    const start = "own" in address && address.own ? runPage : run;
    start(take(request, client, serving, address));
  });
  const sockets = countSockets(server);
  const port = yield* Effect.acquireRelease(listen(server, first), () =>
    Effect.suspend(() => {
      draining = true;
      meter.draining();
      Deferred.doneUnsafe(closing, Effect.void);
      return drained(server, served, pages, serving.settings.limits.drainMs, processor);
    }),
  );
  meter.listening(sockets);
  meter.lingering(attachments.list);
  const configure = Effect.fnUntraced(function* (next: GatewayOptions) {
    // The address that it has stays: what is open to other machines still wants a token.
    const settings = settingsOf({ ...next, host: first.host, port: first.port });
    if (settings instanceof GatewayError) return yield* settings;
    yield* reconfigured(server, settings);
    bodies.limit(settings.limits);
    serving = servingOf(settings, next);
    upstreams.keep(settings.servers.values());
    return fixedIn(first, settings, next);
  });
  return Gateway.of({
    ...{ host: first.host, port, configure, url: urlOf(first, port) },
    serving: FiberSet.size(served),
    keptBytes: Effect.sync(() => bodies.kept),
  });
});

const urlOf = ({ host, tls }: GatewaySettings, port: number): string =>
  `${tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`;

/** The runs that may outlive their clients, and what this process does for the clients of other workers. */
const attaching = Effect.fnUntraced(function* (
  meter: TrafficMeter["Service"],
  closing: Effect.Effect<void>,
  settings: () => GatewaySettings,
) {
  const bus = Option.getOrUndefined(yield* Effect.serviceOption(WorkerBus));
  const clock = yield* Clock.Clock;
  const siblings = yield* Siblings.make(bus);
  const log = Option.getOrUndefined(yield* Effect.serviceOption(DeliveryStore));
  const recorder = Option.getOrUndefined(yield* Effect.serviceOption(RunRecorder));
  const deliveries = log === undefined ? undefined : yield* Deliveries.make(log, recorder);
  const tokenDigest = (name: string) => settings().tokens.find((token) => token.name === name)?.digest;
  // The gateways over one log make the same keys, the workers of one machine too.
  const facts = recorder?.shared;
  const secret = log === undefined ? (facts?.secret ?? bus?.secret) : Redacted.make(log.secret);
  const attachments = yield* Attachments.make({ meter, siblings, closing, secret, deliveries, tokenDigest });
  const cancels = yield* CancelsElsewhere.make(attachments, facts);
  // Before the runs that linger are forgotten.
  if (deliveries !== undefined) yield* Effect.addFinalizer(() => deliveries.owner.close);
  const serve: SiblingServing["serve"] = (wish, client) => {
    if (wish._tag === "Stream") return serveHeld(wish, client, attachments);
    const { asked, idempotencyKey, key, repeats } = wish;
    const repeat = { asked, repeats, lingerMs: 0, forbidden: false, idempotencyKey: idempotencyKey ?? undefined };
    return attachments.repeatedHere(key, repeat, client);
  };
  const serving = {
    hasRequest: (key: string) => attachments.hasRequest(key),
    hasRun: (runId: string, holder: string) => attachments.found(runId, holder) !== undefined,
    now: () => monotonicMs(clock),
    serve,
  };
  return {
    attachments,
    cancels,
    /** @param slowMs as it is configured now */
    serveSiblings: (run: SiblingServing["run"], slowMs: () => number): Effect.Effect<void, never, Scope.Scope> =>
      siblings?.serve({ ...serving, run, slowMs }) ?? Effect.void,
  };
});

const clientOf = (
  response: ServerResponse,
  expects: boolean,
  { limits }: GatewaySettings,
  clock: Clock.Clock,
): ClientResponse => {
  const client = new ClientResponse(response, limits.slowClientMs, new Access(() => monotonicMs(clock)));
  if (expects) client.expectsInvitation();
  return client;
};

/** What every run is given. */
const relayOptionsOf = (
  { budget, keepAliveMs, pathPatienceMs, prefills, retryEmpty }: GatewaySettings,
  { clocks, policy }: GatewayOptions,
  repeats: RelayRepeats,
): RequestServing["options"] => ({
  ...{ budget, keepAliveMs, pathPatienceMs, prefills, repeats, emptyIsFailure: retryEmpty },
  ...(clocks === undefined ? {} : { clocks }),
  ...(policy === undefined ? {} : { policy: RecoveryPolicy.make({ stricter: policy }) }),
});

/** The options that a gateway which listens cannot change. */
const fixedIn = (
  first: GatewaySettings,
  settings: GatewaySettings,
  { host, port }: GatewayOptions,
): ReadonlyArray<string> => [
  ...((host ?? hostDefault) === first.host ? [] : ["host"]),
  ...((port ?? portDefault) === first.port ? [] : ["port"]),
  ...((settings.tls === undefined) === (first.tls === undefined) ? [] : ["tls"]),
  ...(settings.limits.maxHeaderBytes === first.limits.maxHeaderBytes ? [] : ["maxHeaderBytes"]),
];

type Server = HttpServer | TlsServer;

const serverOf = (
  { limits, tls }: GatewaySettings,
  listener: (request: IncomingMessage, response: ServerResponse, expects: boolean) => void,
): Effect.Effect<Server, GatewayError> =>
  Effect.gen(function* () {
    const options = {
      ...timeoutsOf(limits),
      maxHeaderSize: limits.maxHeaderBytes,
      // Those limits are looked at so often.
      connectionsCheckingInterval: Math.max(100, Math.min(5_000, Math.floor(limits.headMs / 4))),
      noDelay: true,
    };
    const asked = (request: IncomingMessage, response: ServerResponse) => listener(request, response, false);
    const server: Server =
      tls === undefined
        ? createServer(options, asked)
        : yield* certified(() => createTlsServer({ ...options, ...keyOf(tls) }, asked));
    // Without a listener Node asks for every body, also for one that is refused by its length.
    server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) =>
      listener(request, response, true),
    );
    server.maxConnections = limits.maxConnections;
    server.on("connect", refuseTunnel);
    return server;
  });

const timeoutsOf = ({ headMs, idleConnectionMs, requestMs }: GatewaySettings["limits"]) => ({
  headersTimeout: Math.min(headMs, requestMs),
  requestTimeout: requestMs,
  keepAliveTimeout: idleConnectionMs,
});

const keyOf = ({ cert, key }: ListenTls) => ({ cert, key: Redacted.value(key) });

/** OpenSSL's own words may hold a part of a key. */
const certified = <A>(make: () => A): Effect.Effect<A, GatewayError> =>
  Effect.try({
    try: make,
    catch: () => new GatewayError({ reason: "bad_option", message: "tls: expected a certificate and its key (PEM)" }),
  });

/** Gives a server that listens its new limits, and a certificate that was renewed. */
const reconfigured = (server: Server, { limits, tls }: GatewaySettings): Effect.Effect<void, GatewayError> =>
  Effect.gen(function* () {
    if (tls !== undefined && "setSecureContext" in server) yield* certified(() => server.setSecureContext(keyOf(tls)));
    server.maxConnections = limits.maxConnections;
    Object.assign(server, timeoutsOf(limits));
  });

/** Without a listener Node closes such a socket in silence; a client that takes the gateway for its proxy gets a response. */
const refuseTunnel = (_: IncomingMessage, socket: Duplex): void => {
  const body = JSON.stringify(errorBody(noProxy));
  const head = [
    "HTTP/1.1 400 Bad Request",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-recovery-refused: ${noProxy.reason}`,
    "connection: close",
  ];
  socket.on("error", () => undefined);
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`, () => void socket.destroy());
};

const countSockets = (server: Server): (() => number) => {
  let open = 0;
  server.on("connection", (socket) => {
    open += 1;
    socket.once("close", () => {
      open -= 1;
    });
  });
  return () => open;
};

const listen = (server: Server, { host, port }: GatewaySettings): Effect.Effect<number, GatewayError> =>
  Effect.callback((resume) => {
    const failed = (error: NodeJS.ErrnoException) => {
      const message = `cannot listen on ${host}:${port} (${error.code ?? "unknown"})`;
      resume(Effect.fail(new GatewayError({ reason: "cannot_listen", message })));
    };
    server.once("error", failed);
    server.listen(port, host, () => {
      server.off("error", failed);
      const address = server.address();
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : port));
    });
  });

/** Takes no more, waits, ends what remains, and only then closes connections: what was written has left by then. */
const drained = Effect.fnUntraced(function* (
  server: Server,
  served: FiberSet.FiberSet<void>,
  pages: FiberSet.FiberSet<void>,
  drainMs: number,
  processor: Pick<StreamProcessor["Service"], "close">,
) {
  yield* Effect.sync(() => void server.close());
  // Feeds have ended by now; what the page sends in one piece takes no longer than this.
  yield* within(FiberSet.awaitEmpty(pages), flushMs);
  yield* FiberSet.clear(pages);
  yield* within(FiberSet.awaitEmpty(served), drainMs);
  yield* processor.close("the gateway shuts down");
  yield* within(FiberSet.awaitEmpty(served), 2 * flushMs);
  yield* Effect.sync(() => server.closeAllConnections());
});

/** A finalizer cannot be interrupted, but what it waits for can. */
const within = (waited: Effect.Effect<void>, ms: number): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(Effect.interruptible(waited), ms));
