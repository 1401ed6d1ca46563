/**
 * Serves the providers' own protocols on a local address, and recovers what breaks behind it.
 *
 * The server is plain `node:http` (OpenPort.ts), and everything above it is Effect. Its port is opened last: a balancer that takes an open
 * port for a gateway that serves sends no client to one that starts.
 *
 * One request is one fiber. It is served by `RelayHandler` (a model request: a run of StreamProcessor), by `PassHandler`
 * (anything else) or by `PageHandler` (the gateway's own paths). A shutdown takes no new request, waits for what runs within a
 * limit, closes the processor so that the rest ends as `lifecycle_closed`, and then the connections.
 */
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
import { fixedIn } from "./config/FixedOptions.ts";
import { GatewayError, type GatewayOptions, type GatewaySettings, settingsOf } from "./config/GatewayOptions.ts";
import { gatewayEntries } from "./config/Options.ts";
import { Deliveries } from "./delivery/Deliveries.ts";
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
import * as Upstreams from "./upstream/Upstreams.ts";
import { ReportedPaths } from "./wires/PassedStreams.ts";
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

/**
 * Maximum time that a request that does not stream waits for its path before its client is told to ask again, in milliseconds. Nothing can be sent to
 * that client meanwhile, and the least patient one gives up after a minute.
 */
export const PathPatienceMs = Context.Reference<number>("stream-recovery/gateway/PathPatienceMs", {
  defaultValue: () => 15_000,
});

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

const pageIfAny = Effect.map(Effect.serviceOption(Page), Option.getOrUndefined);

/** Counts connections, and says in the log that there are too few descriptors for them. */
const countedConnections = Effect.fnUntraced(function* (max: number) {
  yield* checkDescriptors(max);
  const report = Effect.runForkWith(yield* Effect.context<never>());
  return new Connections(max, () => void report(reportOutOfDescriptors));
});

/** The fibers of model requests, which a shutdown drains, and those of the page, which it does not wait for. */
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
  const connections = yield* countedConnections(first.limits.maxConnections);
  let draining = false;
  const closing = yield* Deferred.make<void>();
  const [repeats, memory, owners] = [yield* SharedRepeats.make, new RouteMemory(), yield* ResponseOwners.make];
  const [store, watch] = [yield* storeState, yield* PathWatch.make];
  const { attachments, cancels, serveSiblings } = yield* attaching(
    meter,
    Deferred.await(closing),
    () => serving.settings,
  );
  const servingOf = (settings: GatewaySettings, given: GatewayOptions): RequestServing => ({
    ...{ settings, attachments, cancels, bodies, connections, memory, meter },
    ...{ owners, page, reported, store, watch, reach: upstreams.reach },
    draining: () => draining,
    closing: Deferred.await(closing),
    options: relayOptionsOf(settings, given, repeats, pathPatienceMs),
  });
  let serving = servingOf(first, options);
  const { pages, run, runPage, served } = yield* requestFibers;
  const clock = yield* Clock.Clock;
  yield* serveSiblings(run, () => serving.settings.limits.slowClientMs);
  const listener: OpenPort.Listener = (request, response, expects) => {
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
      return drained(opened, served, pages, serving.settings.limits.drainMs, processor);
    }),
  );
  meter.listening(() => connections.open);
  meter.lingering(attachments.list);
  const configure = Effect.fnUntraced(function* (next: GatewayOptions) {
    // The address that it has stays: what is open to other machines still wants a token.
    const settings = settingsOf({ ...next, host: first.host, port: first.port });
    if (settings instanceof GatewayError) return yield* settings;
    yield* OpenPort.reconfigured(port.server, settings);
    bodies.limit(settings.limits);
    connections.limit(settings.limits.maxConnections);
    serving = servingOf(settings, next);
    upstreams.keep(settings.servers.values());
    return fixedIn(options, next, gatewayEntries);
  });
  return Gateway.of({
    ...{ host: first.host, port: port.number, configure, url: OpenPort.urlOf(first, port.number) },
    serving: FiberSet.size(served),
    keptBytes: Effect.sync(() => bodies.kept),
  });
});

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
    ends: (runId: string, holder: string) => {
      const run = attachments.found(runId, holder);
      if (typeof run === "object") attachments.cancel(run);
    },
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

/** What every run is given. */
const relayOptionsOf = (
  { budget, keepAliveMs, prefills, retryEmpty }: GatewaySettings,
  { clocks: { connect: _, ...clocks } = {}, policy }: GatewayOptions,
  repeats: RelayRepeats,
  pathPatienceMs: number,
): RequestServing["options"] => ({
  ...{ budget, clocks, keepAliveMs, pathPatienceMs, prefills, repeats, emptyIsFailure: retryEmpty },
  ...(policy === undefined ? {} : { policy: RecoveryPolicy.make({ stricter: policy }) }),
});

/** A shutdown waits so long for bytes that are written to reach their clients, in milliseconds. */
const flushMs = 2_000;

/** Takes no more, waits, ends what remains, and only then closes connections: what was written has left by then. */
const drained = Effect.fnUntraced(function* (
  { close, server }: Pick<OpenPort.OpenPort, "close" | "server">,
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
  // What is no run goes on until then: a body that passes through is broken as a run's is.
  yield* within(FiberSet.clear(served), flushMs);
  yield* Effect.sync(close);
});

/** A finalizer cannot be interrupted, but what it waits for can. */
const within = (waited: Effect.Effect<void>, ms: number): Effect.Effect<void> =>
  Effect.asVoid(Effect.timeoutOption(Effect.interruptible(waited), ms));
