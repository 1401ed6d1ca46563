/** Reads a socket as a queue of byte arrays. The queue ends when the peer has closed its side or the connection breaks. */

import type { Socket } from "node:net";
import { Effect } from "effect";
import { Watchers } from "./Watchers.ts";

/** Maximum unread bytes before the socket is paused. */
export const inboxBytesMax = 1024 * 1024;

/** The bytes of a socket that were received but not taken yet. */
export interface SocketInbox {
  /** Takes the next bytes; undefined once the queue has ended. */
  readonly take: Effect.Effect<Uint8Array | undefined>;
  /** Puts bytes back at the front. */
  readonly putBack: (bytes: Uint8Array) => void;
  /** Waits until the peer has closed, and discards the bytes that it still sends. */
  readonly gone: Effect.Effect<void>;
}

/** Creates the inbox of a socket, and starts to read from it. */
export const make = (socket: Socket): SocketInbox => {
  const waiting: Array<Uint8Array> = [];
  const watchers = new Watchers();
  let bytes = 0;
  let over = false;
  const leave = () => {
    over = true;
    watchers.wake();
  };
  socket.on("data", (chunk: Uint8Array) => {
    waiting.push(chunk);
    bytes += chunk.byteLength;
    if (bytes > inboxBytesMax) socket.pause();
    watchers.wake();
  });
  socket.on("end", leave);
  socket.on("close", leave);
  // Many clients close with a reset. A reset ends the queue, but is not an error of the server.
  socket.on("error", leave);

  const shift = (): Uint8Array | undefined => {
    const chunk = waiting.shift();
    bytes -= chunk?.byteLength ?? 0;
    if (bytes <= inboxBytesMax && socket.isPaused()) socket.resume();
    return chunk;
  };
  return {
    take: watchers.waitUntil(() => (waiting.length > 0 ? { value: shift() } : over ? { value: undefined } : undefined)),
    putBack: (chunk) => {
      if (chunk.byteLength === 0) return;
      waiting.unshift(chunk);
      bytes += chunk.byteLength;
    },
    gone: watchers.waitUntil(() => {
      while (waiting.length > 0) shift();
      return over ? { value: undefined } : undefined;
    }),
  };
};

/** Writes bytes and waits until the kernel has accepted them. Does nothing on a closed socket, because the queue reports the end. */
export const write = (socket: Socket, bytes: Uint8Array): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (socket.destroyed || !socket.writable) return resume(Effect.void);
    socket.write(bytes, () => resume(Effect.void));
  });

/** Writes the last bytes, sends a FIN and waits until the peer closes. Without the wait, unread bytes would turn the FIN into a reset. */
export const finish = (socket: Socket, inbox: SocketInbox, bytes: Uint8Array): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (!socket.destroyed && socket.writable) socket.end(bytes);
    return inbox.gone;
  });
