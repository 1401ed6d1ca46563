/**
 * Reads and discards data that a client still sends after its response. If a socket is closed with unread bytes, the kernel resets it, and
 * the client loses the part of the response that it has not read yet (RFC 9112, 9.6).
 */
import type { IncomingMessage } from "node:http";
import { Effect } from "effect";
import { hasBody } from "./RequestBody.ts";

/** Maximum number of bytes that are discarded: twice the default maximum of a model request's body. */
export const lingerBytesMax = 128 * 1024 * 1024;

/** Maximum time that a client may continue to send, in milliseconds. Browsers are known to need that long. */
export const lingerMs = 10_000;

/** True if a part of a request's body may still arrive. */
export const isUnread = (request: IncomingMessage): boolean =>
  !request.complete && !request.destroyed && !request.socket.destroyed && hasBody(request);

/** Discards the rest of a request's body, until the body ends, the client leaves, or a limit is reached. */
export const discardRest = (request: IncomingMessage): Effect.Effect<void> => {
  const rest = Effect.callback<void>((resume) => {
    if (!isUnread(request)) return resume(Effect.void);
    const { socket } = request;
    let bytes = 0;
    const over = () => {
      request.off("data", data).off("end", over).off("close", over).off("error", over);
      socket.off("close", over);
      request.pause();
      resume(Effect.void);
    };
    const data = (chunk: Buffer) => {
      bytes += chunk.byteLength;
      if (bytes > lingerBytesMax) over();
    };
    request.on("data", data).on("end", over).on("close", over).on("error", over);
    // After the response has ended, Node no longer tells the request that its connection has closed.
    socket.on("close", over);
    request.resume();
    return Effect.sync(over);
  });
  return Effect.asVoid(Effect.timeoutOption(Effect.interruptible(rest), lingerMs));
};
