/**
 * Serves HTTP/2 behind TLS for tests: each stream is a test's own to answer, reset or leave.
 */
import {
  createSecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type Settings,
} from "node:http2";
import type { Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { Effect, type Scope } from "effect";
import { key, localhost } from "../failure/provoked/Certificates.ts";

export interface Http2Seen {
  readonly url: string;
  readonly port: number;
  /** Streams in the order in which they came. */
  readonly streams: ReadonlyArray<{
    readonly stream: ServerHttp2Stream;
    readonly headers: IncomingHttpHeaders;
    readonly body: () => string;
  }>;
  readonly sessions: ReadonlyArray<ServerHttp2Session>;
  readonly sockets: () => number;
}

const portOf = (server: { address: () => unknown }): number => {
  const address = server.address();
  return typeof address === "object" && address !== null && "port" in address ? Number(address.port) : 0;
};

/**
 * Starts a server that stops with its scope.
 *
 * @param answer what becomes of a stream, with its number from 1
 */
export const http2Server = (
  answer: (stream: ServerHttp2Stream, number: number) => void,
  { allowHTTP1 = false, settings = {} }: { readonly allowHTTP1?: boolean; readonly settings?: Settings } = {},
): Effect.Effect<Http2Seen, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<Http2Seen & { readonly stop: () => void }>((resume) => {
        const streams: Array<Http2Seen["streams"][number]> = [];
        const sessions: Array<ServerHttp2Session> = [];
        const sockets = new Set<Socket>();
        const server: Http2Server = createSecureServer({ key, cert: localhost, allowHTTP1, settings });
        server.on("secureConnection", (socket: Socket) => {
          sockets.add(socket);
          socket.on("close", () => sockets.delete(socket));
        });
        server.on("session", (session) => {
          sessions.push(session);
          session.on("error", () => undefined);
        });
        server.on("stream", (stream, headers) => {
          let body = "";
          stream
            .on("error", () => undefined)
            .on("data", (chunk: Buffer) => {
              body += chunk.toString();
            });
          streams.push({ stream, headers, body: () => body });
          answer(stream, streams.length);
        });
        server.on("error", () => undefined);
        server.listen(0, "127.0.0.1", () => {
          const port = portOf(server);
          const stop = (): void => {
            for (const socket of sockets) socket.destroy();
            server.close();
          };
          resume(
            Effect.succeed({
              url: `https://localhost:${port}/v1`,
              port,
              streams,
              sessions,
              sockets: () => sockets.size,
              stop,
            }),
          );
        });
      }),
      ({ stop }) => Effect.sync(stop),
    ),
    (server) => server,
  );

/** Agrees on `h2` and says no word of it. */
export const silentHttp2: Effect.Effect<{ readonly url: string; readonly sockets: () => number }, never, Scope.Scope> =
  Effect.acquireRelease(
    Effect.callback<{ readonly url: string; readonly sockets: () => number; readonly stop: () => void }>((resume) => {
      const sockets = new Set<Socket>();
      const server = createTlsServer({ key, cert: localhost, ALPNProtocols: ["h2"] }, (socket) => {
        sockets.add(socket);
        socket
          .on("error", () => undefined)
          .on("close", () => sockets.delete(socket))
          .resume();
      });
      server.on("tlsClientError", () => undefined);
      server.listen(0, "127.0.0.1", () => {
        const stop = (): void => {
          for (const socket of sockets) socket.destroy();
          server.close();
        };
        resume(Effect.succeed({ url: `https://localhost:${portOf(server)}/v1`, sockets: () => sockets.size, stop }));
      });
    }),
    ({ stop }) => Effect.sync(stop),
  );
