/**
 * Reads what a client still sends after it was responded to, and throws it away. A socket that is closed while bytes wait in it
 * is reset by the kernel, and a reset takes from the client the response that it has not read yet (RFC 9112, 9.6).
 */
import type { IncomingMessage } from "node:http";
import { Effect } from "effect";
import { hasBody } from "./RequestBody.ts";

/** Most bytes that are thrown away, in bytes: twice the longest body of a model request by default. */
export const lingerBytesMax = 128 * 1024 * 1024;

/** Longest that is waited for a client to stop sending, in milliseconds: as long as browsers are known to need. */
export const lingerMs = 10_000;

/** Whether something of a request may still come. */
export const isUnread = (request: IncomingMessage): boolean =>
  !request.complete && !request.destroyed && !request.socket.destroyed && hasBody(request);

/** Throws away the rest of a request's body, until its end, the client's leaving or a limit. */
export const discarded = (request: IncomingMessage): Effect.Effect<void> => {
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
    // Once its response has ended, Node does not tell a request that its connection has.
    socket.on("close", over);
    request.resume();
    return Effect.sync(over);
  });
  return Effect.asVoid(Effect.timeoutOption(Effect.interruptible(rest), lingerMs));
};
