/**
 * Hands a large body to a connection slice by slice, each once the one before has left: one write of 60 MB is encrypted in one turn of the
 * event loop, and stands beside the body once more until it has left.
 */
import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";

/** Bytes of a slice: as many are encrypted in some 0.2 ms. */
export const sentBytes = 256 * 1_024;

/**
 * A body as it is written.
 *
 * @returns a stream for one that is longer than a slice, with the header that says its length: of a stream no length is known
 */
export const slicedBody = (
  body: Uint8Array,
): { readonly body: Uint8Array | Readable; readonly headers: RelayHeaders } =>
  body.byteLength <= sentBytes
    ? { body, headers: [] }
    : {
        body: Readable.from(slices(body), { objectMode: false, highWaterMark: 1 }),
        headers: [["content-length", String(body.byteLength)]],
      };

/** A socket may take megabytes without waiting: others have their turn between two slices all the same. */
async function* slices(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < body.byteLength; at += sentBytes) {
    if (at > 0) await nextTurn();
    yield body.subarray(at, at + sentBytes);
  }
}
