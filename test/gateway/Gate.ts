/**
 * Stands between a gateway and its provider, and can be away: then nothing listens at its address, and what was open is reset.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { Effect, type Scope } from "effect";
import { freePort } from "../../scripts/programs/FreePort.ts";
import { found } from "../Polling.ts";

export interface Gate {
  readonly url: string;
  /** Nothing listens any more, and every connection breaks. */
  readonly close: Effect.Effect<void>;
  /** Listens again, at the same address. */
  readonly open: Effect.Effect<void>;
  /** Goes away by itself once so many bytes of responses have come through from now on. */
  readonly closeBehind: (bytes: number) => void;
}

/** Opens a gate in front of an address. */
export const gateTo = (target: string): Effect.Effect<Gate, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { hostname, port } = new URL(target);
    const sockets = new Set<Socket>();
    let left = Number.POSITIVE_INFINITY;
    let server: Server | undefined;
    // No outgoing connection takes such a port while the gate is closed.
    const at = yield* freePort;
    const forward = (inner: Socket): void => {
      const outer = connect(Number(port), hostname);
      for (const socket of [inner, outer]) {
        sockets.add(socket);
        socket.on("error", () => undefined);
        socket.on("close", () => {
          sockets.delete(socket);
          inner.destroy();
          outer.destroy();
        });
      }
      inner.pipe(outer);
      outer.on("data", (chunk: Buffer) => {
        inner.write(chunk);
        left -= chunk.byteLength;
        if (left <= 0) shut();
      });
    };
    const shut = (): void => {
      left = Number.POSITIVE_INFINITY;
      server?.close();
      server = undefined;
      for (const socket of sockets) socket.resetAndDestroy();
    };
    const tryListen = Effect.callback<boolean>((resume) => {
      const opened = createServer(forward);
      opened.once("error", () => resume(Effect.succeed(false)));
      opened.listen(at, "127.0.0.1", () => {
        server = opened;
        resume(Effect.succeed(true));
      });
    });
    const listen = found(Effect.map(tryListen, (isOpen) => (isOpen ? true : undefined)));
    yield* Effect.addFinalizer(() => Effect.sync(shut));
    yield* listen;
    return {
      url: `http://127.0.0.1:${at}`,
      close: Effect.sync(shut),
      open: Effect.asVoid(listen),
      closeBehind: (bytes) => {
        left = bytes;
      },
    };
  });
