/**
 * Takes content encodings off (RFC 9110, 8.4): of responses that came encoded although plain ones were asked for, and of a copy
 * of requests that clients compress, which can be recognised in no other way.
 */
import { Readable, type Transform } from "node:stream";
import { constants, createBrotliDecompress, createUnzip, createZstdDecompress } from "node:zlib";
import { relayError } from "../../adapters/relay/RelayTransport.ts";

/** Bytes of a body. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** Whether a `content-encoding` changes anything. */
export const isEncoded = (encoding: string): boolean => !/^\s*(?:identity)?\s*$/i.test(encoding);

/**
 * Decodes bytes as they come. What it reads ahead is what one decoder holds.
 *
 * @param encoding the header's value
 * @param read the next bytes; undefined at their clean end
 * @returns undefined for an encoding that is not known, or for several
 */
export const decoded = (
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
    // A body that is damaged later was encoded as its header says.
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

/** Largest window of the content encoding zstd, as a power of two: 8 MiB (RFC 9659, 3). A larger one costs its decoder as much. */
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

/** zlib's word for bytes that end before the data does. */
const isCut = (error: unknown): boolean =>
  error instanceof Error &&
  "code" in error &&
  (error.code === "Z_BUF_ERROR" || error.code === "ERR_BUFFER_OUT_OF_BOUNDS");

/**
 * Decodes a whole body, as far as it is taken.
 *
 * @param take counts bytes of the result as they come, and gives why they are too many
 * @param signal ends it
 * @returns undefined where the body cannot be decoded: it is the provider's to refuse, and passes through as it is
 */
export const decodedBody = async <Reason extends string>(
  encoding: string,
  body: Bytes,
  take: (bytes: number) => Reason | undefined,
  signal: AbortSignal,
): Promise<{ readonly chunks: Array<Bytes> } | { readonly refused: Reason } | undefined> => {
  let given = false;
  const decoding = decoded(encoding, async () => {
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
