/**
 * Writes a small chunk of a response to its socket in one piece (RFC 9112, 7.1).
 *
 * Node writes a chunk in four pieces, which it buffers until the end of the turn. Nearly every event arrives alone, and the four writes
 * were a fifteenth of an event's cost in the gateway.
 */
import type { ServerResponse } from "node:http";
import type { Bytes } from "../upstream/ContentDecoding.ts";

/**
 * Maximum size of a chunk that is written in one piece, in bytes. A socket without pending bytes accepts that much without a drain event,
 * which Node would not emit for such a write.
 */
export const smallBytesMax = 8 * 1024;

const lineEnd = "\r\n";

/**
 * Writes bytes as one chunk, after everything that was written before. The response must not be corked, because Node would buffer earlier
 * writes. Its head must not name a transfer coding, because Node would then treat a response to HEAD as chunked.
 *
 * @returns false if nothing was written, so that Node has to write the bytes: the response is not chunked, has ended or has no connection
 *   yet; earlier bytes are still pending; or the size is zero (an empty chunk would end the response) or too large
 */
export const wroteChunk = (response: ServerResponse, parts: ReadonlyArray<Bytes>): boolean => {
  const { chunkedEncoding, socket, writableEnded } = response;
  if (!chunkedEncoding || writableEnded || socket === null || !socket.writable || socket.writableLength > 0)
    return false;
  const length = lengthOf(parts);
  if (length === 0 || length > smallBytesMax) return false;
  const size = length.toString(16) + lineEnd;
  const chunk = Buffer.allocUnsafe(size.length + length + lineEnd.length);
  let at = chunk.write(size, "latin1");
  for (const part of parts) {
    chunk.set(part, at);
    at += part.byteLength;
  }
  chunk.write(lineEnd, at, "latin1");
  socket.write(chunk);
  return true;
};

const lengthOf = (parts: ReadonlyArray<Bytes>): number => {
  let length = 0;
  for (const { byteLength } of parts) length += byteLength;
  return length;
};
