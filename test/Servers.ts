/**
 * Serves a test's own behaviour on this machine until its scope ends.
 */
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Server, type Socket } from "node:net";
import { Effect, type Scope } from "effect";

/** Starts a server and returns its port. At the scope's end it closes, and every connection is destroyed. */
export const listening = (server: Server): Effect.Effect<number, never, Scope.Scope> => {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  // A client may refuse the server's certificate.
  server.on("tlsClientError", () => undefined);
  return Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      // A server that listens on a port has an address of this kind.
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed((server.address() as AddressInfo).port)));
    }),
    () =>
      Effect.sync(() => {
        server.close();
        for (const socket of sockets) socket.destroy();
      }),
  );
};

/** Serves HTTP and returns the address. */
export const serverOf = (listener: RequestListener): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.suspend(() => listening(createServer(listener))),
    (port) => `http://127.0.0.1:${port}`,
  );

/** A port without a listener, which was free a moment ago. */
export const closedPort: Effect.Effect<number> = Effect.scoped(Effect.suspend(() => listening(createSocketServer())));
