/**
 * Removes content encodings (RFC 9110, 8.4) from responses that came encoded although plain ones were requested, and from a copy of
 * compressed requests, which cannot be recognised otherwise.
 */
import { Readable, type Transform } from "node:stream";
import { constants, createBrotliDecompress, createUnzip, createZstdDecompress } from "node:zlib";
import { relayError } from "../../adapters/relay/RelayTransport.ts";

/** Bytes of a body. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** True if a `content-encoding` changes anything. */
export const isEncoded = (encoding: string): boolean => !/^\s*(?:identity)?\s*$/i.test(encoding);

/**
 * Decodes bytes as they arrive. It reads ahead only as much as one decoder holds.
 *
 * @param encoding the header's value
 * @param read the next bytes; undefined at their clean end
 * @returns undefined for an unknown encoding, or for several
 */
export const decodeStream = (
  encoding: string,
  read: () => Promise<ReadonlyArray<Bytes> | undefined>,
): AsyncIterable<Bytes> | undefined => {
  const decoder = decoderOf(encoding);
  return decoder === undefined ? undefined : through(decoder, encoding, read);
};

async function* through(
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
    // If bytes were decoded before the damage, the header named the encoding correctly.
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

/** Maximum window of the content encoding zstd, as a power of two: 8 MiB (RFC 9659, 3). The decoder allocates the whole window. */
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

/** True for zlib's error about data that is cut off. */
const isCut = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "Z_BUF_ERROR" || error.code === "ERR_BUFFER_OUT_OF_BOUNDS");

/**
 * Decodes a whole body, until `take` refuses it.
 *
 * @param take counts decoded bytes and returns the reason if they are too many
 * @param signal stops the decoding
 * @returns undefined if the body cannot be decoded; it then passes through unchanged, and the provider refuses it
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
