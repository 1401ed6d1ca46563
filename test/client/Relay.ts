/**
 * Stands between a client and a server, and can fall silent as a network does that drops packets.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { Effect, Schedule } from "effect";

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

/** From one look of a slow uplink at what it may pass on to the next, in milliseconds. */
const uplinkStepMs = 20;

/** Passes on what comes from the client at so many bytes a second, as a slow uplink does, and what comes from the server at once. */
export const uplinkTo = Effect.fnUntraced(function* (port: number, bytesASecond: number) {
  const ways = new Map<Socket, Socket>();
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const it = createServer((inner) => {
        const outer = connect(port, "127.0.0.1");
        for (const socket of [inner, outer]) socket.on("error", () => undefined);
        outer.pipe(inner);
        inner.on("readable", () => undefined).on("close", () => outer.destroy());
        ways.set(inner, outer);
      });
      it.listen(0, "127.0.0.1", () => resume(Effect.succeed(it)));
    }),
    (it) =>
      Effect.sync(() => {
        for (const inner of ways.keys()) inner.destroy();
        it.close();
      }),
  );
  const pass = Effect.sync(() => {
    for (const [inner, outer] of ways) {
      const bytes: unknown = inner.read(Math.min(inner.readableLength, (bytesASecond * uplinkStepMs) / 1_000));
      if (bytes instanceof Buffer) outer.write(bytes);
    }
  });
  yield* Effect.forkScoped(Effect.repeat(pass, Schedule.spaced(uplinkStepMs)));
  const address = server.address();
  return { port: typeof address === "object" && address !== null ? address.port : 0 };
});
