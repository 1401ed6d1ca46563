/**
 * Removes content encodings (RFC 9110, 8.4). A provider may encode a response although the gateway asked for a plain one. A compressed
 * request is decoded into a copy, because the gateway cannot read it otherwise.
 */
import { Readable, type Transform } from "node:stream";
import { constants, createBrotliDecompress, createUnzip, createZstdDecompress } from "node:zlib";
import { relayError } from "../../adapters/relay/RelayTransport.ts";

/** A chunk of a body. Its memory is not shared with other threads. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** True if a `content-encoding` header names an encoding other than `identity`. */
export const isEncoded = (encoding: string): boolean => !/^\s*(?:identity)?\s*$/i.test(encoding);

/**
 * Decodes bytes as they arrive. It reads ahead no more than the decoder buffers.
 *
 * @param encoding the header's value
 * @param read returns the next bytes; undefined at a clean end
 * @returns undefined for an unknown encoding, or for several encodings
 */
export const decodeStream = (
  encoding: string,
  read: () => Promise<ReadonlyArray<Bytes> | undefined>,
): AsyncIterable<Bytes> | undefined => {
  const decoder = decoderOf(encoding);
  return decoder === undefined ? undefined : decodeWith(decoder, encoding, read);
};

async function* decodeWith(
  decoder: Transform,
  encoding: string,
  read: () => Promise<ReadonlyArray<Bytes> | undefined>,
): AsyncGenerator<Bytes> {
  const failed: Array<unknown> = [];
  let hasDecoded = false;
  const source = Readable.from(chunks(read), { objectMode: true, highWaterMark: 1 });
  source.on("error", (error) => {
    failed.push(error);
    decoder.destroy(error);
  });
  try {
    for await (const chunk of source.pipe(decoder)) {
      hasDecoded = true;
      yield chunk;
    }
  } catch (error) {
    if (failed.length > 0) throw failed[0];
    if (isCut(error)) throw relayError({ kind: "truncated" });
    // If some bytes could be decoded before the damage, the encoding in the header is right, so the error code does not name the encoding.
    const code = hasDecoded ? {} : { code: `not_${encoding.trim().toLowerCase().replace(/^x-/, "")}` };
    throw relayError({ kind: "protocol", reason: "damaged_frame", ...code });
  } finally {
    source.destroy();
    decoder.destroy();
  }
}

async function* chunks(read: () => Promise<ReadonlyArray<Bytes> | undefined>): AsyncGenerator<Bytes> {
  for (;;) {
    const next = await read();
    if (next === undefined) return;
    yield* next;
  }
}

/** Maximum window of zstd as a content encoding, as a power of two: 8 MiB (RFC 9659, 3). The decoder allocates the whole window. */
const zstdWindowLogMax = 23;

const decoderOf = (encoding: string): Transform | undefined => {
  switch (encoding.trim().toLowerCase()) {
    case "gzip":
    case "x-gzip":
    case "deflate":
      return createUnzip();
    case "br":
      return createBrotliDecompress();
    case "zstd":
      return createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLogMax } });
    default:
      return undefined;
  }
};

/** True for zlib's error about truncated data. */
const isCut = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "Z_BUF_ERROR" || error.code === "ERR_BUFFER_OUT_OF_BOUNDS");

/**
 * Decodes a whole body until `take` refuses it.
 *
 * @param take counts the decoded bytes, and returns a reason if there are too many
 * @param signal stops the decoding
 * @returns undefined if the body cannot be decoded; it is then forwarded unchanged, so that the provider refuses it
 */
export const decodeBody = async <Reason extends string>(
  encoding: string,
  body: Bytes,
  take: (bytes: number) => Reason | undefined,
  signal: AbortSignal,
): Promise<{ readonly chunks: Array<Bytes> } | { readonly refused: Reason } | undefined> => {
  let given = false;
  const decoding = decodeStream(encoding, async () => {
    if (given) return undefined;
    given = true;
    return [body];
  });
  if (decoding === undefined) return undefined;
  const chunks: Array<Bytes> = [];
  try {
    for await (const chunk of decoding) {
      if (signal.aborted) return undefined;
      const refused = take(chunk.byteLength);
      if (refused !== undefined) return { refused };
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return { chunks };
};
