/**
 * Reads and discards data that a client still sends after its response. Closing a socket with unread bytes makes the kernel reset
 * it, and the client loses the response that it has not read yet (RFC 9112, 9.6).
 */
import type { IncomingMessage } from "node:http";
import { Effect } from "effect";
import { hasBody } from "./RequestBody.ts";

/** Maximum number of discarded bytes: twice the default maximum of a model request's body. */
export const lingerBytesMax = 128 * 1024 * 1024;

/** Maximum wait for a client to stop sending, in milliseconds: the time that browsers are known to need. */
export const lingerMs = 10_000;

/** True if more of a request's body may arrive. */
export const isUnread = (request: IncomingMessage): boolean =>
  !request.complete && !request.destroyed && !request.socket.destroyed && hasBody(request);

/** Discards the rest of a request's body, until its end, the client's departure or a limit. */
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
    // After the response has ended, Node does not notify the request when its connection closes.
    socket.on("close", over);
    request.resume();
    return Effect.sync(over);
  });
  return Effect.asVoid(Effect.timeoutOption(Effect.interruptible(rest), lingerMs));
};
