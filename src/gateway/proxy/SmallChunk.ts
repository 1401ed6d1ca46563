/**
 * Writes a small chunk of a response to its socket in one piece (RFC 9112, 7.1).
 *
 * Node writes a chunk in four pieces and gathers them until the end of the turn. Events nearly always arrive alone, and those
 * four writes were a fifteenth of their cost in the gateway.
 */
import type { ServerResponse } from "node:http";
import type { Bytes } from "../upstream/ContentDecoding.ts";

/**
 * Maximum size of a chunk written this way, in bytes. A socket without pending bytes accepts it without requesting a drain, which
 * Node would not report.
 */
export const smallBytesMax = 8 * 1024;

const lineEnd = "\r\n";

/**
 * Writes bytes as one chunk after everything written before. The response must not be corked, since Node would buffer earlier writes, and
 * its head must not name a transfer coding, since Node would take a response to HEAD for a chunked one.
 *
 * @returns false if nothing was written and Node has to write it: the response is not chunked, has ended or is waiting for its turn,
 *   earlier bytes are still pending in this process, or the size is zero (an empty chunk would end the response) or too large
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
