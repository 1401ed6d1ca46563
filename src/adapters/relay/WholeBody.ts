/**
 * Reads whole bodies, refusals and documents, within their limits.
 */
import type { RelayExchange, RelayHead, RelayRefusal } from "./RelayTransport.ts";

/** Maximum bytes that are kept of a refusal's body, which is sent to the client unchanged. */
export const refusalBytesMax = 1024 * 1024;

/** Maximum wait for the body of a refusal, in milliseconds. */
export const refusalMs = 10_000;

/** Maximum bytes of a document that are held until it is complete. A longer one is streamed, and the client sees a break in it. */
export const documentBytesMax = 8 * 1024 * 1024;

/** Waits for a promise for at most `ms` milliseconds; resolves to undefined after that. */
export type WithTimeout = <A>(ms: number, promise: Promise<A>) => Promise<A | undefined>;

/** The bytes read of a body. */
export interface DocumentBytes {
  readonly chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>;
  /** True if the clean end has come; false if the body exceeds the limit. */
  readonly whole: boolean;
}

/**
 * Reads a refusal. The received bytes count however the body ends, because a break does not change the meaning of the status.
 *
 * @param first the bytes of the body that were already read
 */
export const readRefusal = async (
  exchange: RelayExchange,
  head: RelayHead,
  first: ReadonlyArray<Uint8Array<ArrayBuffer>>,
  within: WithTimeout,
): Promise<RelayRefusal> => {
  const chunks = [...first];
  const read = gather(exchange, chunks, refusalBytesMax).catch(() => false);
  const whole = (await within(refusalMs, read)) === true;
  return { head, body: [...chunks], whole };
};

/**
 * Reads a document until it is complete or exceeds its limit.
 *
 * @param first the bytes of the body that were already read
 * @throws the error with which the exchange breaks
 */
export const readDocument = async (
  exchange: RelayExchange,
  first: ReadonlyArray<Uint8Array<ArrayBuffer>>,
): Promise<DocumentBytes> => {
  const chunks = [...first];
  const whole = await gather(exchange, chunks, documentBytesMax);
  return { chunks, whole };
};

/** Decodes a body for classifiers. */
export const textOf = (chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>): string => {
  const decoder = new TextDecoder();
  return chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode();
};

const gather = async (
  exchange: RelayExchange,
  chunks: Array<Uint8Array<ArrayBuffer>>,
  limit: number,
): Promise<boolean> => {
  let length = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  while (length <= limit) {
    const more = await exchange.read();
    if (more === undefined) return true;
    chunks.push(...more);
    length += more.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  }
  return false;
};
