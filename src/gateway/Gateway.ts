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

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { Clock, Context, Deferred, Effect, FiberSet, Layer, Option, type Scope } from "effect";
import { RelayRepeats } from "../adapters/relay/RelayRepeats.ts";
import type { ClientConfigError } from "../client/ClientConfig.ts";
import { monotonicMs } from "../recorder/MonotonicTime.ts";
import { StreamProcessor } from "../runtime/StreamProcessor.ts";
import { GatewayError, type GatewayOptions, type GatewaySettings, settingsOf } from "./config/GatewayOptions.ts";
import { Access } from "./log/AccessRecord.ts";
import { ClientResponse, errorBody, flushMs } from "./proxy/ClientResponse.ts";
import { Page } from "./proxy/PageHandler.ts";
import { BodyStore } from "./proxy/RequestBody.ts";
import { TrafficMeter } from "./proxy/TrafficMeter.ts";
import { type RequestServing, take } from "./Requests.ts";
import { addressOf, noProxy } from "./routing/Address.ts";
import * as Upstreams from "./upstream/Upstreams.ts";

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

const make = Effect.fn("Gateway.make")(function* (options: GatewayOptions) {
  const settings = settingsOf(options);
  if (settings instanceof GatewayError) return yield* settings;
  const { limits } = settings;
  const meter = yield* TrafficMeter;
  const processor = yield* StreamProcessor;
  const upstreams = yield* Upstreams.make;
  const bodies = new BodyStore(limits);
  let draining = false;
  const closing = yield* Deferred.make<void>();
  const serving: RequestServing = {
    settings,
    reach: upstreams.reach,
    bodies,
    meter,
    page: Option.getOrUndefined(yield* Effect.serviceOption(Page)),
    draining: () => draining,
    closing: Deferred.await(closing),
    options: {
      keepAliveMs: settings.keepAliveMs,
      repeats: new RelayRepeats(),
      ...(options.budget === undefined ? {} : { budget: options.budget }),
      ...(options.clocks === undefined ? {} : { clocks: options.clocks }),
    },
  };
  const served = yield* FiberSet.make<void>();
  const pages = yield* FiberSet.make<void>();
  const run = yield* FiberSet.runtime(served)<StreamProcessor>();
  const runPage = yield* FiberSet.runtime(pages)<StreamProcessor>();
  const clock = yield* Clock.Clock;
  const server = serverOf(settings, (request, response, expects) => {
    const client = new ClientResponse(response, limits.slowClientMs, new Access(() => monotonicMs(clock)));
    if (expects) client.expectsInvitation();
    const address = addressOf(request.url ?? "");
    const start = "own" in address && address.own ? runPage : run;
    start(take(request, client, serving));
  });
  const sockets = countSockets(server);
  const port = yield* Effect.acquireRelease(listen(server, settings), () =>
    Effect.suspend(() => {
      draining = true;
      meter.draining();
      Deferred.doneUnsafe(closing, Effect.void);
      return drained(server, served, pages, limits.drainMs, processor);
    }),
  );
  meter.listening(sockets);
  return Gateway.of({
    host: settings.host,
    port,
    url: `http://${settings.host.includes(":") ? `[${settings.host}]` : settings.host}:${port}`,
    serving: FiberSet.size(served),
    keptBytes: Effect.sync(() => bodies.kept),
  });
});

const serverOf = (
  { limits }: GatewaySettings,
  listener: (request: IncomingMessage, response: ServerResponse, expects: boolean) => void,
): Server => {
  const server = createServer(
    {
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: Math.min(limits.headMs, limits.requestMs),
      requestTimeout: limits.requestMs,
      keepAliveTimeout: limits.idleConnectionMs,
      // The two limits above are looked at so often.
      connectionsCheckingInterval: Math.max(100, Math.min(5_000, Math.floor(limits.headMs / 4))),
      noDelay: true,
    },
    (request, response) => listener(request, response, false),
  );
  // Without a listener Node asks for every body, also for one that is refused by its length.
  server.on("checkContinue", (request, response) => listener(request, response, true));
  server.maxConnections = limits.maxConnections;
  server.on("connect", refuseTunnel);
  return server;
};

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
  processor: StreamProcessor["Service"],
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
