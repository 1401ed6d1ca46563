/**
 * Reads bodies that come whole: a provider's refusal, or a document, each within its limits.
 */
import type { RelayExchange, RelayHead, RelayRefusal } from "./RelayTransport.ts";

/** Most bytes that are kept of a refusal's body, which goes to the client as it came. */
export const refusalBytesMax = 1024 * 1024;

/** Longest wait for the body of a refusal, in milliseconds. */
export const refusalMs = 10_000;

/** Most bytes of a document that are held until it is whole; a longer one is streamed, and the client sees a break in it. */
export const documentBytesMax = 8 * 1024 * 1024;

/** Waits for a promise at most some milliseconds; undefined when that time is over. */
export type WithTimeout = <A>(ms: number, promise: Promise<A>) => Promise<A | undefined>;

/** Bytes that were read of a body. */
export interface DocumentBytes {
  readonly chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>;
  /** Its clean end has come; else it is longer than the limit. */
  readonly whole: boolean;
}

/**
 * Reads a refusal. The bytes that came count, however the body ended: a break does not change what the status says.
 *
 * @param first the bytes of it that were already read
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
 * Reads a document until it is whole or longer than its limit.
 *
 * @param first the bytes of it that were already read
 * @throws what the exchange breaks with
 */
export const readDocument = async (
  exchange: RelayExchange,
  first: ReadonlyArray<Uint8Array<ArrayBuffer>>,
): Promise<DocumentBytes> => {
  const chunks = [...first];
  const whole = await gather(exchange, chunks, documentBytesMax);
  return { chunks, whole };
};

/** The text of a body, for classifiers. */
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
