/**
 * Stands between a client and a server, and can fall silent as a network does that drops packets.
 */
import { connect, createServer, type Socket } from "node:net";
import { Effect } from "effect";

/** Passes bytes on in both directions until it is frozen; then it takes them and says nothing, as a NAT that has forgotten does. */
export const relayTo = (port: number) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly freeze: () => void; readonly stop: () => void }>((resume) => {
      const sockets: Array<Socket> = [];
      const server = createServer((inner) => {
        const outer = connect(port, "127.0.0.1");
        sockets.push(inner, outer);
        for (const socket of [inner, outer]) socket.on("error", () => undefined);
        inner.pipe(outer);
        outer.pipe(inner);
      });
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        resume(
          Effect.succeed({
            port: typeof address === "object" && address !== null ? address.port : 0,
            freeze: () => {
              for (const socket of sockets) socket.unpipe().resume();
            },
            stop: () => {
              for (const socket of sockets) socket.destroy();
              server.close();
            },
          }),
        );
      });
    }),
    ({ stop }) => Effect.sync(stop),
  );
