/**
 * Serves a fault server over HTTP/2 behind TLS: what breaks a connection there breaks a stream here, or the connection that it is on.
 */
import { request as httpRequest, type IncomingMessage } from "node:http";
import {
  createSecureServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { Effect, type Scope } from "effect";
import { key, localhost } from "../failure/provoked/Certificates.ts";

/** What becomes of a response that broke: its stream is reset, or the connection. */
export const breaks = ["stream", "connection"] as const;
export type Http2Break = (typeof breaks)[number];

/**
 * Starts a server that stops with its scope.
 *
 * @param target address of the fault server, without a path
 * @returns its own address, without a path
 */
export const http2Front = (target: string, how: Http2Break): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(start(target, how), ({ stop }) => Effect.sync(stop)),
    ({ url }) => url,
  );

const start = (target: string, how: Http2Break) =>
  Effect.callback<{ readonly url: string; readonly stop: () => void }>((resume) => {
    const sockets = new Set<TLSSocket>();
    const server = createSecureServer({ key, cert: localhost });
    server.on("secureConnection", (socket: TLSSocket) => {
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    });
    server.on("session", (session) => session.on("error", () => undefined));
    server.on("stream", (stream, headers) => pass(stream, headers, target, how));
    server.listen(0, "127.0.0.1", () => {
      // A server that listens on a port has an address of this kind.
      const { port } = server.address() as AddressInfo;
      const stop = (): void => {
        for (const socket of sockets) socket.destroy();
        server.close();
      };
      resume(Effect.succeed({ url: `https://localhost:${port}`, stop }));
    });
  });

/** Asks the fault server for a stream's request, on a connection of its own. */
const pass = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, target: string, how: Http2Break): void => {
  const cut = (): void => {
    // `close` would end the stream before it resets it, and what was sent would be whole.
    if (how === "stream") stream.destroy(new Error("broken"));
    else stream.session?.destroy();
  };
  const asked = httpRequest(`${target}${headers[":path"] ?? "/"}`, {
    method: headers[":method"],
    headers: fields(headers),
    agent: false,
  });
  asked.on("error", cut).on("response", (response) => {
    response.on("error", cut);
    stream.respond({ ":status": response.statusCode ?? 0, ...answered(response) });
    // A response that broke ends nothing.
    response.pipe(stream);
  });
  stream.on("error", () => undefined).on("close", () => asked.destroy());
  stream.pipe(asked);
};

const fields = (headers: IncomingHttpHeaders): OutgoingHttpHeaders =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith(":")));

/** What speaks of a connection has no place in HTTP/2 (RFC 9113, section 8.2.2). */
const answered = ({ headers }: IncomingMessage): OutgoingHttpHeaders =>
  Object.fromEntries(
    Object.entries(headers).filter(([name]) => !["connection", "keep-alive", "transfer-encoding"].includes(name)),
  );
