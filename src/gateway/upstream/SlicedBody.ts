/**
 * Writes a large body to a connection in slices. Each slice follows after the previous one was sent. TLS would encrypt a single write of 60
 * MB in one turn of the event loop and keep the encrypted copy in memory until all of it was sent.
 */
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";

/** Size of a slice, in bytes. Encrypting a slice takes about 0.2 ms. */
export const sentBytes = 256 * 1_024;

/**
 * Prepares a body for writing.
 *
 * @returns a body longer than one slice as a stream, and its `content-length`, because the length of a stream is unknown
 */
export const sliceBody = (
  body: Uint8Array,
): { readonly body: Uint8Array | Readable; readonly headers: RelayHeaders } =>
  body.byteLength <= sentBytes
    ? { body, headers: [] }
    : {
        body: Readable.from(slices(body), { objectMode: false, highWaterMark: 1 }),
        headers: [["content-length", String(body.byteLength)]],
      };

/** A socket may accept megabytes without a pause, so the event loop gets a turn between slices. */
async function* slices(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.byteLength; at += sentBytes) {
    if (at > 0) await nextTurn();
    yield body.subarray(at, at + sentBytes);
  }
}
