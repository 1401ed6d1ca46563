/**
 * A stand-in for a company's egress proxy: opens tunnels with or without a password, over TCP or TLS, and misbehaves on request.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { Effect, type Scope } from "effect";
import { key, localhost } from "../failure/provoked/Certificates.ts";

/** One received CONNECT. */
export interface Asked {
  readonly target: string;
  /** The head without its last line ending. */
  readonly head: string;
}

export interface ProxyServer {
  readonly port: number;
  readonly url: string;
  readonly asked: ReadonlyArray<Asked>;
  /** Counts the open connections of clients. */
  readonly open: () => number;
  /** Cuts every connection. */
  readonly kill: () => void;
}

export interface ProxyServerOptions {
  readonly secure?: boolean;
  /** `user:password`; anything else gets a 407. */
  readonly login?: string;
  /** Called instead of opening a tunnel. */
  readonly instead?: (socket: Socket, asked: Asked) => void;
  /** Written to every new connection, which is then closed, like a server of another kind. */
  readonly greeting?: string;
  /** The local port for each name; a name that is missing is reached at its own host and port. */
  readonly names?: Readonly<Record<string, number>>;
}

/** Starts a proxy that stops with its scope. */
export const proxyServer = (options: ProxyServerOptions = {}): Effect.Effect<ProxyServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => started(options)),
    ({ stop }) => Effect.sync(stop),
  );

const started = async (options: ProxyServerOptions) => {
  const sockets = new Set<Socket>();
  const asked: Array<Asked> = [];
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => undefined);
    if (options.greeting !== undefined) {
      socket.end(options.greeting);
      return;
    }
    let head = "";
    const take = (bytes: Buffer): void => {
      head += bytes.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      socket.off("data", take);
      const request = { target: /^CONNECT (\S+)/.exec(head)?.[1] ?? "", head: head.trimEnd() };
      asked.push(request);
      serve(socket, request, options);
    };
    socket.on("data", take);
  };
  const server = options.secure === true ? createTlsServer({ key, cert: localhost }, accept) : createServer(accept);
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const kill = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const stop = (): void => {
    kill();
    server.close();
  };
  const url = `${options.secure === true ? "https://localhost" : "http://127.0.0.1"}:${port}`;
  return { port, url, asked, open: () => sockets.size, kill, stop };
};

const serve = (socket: Socket, asked: Asked, { instead, login, names }: ProxyServerOptions): void => {
  if (login !== undefined) {
    const given = /^proxy-authorization: Basic (\S+)$/im.exec(asked.head)?.[1] ?? "";
    if (Buffer.from(given, "base64").toString() !== login) {
      socket.end(
        "HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n",
      );
      return;
    }
  }
  if (instead !== undefined) {
    instead(socket, asked);
    return;
  }
  const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(asked.target) ?? [];
  const there = names?.[host] ?? Number(port);
  const origin = connect(there, names?.[host] === undefined ? host : "127.0.0.1");
  origin.on("connect", () => {
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    socket.pipe(origin);
    origin.pipe(socket);
  });
  origin.on("error", () => void socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"));
  origin.on("close", () => void socket.end());
  socket.on("close", () => void origin.destroy());
};
