/**
 * Opens a gateway's port: a Node server with the gateway's limits.
 *
 * The server is plain `node:http`. A framework would change header names, their order and repetition, body bytes, flushed heads or broken
 * connections, all of which clients must see as the provider sends them.
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
import { answerProtocolErrors } from "./ProtocolErrors.ts";
import { reset } from "./proxy/BrokenEnd.ts";
import { ClientResponse, errorBody } from "./proxy/ClientResponse.ts";
import { noProxy } from "./routing/Address.ts";

type Server = HttpServer | TlsServer;

/** Handles a request. `expects` is true if the client waits for `100 Continue` before it sends its body. */
export type Listener = (request: IncomingMessage, response: ServerResponse, expects: boolean) => void;

/** The port, after the server has started to listen. */
export interface OpenPort {
  readonly server: Server;
  /** The actual port, which differs from the requested one if that was 0. */
  readonly number: number;
  /** Closes all connections. A connection with unsent bytes is reset, so that no client takes a partial response for a complete one. */
  readonly close: () => void;
}

/**
 * Opens the port.
 *
 * @param listener handles the requests
 * @param connections counts the open connections
 * @throws GatewayError for an invalid certificate or an unavailable address
 */
export const open = Effect.fnUntraced(function* (
  settings: GatewaySettings,
  listener: Listener,
  connections: Connections,
): Effect.fn.Return<OpenPort, GatewayError> {
  const server = yield* serverOf(settings, listener);
  server.on("connection", (socket) => connections.register(socket));
  const number = yield* listen(server, settings);
  return { server, number, close: makeClose(server, settings) };
});

/** Formats `http://HOST:PORT` or `https://HOST:PORT`, without a trailing slash. */
export const urlOf = ({ host, tls }: GatewaySettings, port: number): string =>
  `${tls === undefined ? "http" : "https"}://${host.includes(":") ? `[${host}]` : host}:${port}`;

/**
 * Wraps Node's response for the handlers of a request.
 *
 * @param expects true if the client waits for `100 Continue`
 */
export const clientOf = (
  response: ServerResponse,
  expects: boolean,
  { limits }: GatewaySettings,
  clock: Clock.Clock,
): ClientResponse => {
  const client = new ClientResponse(response, limits.slowClientMs, new Access(() => monotonicMs(clock)));
  if (expects) client.expectInvitation();
  return client;
};

const serverOf = ({ limits, tls }: GatewaySettings, listener: Listener): Effect.Effect<Server, GatewayError> =>
  Effect.gen(function* () {
    const options = {
      ...timeoutsOf(limits),
      maxHeaderSize: limits.maxHeaderBytes,
      // Node checks `headersTimeout` and `requestTimeout` at this interval.
      connectionsCheckingInterval: Math.max(100, Math.min(5_000, Math.floor(limits.headMs / 4))),
      noDelay: true,
    };
    const handleRequest = (request: IncomingMessage, response: ServerResponse, expects: boolean) => {
      // The connection closes after a broken response. A later pipelined request on it is never answered, so it is discarded without cost.
      if (request.socket.writableEnded) return void request.resume();
      listener(request, response, expects);
    };
    const onRequest = (request: IncomingMessage, response: ServerResponse) => handleRequest(request, response, false);
    const server: Server =
      tls === undefined
        ? createServer(options, onRequest)
        : yield* tryTls(() => createTlsServer({ ...options, ...keyOf(tls) }, onRequest));
    // Without this listener Node sends `100 Continue` for every body, even if the gateway refuses the body for its length.
    server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) =>
      handleRequest(request, response, true),
    );
    server.maxConnections = limits.maxConnections;
    server.on("connect", refuseTunnel);
    answerProtocolErrors(server);
    return server;
  });

const timeoutsOf = ({ headMs, idleConnectionMs, requestMs }: GatewaySettings["limits"]) => ({
  headersTimeout: Math.min(headMs, requestMs),
  requestTimeout: requestMs,
  keepAliveTimeout: idleConnectionMs,
});

const keyOf = ({ cert, key }: ListenTls) => ({ cert, key: Redacted.value(key) });

/** Replaces OpenSSL's error message, which may contain part of a key. */
const tryTls = <A>(make: () => A): Effect.Effect<A, GatewayError> =>
  Effect.try({
    try: make,
    catch: () => new GatewayError({ reason: "bad_option", message: "tls: expected a certificate and its key (PEM)" }),
  });

/** Checks that a gateway could listen with these options. It does not check that the address is free. */
export const check = (options: GatewayOptions): Effect.Effect<void, GatewayError> =>
  Effect.suspend((): Effect.Effect<unknown, GatewayError> => {
    const settings = settingsOf(options);
    if (settings instanceof GatewayError) return Effect.fail(settings);
    const { tls } = settings;
    return tls === undefined ? Effect.void : tryTls(() => createSecureContext(keyOf(tls)));
  }).pipe(Effect.asVoid);

/** Applies new limits and a renewed certificate to a listening server. */
export const reconfigure = (server: Server, { limits, tls }: GatewaySettings): Effect.Effect<void, GatewayError> =>
  Effect.gen(function* () {
    if (tls !== undefined && "setSecureContext" in server) yield* tryTls(() => server.setSecureContext(keyOf(tls)));
    server.maxConnections = limits.maxConnections;
    Object.assign(server, timeoutsOf(limits));
  });

/** Refuses a CONNECT, from a client that uses the gateway as its proxy. Without a listener Node closes the socket without a response. */
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

const makeClose = (server: Server, { tls }: GatewaySettings): (() => void) => {
  const open = new Set<Socket>();
  // TLS buffers unsent bytes in its own socket, not in the TCP socket below it.
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
    const onError = (error: NodeJS.ErrnoException) => {
      const message = `cannot listen on ${host}:${port} (${error.code ?? "unknown"})`;
      resume(Effect.fail(new GatewayError({ reason: "cannot_listen", message })));
    };
    server.once("error", onError);
    server.listen(port, host, () => {
      server.off("error", onError);
      const address = server.address();
      resume(Effect.succeed(typeof address === "object" && address !== null ? address.port : port));
    });
  });
