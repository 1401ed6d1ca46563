/**
 * Breaks a response so that no client takes it for complete and no written byte is lost.
 *
 * A chunked body ends inside an open chunk: the size line of one more chunk, no data, and FIN. HTTP libraries report this as an error (`npm
 * run stacks`), and the system still delivers everything before it. Ending the body between two chunks is not enough: Python's
 * `http.client` takes such a body for complete when it reads line by line. A TCP reset would discard data that a slow client has not read,
 * so it is used only for bodies without chunks, which a FIN would end cleanly.
 */
import type { ServerResponse } from "node:http";
import { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { Duration, Effect } from "effect";
import { unsentBytes } from "./KernelSockets.ts";
import { discardRest, isUnread } from "./Lingering.ts";

/** Size line of a chunk of one byte. The byte is never sent. */
const openChunk = "1\r\n";

/** Delay before the first check for undelivered bytes, in milliseconds. The delay doubles with each check. */
const lookMsMin = 10;

const lookMsMax = 1_000;

/**
 * Breaks a response after all bytes that were written to it. Returns after the system has accepted these bytes, or after the client has
 * left.
 *
 * @param slowMs timeout after which the connection to a client that reads nothing is reset, in milliseconds
 */
export const breakOff = (response: ServerResponse, slowMs: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { socket } = response;
    if (socket === null && !response.destroyed) return Effect.andThen(awaitTurn(response), breakOff(response, slowMs));
    if (socket === null || socket.destroyed) return Effect.sync(() => void response.destroy());
    // A response without a head is never taken for complete, so it needs no open chunk.
    if (socket.writableEnded || !response.headersSent) return endWith("", response, socket, slowMs);
    return response.chunkedEncoding ? endWith(openChunk, response, socket, slowMs) : resetOnceTaken(socket, slowMs);
  });

/** Resets a connection, so that the client's next read fails. Data that was not delivered is lost. */
export const reset = (socket: Socket): void => {
  const raw = socket instanceof TLSSocket ? rawOf(socket) : socket;
  if (raw === undefined || raw.destroyed) return void socket.destroy();
  raw.resetAndDestroy();
};

/** Returns the TCP socket below a TLS socket, from an undocumented field of Node. Node throws if the TLS socket itself is reset. */
const rawOf = (socket: TLSSocket): Socket | undefined => {
  const parent: unknown = Reflect.get(socket, "_parent");
  return parent instanceof Socket ? parent : undefined;
};

/** Waits until a pipelined response gets its turn on the connection. If the connection closes first, the response is destroyed. */
const awaitTurn = (response: ServerResponse): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const { socket } = response.req;
    const settle = () => {
      response.off("socket", turn);
      socket.off("close", onClose);
      resume(Effect.void);
    };
    // Node writes the buffered bytes of a response right after this event.
    const turn = () => process.nextTick(settle);
    const onClose = () => {
      response.destroy();
      settle();
    };
    if (socket.destroyed) return onClose();
    response.once("socket", turn);
    socket.once("close", onClose);
    return Effect.sync(settle);
  });

/** Ends the writing side and keeps the connection open for reading. Closing a connection with unread bytes would reset it. */
const endWith = (last: string, response: ServerResponse, socket: Socket, slowMs: number): Effect.Effect<void> => {
  const sent = Effect.callback<void>((resume) => {
    const settle = () => {
      socket.off("finish", settle).off("close", settle);
      resume(Effect.void);
    };
    // Node restarts this timeout whenever the system accepts bytes, even within one write. After FIN the system delivers the rest without
    // Node.
    response.setTimeout(slowMs, () => (socket.writableFinished ? void socket.destroy() : reset(socket)));
    socket.once("finish", settle).once("close", settle);
    if (!socket.writableEnded) socket.end(last);
    else if (socket.writableFinished) settle();
    return Effect.sync(() => void socket.off("finish", settle).off("close", settle));
  });
  return Effect.andThen(
    sent,
    Effect.suspend(() => (isUnread(response.req) ? discardRest(response.req) : Effect.void)),
  );
};

/** Resets a connection after the client's system has acknowledged all bytes, if the operating system reports acknowledgements. */
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
