/**
 * Reads complete bodies of refusals and documents, up to a limit.
 */
import type { RelayExchange, RelayHead, RelayRefusal } from "./RelayTransport.ts";

/** Maximum number of bytes of a refusal's body that are kept and sent to the client. */
export const refusalBytesMax = 1024 * 1024;

/** Maximum wait for the body of a refusal, in milliseconds. */
export const refusalMs = 10_000;

/**
 * Maximum size of a document that is held until it is complete, in bytes. A longer document is streamed, and a break in it is visible to
 * the client.
 */
export const documentBytesMax = 8 * 1024 * 1024;

/**
 * Maximum size of all documents that this process holds until they are complete, in bytes. A document that exceeds it is streamed, like one
 * that exceeds `documentBytesMax`.
 */
export const documentBytesProcessMax = 256 * 1024 * 1024;

/** The bytes of all documents that this process holds. */
export const heldDocuments = { bytes: 0 };

/** The bytes of one held document. */
export class HeldDocument {
  #bytes = 0;
  #isReleased = false;

  /** Counts further bytes. Returns false if this document, or all documents together, exceed their maximum. */
  add(bytes: number): boolean {
    if (this.#isReleased) return false;
    this.#bytes += bytes;
    heldDocuments.bytes += bytes;
    return this.#bytes <= documentBytesMax && heldDocuments.bytes <= documentBytesProcessMax;
  }

  /** Counts the document no longer, because it was handed over or discarded. */
  release(): void {
    this.#isReleased = true;
    heldDocuments.bytes -= this.#bytes;
    this.#bytes = 0;
  }
}

/** Waits for a promise, for at most `ms` milliseconds. After that, resolves to undefined. */
export type WithTimeout = <A>(ms: number, promise: Promise<A>) => Promise<A | undefined>;

/** Bytes of a document, possibly incomplete. */
export interface DocumentBytes {
  readonly chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>;
  /** True if the body has ended cleanly, false if it exceeds the limit. */
  readonly whole: boolean;
}

/**
 * Reads a refusal. If its body breaks, the received bytes are used, because the status has the same meaning.
 *
 * @param first bytes of the body that were already read
 */
export const readRefusal = async (
  exchange: RelayExchange,
  head: RelayHead,
  first: ReadonlyArray<Uint8Array<ArrayBuffer>>,
  within: WithTimeout,
): Promise<RelayRefusal> => {
  const chunks = [...first];
  let room = refusalBytesMax;
  const fits = (bytes: number): boolean => {
    room -= bytes;
    return room >= 0;
  };
  const read = gather(exchange, chunks, fits).catch(() => false);
  const whole = (await within(refusalMs, read)) === true;
  return { head, body: [...chunks], whole };
};

/**
 * Reads a document until it is complete or exceeds a limit.
 *
 * @param first bytes of the body that were already read
 * @param held counts the bytes
 * @param onRead called with the bytes of each read
 * @throws the error with which the exchange breaks
 */
export const readDocument = async (
  exchange: RelayExchange,
  first: ReadonlyArray<Uint8Array<ArrayBuffer>>,
  held: HeldDocument,
  onRead: (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>) => void,
): Promise<DocumentBytes> => {
  const chunks = [...first];
  const whole = await gather(exchange, chunks, (bytes) => held.add(bytes), onRead);
  return { chunks, whole };
};

/** Decodes a body as text, for classifiers. */
export const textOf = (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): string => {
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode();
};

const gather = async (
  exchange: RelayExchange,
  chunks: Array<Uint8Array<ArrayBuffer>>,
  fits: (bytes: number) => boolean,
  onRead: (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>) => void = () => {},
): Promise<boolean> => {
  let more: ReadonlyArray<Uint8Array<ArrayBuffer>> = chunks;
  while (fits(more.reduce((sum, chunk) => sum + chunk.byteLength, 0))) {
    if (more.length > 0) onRead(more);
    const read = await exchange.read();
    if (read === undefined) return true;
    chunks.push(...read);
    more = read;
  }
  return false;
};
