/**
 * Breaks a response so that no client takes it for whole, and loses no byte that was written before.
 *
 * A body in chunks ends inside an open chunk: the size line of one more chunk, no data, and FIN. HTTP libraries report that (`npm run stacks`), and the
 * system delivers all that came before. Python's `http.client`, read by line, takes a body that merely stops for whole, and a TCP reset discards
 * what a slow reader has not taken. A reset is left for a body without chunks, because FIN would end it cleanly.
 */
import type { ServerResponse } from "node:http";
import { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { Duration, Effect } from "effect";
import { unsentBytes } from "./KernelSockets.ts";
import { discarded, isUnread } from "./Lingering.ts";

/** The size line of a chunk whose one byte never follows. */
const openChunk = "1\r\n";

/** The first look at what the system has still to deliver is so soon, in milliseconds; each next one waits twice as long. */
const lookMsMin = 10;

/** The longest time between two such looks, in milliseconds. */
const lookMsMax = 1_000;

/**
 * Breaks a response behind everything that was written to it. Returns once the system has all of it, or the client is gone.
 *
 * @param slowMs a client that takes nothing for so long is reset, in milliseconds
 */
export const breakOff = (response: ServerResponse, slowMs: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { socket } = response;
    if (socket === null && !response.destroyed) return Effect.andThen(itsTurn(response), breakOff(response, slowMs));
    if (socket === null || socket.destroyed) return Effect.sync(() => void response.destroy());
    // Nothing of a response without a head can be taken for whole.
    if (socket.writableEnded || !response.headersSent) return endWith("", response, socket, slowMs);
    return response.chunkedEncoding ? endWith(openChunk, response, socket, slowMs) : resetOnceTaken(socket, slowMs);
  });

/** Resets a connection: the client's next read fails, and what the system has not delivered is lost. */
export const reset = (socket: Socket): void => {
  const raw = socket instanceof TLSSocket ? rawOf(socket) : socket;
  if (raw === undefined || raw.destroyed) return void socket.destroy();
  raw.resetAndDestroy();
};

/** A TLS socket cannot be reset itself (Node throws): the socket below it can, which Node keeps in an undocumented field. */
const rawOf = (socket: TLSSocket): Socket | undefined => {
  const parent: unknown = Reflect.get(socket, "_parent");
  return parent instanceof Socket ? parent : undefined;
};

/** Waits for a pipelined response to have its turn on the connection; it is destroyed if the connection closes before. */
const itsTurn = (response: ServerResponse): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const { socket } = response.req;
    const settle = () => {
      response.off("socket", turn);
      socket.off("close", closed);
      resume(Effect.void);
    };
    // Node writes what waits for the turn after it has told of it.
    const turn = () => process.nextTick(settle);
    const closed = () => {
      response.destroy();
      settle();
    };
    if (socket.destroyed) return closed();
    response.once("socket", turn);
    socket.once("close", closed);
    return Effect.sync(settle);
  });

/** Ends what is written. The connection stays open for reading: closing it with unread bytes in it would reset it. */
const endWith = (last: string, response: ServerResponse, socket: Socket, slowMs: number): Effect.Effect<void> => {
  const sent = Effect.callback<void>((resume) => {
    const settle = () => {
      socket.off("finish", settle).off("close", settle);
      resume(Effect.void);
    };
    // Node counts any byte that the system takes, also one within a write. After FIN the system delivers the rest by itself.
    response.setTimeout(slowMs, () => (socket.writableFinished ? void socket.destroy() : reset(socket)));
    socket.once("finish", settle).once("close", settle);
    if (!socket.writableEnded) socket.end(last);
    else if (socket.writableFinished) settle();
    return Effect.sync(() => void socket.off("finish", settle).off("close", settle));
  });
  return Effect.andThen(
    sent,
    Effect.suspend(() => (isUnread(response.req) ? discarded(response.req) : Effect.void)),
  );
};

/** Resets a connection once its client's system has acknowledged everything, if the system of this machine tells. */
const resetOnceTaken = Effect.fnUntraced(function* (socket: Socket, slowMs: number) {
  let left = Number.POSITIVE_INFINITY;
  let idleMs = 0;
  for (let lookMs = lookMsMin; !socket.destroyed; lookMs = Math.min(2 * lookMs, lookMsMax)) {
    const now = socket.writableLength + (unsentBytes(socket) ?? 0);
    if (now === 0) break;
    idleMs = now < left ? 0 : idleMs + lookMs;
    left = now;
    if (idleMs >= slowMs) break;
    yield* Effect.sleep(Duration.millis(lookMs));
  }
  reset(socket);
});
