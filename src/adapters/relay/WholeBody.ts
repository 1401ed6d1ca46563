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
  const read = gather(exchange, chunks, refusalBytesMax).catch(() => false);
  const whole = (await within(refusalMs, read)) === true;
  return { head, body: [...chunks], whole };
};

/**
 * Reads a document until it is complete or exceeds the limit.
 *
 * @param first bytes of the body that were already read
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

/** Decodes a body as text, for classifiers. */
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
