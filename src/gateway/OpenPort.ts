/**
 * Opens the port of a gateway: the server of Node with the gateway's limits, and who takes its requests.
 *
 * The server is plain `node:http`: what has to be the same as without it (header names, their order and repetition, bytes,
 * flushed heads, a broken connection where a response broke) a framework would decide by itself.
 */
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { createSecureContext } from "node:tls";
import { type Clock, Effect, Redacted } from "effect";
import { monotonicMs } from "../recorder/MonotonicTime.ts";
import {
  GatewayError,
  type GatewayOptions,
  type GatewaySettings,
  type ListenTls,
  settingsOf,
} from "./config/GatewayOptions.ts";
import type { Connections } from "./limits/Shares.ts";
import { Access } from "./log/AccessRecord.ts";
import { reset } from "./proxy/BrokenEnd.ts";
import { ClientResponse, errorBody } from "./proxy/ClientResponse.ts";
import { noProxy } from "./routing/Address.ts";

type Server = HttpServer | TlsServer;

/** Takes a request. `expects`: the client waits for a word before it sends its body. */
export type Listener = (request: IncomingMessage, response: ServerResponse, expects: boolean) => void;

/** A port that takes connections. */
export interface OpenPort {
  readonly server: Server;
  /** The port that it has, also where any was wanted. */
  readonly number: number;
  /** Closes all connections. Bytes that the system has not taken are lost: such a connection is reset, so that no client takes its part for whole. */
  readonly close: () => void;
}

/**
 * Opens it.
 *
 * @param listener who takes the requests
 * @param connections counts those that are open
 * @throws GatewayError for a certificate that is none, or an address that cannot be had
 */
export const open = Effect.fnUntraced(function* (
  settings: GatewaySettings,
  listener: Listener,
  connections: Connections,
): Effect.fn.Return<OpenPort, GatewayError> {
  const server = yield* serverOf(settings, listener);
  server.on("connection", (socket) => connections.opened(socket));
  const number = yield* listen(server, settings);
  return { server, number, close: closer(server, settings) };
});

/** `http://HOST:PORT` or `https://…`, without a slash at the end. */
export const urlOf = ({ host, tls }: GatewaySettings, port: number): string =>
  `${tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`;

/** The response to a request, as the listener writes it. */
export const clientOf = (
  response: ServerResponse,
  expects: boolean,
  { limits }: GatewaySettings,
  clock: Clock.Clock,
): ClientResponse => {
  const client = new ClientResponse(response, limits.slowClientMs, new Access(() => monotonicMs(clock)));
  if (expects) client.expectsInvitation();
  return client;
};

const serverOf = ({ limits, tls }: GatewaySettings, listener: Listener): Effect.Effect<Server, GatewayError> =>
  Effect.gen(function* () {
    const options = {
      ...timeoutsOf(limits),
      maxHeaderSize: limits.maxHeaderBytes,
      // Those limits are looked at so often.
      connectionsCheckingInterval: Math.max(100, Math.min(5_000, Math.floor(limits.headMs / 4))),
      noDelay: true,
    };
    const taken = (request: IncomingMessage, response: ServerResponse, expects: boolean) => {
      // The connection ends behind a response that broke: a request that comes after it is never answered, and must cost nothing.
      if (request.socket.writableEnded) return void request.resume();
      listener(request, response, expects);
    };
    const asked = (request: IncomingMessage, response: ServerResponse) => taken(request, response, false);
    const server: Server =
      tls === undefined
        ? createServer(options, asked)
        : yield* certified(() => createTlsServer({ ...options, ...keyOf(tls) }, asked));
    // Without a listener Node asks for every body, also for one that is refused by its length.
    server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => taken(request, response, true));
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

/** Whether a gateway could listen with these options, but for its address, which may be taken. */
export const check = (options: GatewayOptions): Effect.Effect<void, GatewayError> =>
  Effect.suspend((): Effect.Effect<unknown, GatewayError> => {
    const settings = settingsOf(options);
    if (settings instanceof GatewayError) return Effect.fail(settings);
    const { tls } = settings;
    return tls === undefined ? Effect.void : certified(() => createSecureContext(keyOf(tls)));
  }).pipe(Effect.asVoid);

/** Gives a server that listens its new limits, and a certificate that was renewed. */
export const reconfigured = (server: Server, { limits, tls }: GatewaySettings): Effect.Effect<void, GatewayError> =>
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

const closer = (server: Server, { tls }: GatewaySettings): (() => void) => {
  const open = new Set<Socket>();
  // What a client is still to be sent waits in its TLS socket, not in the one below.
  server.on(tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return () => {
    for (const socket of [...open]) if (socket.writableLength > 0) reset(socket);
    server.closeAllConnections();
  };
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
