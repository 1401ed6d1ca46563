/**
 * Serves the providers' own protocols on a local address and recovers broken streams.
 *
 * The server is plain `node:http` (OpenPort.ts); everything above it is Effect. The port is opened last, so that a load balancer
 * that takes an open port for readiness sends no client too early.
 *
 * Each request is one fiber, served by `RelayHandler` (a model request: a run of StreamProcessor), by `PassHandler` (anything
 * else) or by `PageHandler` (the gateway's own paths). A shutdown refuses new requests, waits up to a limit for those in flight,
 * closes the processor so that the rest end as `lifecycle_closed`, and then closes the connections.
 */
import { Clock, Context, Deferred, Effect, FiberSet, Layer, Option, type Scope } from "effect";
import type { RelayRepeats } from "../adapters/relay/RelayRepeats.ts";
import type { ClientConfigError } from "../client/ClientConfig.ts";
import * as RecoveryPolicy from "../policy/RecoveryPolicy.ts";
import { monotonicMs, runWithin, sleepRealTime } from "../recorder/MonotonicTime.ts";
import { RunRecorder } from "../recorder/RunRecorder.ts";
import { StreamProcessor } from "../runtime/StreamProcessor.ts";
import { StoreHealth } from "./api/StoreHealth.ts";
import { Attachments } from "./attach/Attachments.ts";
import * as CancelsElsewhere from "./attach/CancelsElsewhere.ts";
import { OtherGateways } from "./attach/OtherGateways.ts";
import { type SiblingServing, Siblings } from "./attach/Siblings.ts";
import { serveHeld } from "./attach/StreamHandler.ts";
import { fixedChangesIn } from "./config/FixedOptions.ts";
import { GatewayError, type GatewayOptions, type GatewaySettings, settingsOf } from "./config/GatewayOptions.ts";
import { gatewayEntries } from "./config/Options.ts";
import type { UpstreamSettings } from "./config/UpstreamSettings.ts";
import { checkDescriptors, reportOutOfDescriptors } from "./limits/Descriptors.ts";
import { Connections } from "./limits/Shares.ts";
import * as OpenPort from "./OpenPort.ts";
import * as ResponseOwners from "./owners/ResponseOwners.ts";
import { Page } from "./proxy/PageHandler.ts";
import * as PathWatch from "./proxy/PathWatch.ts";
import { BodyStore } from "./proxy/RequestBody.ts";
import * as SharedRepeats from "./proxy/SharedRepeats.ts";
import { TrafficMeter } from "./proxy/TrafficMeter.ts";
import { type RequestServing, take } from "./Requests.ts";
import { RouteMemory } from "./routes/RouteMemory.ts";
import { addressOf } from "./routing/Address.ts";
import { withSigning } from "./upstream/Signing.ts";
import * as Upstreams from "./upstream/Upstreams.ts";
import { ReportedPaths } from "./wires/PassedStreams.ts";
import { WorkerSockets } from "./workers/WorkerSockets.ts";

/** A gateway that accepts connections. */
export class Gateway extends Context.Service<
  Gateway,
  {
    readonly host: string;
    readonly port: number;
    /** `http://HOST:PORT`, without a trailing slash. */
    readonly url: string;
    /** Number of requests in flight. */
    readonly serving: Effect.Effect<number>;
    /** Bytes of request bodies that are kept in case they have to be sent again. */
    readonly keptBytes: Effect.Effect<number>;
    /**
     * Applies new options to future requests. Requests in flight keep theirs.
     *
     * @returns the changed options that need a restart: the listening address and the maximum head size
     * @throws GatewayError for an invalid option; then nothing changes
     */
    readonly configure: (options: GatewayOptions) => Effect.Effect<ReadonlyArray<string>, GatewayError>;
  }
>()("effect-stream-recovery/gateway/Gateway") {
  /**
   * Starts a gateway, which drains and stops when the scope is closed.
   *
   * @throws GatewayError for an invalid option or an unavailable address
   */
  static readonly make = (
    options: GatewayOptions = {},
  ): Effect.Effect<
    Gateway["Service"],
    GatewayError | ClientConfigError,
    StreamProcessor | TrafficMeter | Scope.Scope
  > => make(options);

  /** Provides a gateway. The gateway also serves the `Page` service if one is provided. */
  static readonly layer = (
    options: GatewayOptions = {},
  ): Layer.Layer<Gateway, GatewayError | ClientConfigError, StreamProcessor | TrafficMeter> =>
    Layer.effect(Gateway, make(options));
}

/**
 * Maximum time that a non-streaming request waits for its path, in milliseconds; then the client is asked to retry. The client receives no
 * bytes during the wait, and some clients time out after a minute.
 */
export const PathPatienceMs = Context.Reference<number>("stream-recovery/gateway/PathPatienceMs", {
  defaultValue: () => 15_000,
});

/** Reads the state of the store's writes. Without a `StoreHealth` service the state is always ok. */
const storeState = Effect.map(Effect.serviceOption(StoreHealth), (health) =>
  Option.isNone(health) ? () => ({ writes: "ok" as const }) : health.value.now,
);

/**
 * Closes the processor during a shutdown. Its runs still write their ends, and a failing store could block them, so the recorder is first
 * told (`hurry`) to wait only a few seconds for the store.
 */
const closer = Effect.gen(function* () {
  const { close } = yield* StreamProcessor;
  const recorder = yield* Effect.serviceOption(RunRecorder);
  const hurry = Option.getOrUndefined(recorder)?.hurry ?? Effect.void;
  return { close: (why: string) => Effect.andThen(hurry, close(why)) };
});

const pageIfAny = Effect.map(Effect.serviceOption(Page), Option.getOrUndefined);

/** Creates the table of connections. Logs a warning if the limit of file descriptors is too low for the maximum number of connections. */
const makeConnections = Effect.fnUntraced(function* (max: number) {
  yield* checkDescriptors(max);
  const report = Effect.runForkWith(yield* Effect.context<never>());
  return new Connections(max, () => void report(reportOutOfDescriptors));
});

/**
 * Creates two sets of fibers: those of model requests, for which a shutdown waits, and those of the gateway's own paths, which get only a
 * short time.
 */
const requestFibers = Effect.gen(function* () {
  const [served, pages] = [yield* FiberSet.make<void>(), yield* FiberSet.make<void>()];
  const run = yield* FiberSet.runtime(served)<StreamProcessor>();
  return { served, pages, run, runPage: yield* FiberSet.runtime(pages)<StreamProcessor>() };
});

const make = Effect.fn("Gateway.make")(function* (options: GatewayOptions) {
  const first = settingsOf(options);
  if (first instanceof GatewayError) return yield* first;
  const [meter, processor, pathPatienceMs] = [yield* TrafficMeter, yield* closer, yield* PathPatienceMs];
  const upstreams = yield* Upstreams.make;
  const [bodies, reported, page] = [new BodyStore(first.limits), new ReportedPaths(), yield* pageIfAny];
  const connections = yield* makeConnections(first.limits.maxConnections);
  let draining = false;
  const [closing, clock] = [yield* Deferred.make<void>(), yield* Clock.Clock];
  const awaitClosing = Deferred.await(closing);
  const [repeats, memory, owners] = [yield* SharedRepeats.make, new RouteMemory(), yield* ResponseOwners.make];
  const [store, watch] = [yield* storeState, yield* PathWatch.make];
  const { attachments, cancels, gateways, serveSiblings } = yield* makeAttachments(meter, awaitClosing, first);
  const signWith = (reach: RequestServing["reach"]) => (server: UpstreamSettings) =>
    withSigning(reach(server), server, () => clock.currentTimeMillisUnsafe());
  const servingOf = (settings: GatewaySettings, given: GatewayOptions): RequestServing => ({
    ...{ settings, attachments, cancels, bodies, connections, memory, meter },
    ...{ owners, page, reported, store, watch, reach: signWith(upstreams.reach) },
    draining: () => draining,
    closing: awaitClosing,
    options: relayOptionsOf(settings, given, repeats, pathPatienceMs),
  });
  let serving = servingOf(first, options);
  const { pages, run, runPage, served } = yield* requestFibers;
  yield* serveSiblings(run, () => serving.settings.limits.slowClientMs);
  const listener: OpenPort.Listener = (request, response, expects) => {
    if (takeHop(gateways, connections, request, response)) return;
    const client = OpenPort.clientOf(response, expects, serving.settings, clock);
    const address = addressOf(request.url ?? "");
    const start = "own" in address && address.own ? runPage : run;
    start(take(request, client, serving, address));
  };
  const port = yield* Effect.acquireRelease(OpenPort.open(first, listener, connections), (opened) =>
    Effect.suspend(() => {
      draining = true;
      meter.draining();
      Deferred.doneUnsafe(closing, Effect.void);
      return drain(opened, connections, [served, pages], serving.settings.limits.drainMs, processor);
    }),
  );
  yield* gateways?.publish ?? Effect.void;
  meter.listening(() => connections.open);
  meter.lingering(attachments.list);
  const configure = Effect.fnUntraced(function* (next: GatewayOptions) {
    // The listening address cannot change here, so the settings are checked against the current one: a public address requires a token.
    const settings = settingsOf({ ...next, host: first.host, port: first.port });
    if (settings instanceof GatewayError) return yield* settings;
    yield* OpenPort.reconfigure(port.server, settings);
    bodies.limit(settings.limits);
    connections.limit(settings.limits.maxConnections);
    serving = servingOf(settings, next);
    upstreams.keep(settings.servers.values());
    return fixedChangesIn(options, next, gatewayEntries);
  });
  return Gateway.of({
    ...{ host: first.host, port: port.number, configure, url: OpenPort.urlOf(first, port.number) },
    serving: FiberSet.size(served),
    keptBytes: Effect.sync(() => bodies.keptBytes),
  });
});

/** Handles a request that another gateway forwarded. Returns false for any other request. */
const takeHop = (
  gateways: OtherGateways | undefined,
  connections: Connections,
  ...[request, response]: [...Parameters<OtherGateways["wire"]["take"]>]
): boolean => {
  if (gateways?.isFor(request) !== true) return false;
  if (gateways.wire.take(request, response)) connections.claim(request.socket, undefined);
  return true;
};

/** Creates the attachments (runs that may outlive their clients) and the handler of requests that other processes forward. */
const makeAttachments = Effect.fnUntraced(function* (
  meter: TrafficMeter["Service"],
  closing: Effect.Effect<void>,
  { advertise }: Pick<GatewaySettings, "advertise">,
) {
  const clock = yield* Clock.Clock;
  const recorder = Option.getOrUndefined(yield* Effect.serviceOption(RunRecorder));
  const facts = recorder?.shared;
  const sockets = Option.getOrUndefined(yield* Effect.serviceOption(WorkerSockets));
  const gateways =
    advertise === undefined || facts === undefined ? undefined : yield* OtherGateways.make(advertise, facts);
  const siblings = yield* Siblings.make(sockets, gateways, facts);
  // The secret belongs to the store, so that all its gateways derive the same keys.
  const attachments = yield* Attachments.make({ meter, siblings, closing, secret: facts?.secret });
  const cancels = yield* CancelsElsewhere.make(attachments, facts, recorder?.cancels);
  const serve: SiblingServing["serve"] = (wish, client) => {
    if (wish._tag === "Stream") return serveHeld(wish, client, attachments);
    const { asked, idempotencyKey, key, repeats } = wish;
    const repeat = { asked, repeats, lingerMs: 0, forbidden: false, idempotencyKey: idempotencyKey ?? undefined };
    return attachments.serveRepeatHere(key, repeat, client);
  };
  const serving = {
    hasRequest: (key: string) => attachments.hasRequest(key),
    hasRun: (runId: string, holder: string) => attachments.find(runId, holder) !== undefined,
    now: () => monotonicMs(clock),
    serve,
  };
  return {
    attachments,
    cancels,
    gateways,
    serveSiblings: (run: SiblingServing["run"], slowMs: () => number): Effect.Effect<void, never, Scope.Scope> =>
      siblings?.serve({ ...serving, run, slowMs }) ?? Effect.void,
  };
});

const relayOptionsOf = (
  { budget, keepAliveMs, prefills, retryEmpty }: GatewaySettings,
  { clocks: { connect: _, ...clocks } = {}, policy }: GatewayOptions,
  repeats: RelayRepeats,
  pathPatienceMs: number,
): RequestServing["options"] => ({
  ...{ budget, clocks, keepAliveMs, pathPatienceMs, prefills, repeats, emptyIsFailure: retryEmpty },
  ...(policy === undefined ? {} : { policy: RecoveryPolicy.make({ stricter: policy }) }),
});

/** Maximum time that a shutdown waits for written bytes to reach their clients, in milliseconds. */
const flushMs = 2_000;

/** Maximum time that a shutdown waits for the first requests on new connections, in milliseconds. */
const firstRequestMs = 1_000;

/** Interval at which a shutdown checks for connections that have not sent a request yet, in milliseconds. */
const firstRequestLookMs = 10;

/**
 * Returns after each open connection has sent a request, or after `firstRequestMs`. Sockets take real time, even in a test that moves the
 * clock.
 */
const awaitFirstRequests = (connections: Connections): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (connections.unclaimedCount === 0) return Effect.void;
    const looks = Effect.repeat(sleepRealTime(firstRequestLookMs), { while: () => connections.unclaimedCount > 0 });
    return Effect.asVoid(runWithin(looks, firstRequestMs));
  });

/**
 * Refuses new requests, waits for those in flight, and ends the rest. Connections are closed last, so that written bytes are sent first.
 */
const drain = Effect.fnUntraced(function* (
  { close, server }: Pick<OpenPort.OpenPort, "close" | "server">,
  connections: Connections,
  [served, pages]: readonly [FiberSet.FiberSet<void>, FiberSet.FiberSet<void>],
  drainMs: number,
  processor: Pick<StreamProcessor["Service"], "close">,
) {
  yield* Effect.sync(() => void server.close());
  yield* awaitFirstRequests(connections);
  // Feeds have ended by now, and the page's other responses take less time than `flushMs`.
  yield* waitAtMost(FiberSet.awaitEmpty(pages), flushMs);
  yield* FiberSet.clear(pages);
  yield* waitAtMost(FiberSet.awaitEmpty(served), drainMs);
  yield* processor.close("the gateway is shutting down");
  yield* waitAtMost(FiberSet.awaitEmpty(served), 2 * flushMs);
  // Interrupts the requests that are left, which pass through without a run. Their bodies are broken like those of runs.
  yield* waitAtMost(FiberSet.clear(served), flushMs);
  yield* Effect.sync(close);
});

/** Waits for an effect, but no longer than `ms`. The wait is interruptible, because a finalizer itself is not. */
const waitAtMost = (waited: Effect.Effect<void>, ms: number): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(Effect.interruptible(waited), ms));
