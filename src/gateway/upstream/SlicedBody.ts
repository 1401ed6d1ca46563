/**
 * Writes a large body to a connection slice by slice, each after the previous one has left. A single write of 60 MB is encrypted in
 * one turn of the event loop, and its encrypted copy stays in memory until it has left.
 */
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";

/** Size of a slice, in bytes. Encrypting one takes about 0.2 ms. */
export const sentBytes = 256 * 1_024;

/**
 * Prepares a body for writing.
 *
 * @returns a stream for a body longer than a slice, with its `content-length`, because a stream has no known length
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

/** A socket may take megabytes without waiting, so the loop gets a turn between slices. */
async function* slices(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.byteLength; at += sentBytes) {
    if (at > 0) await nextTurn();
    yield body.subarray(at, at + sentBytes);
  }
}
