/** Reads responses that are not event streams, within size and time limits, and decides whether a stream may follow a response head. */
import { Duration, Effect } from "effect";
import type { Exchange, ExchangeBreak, Head } from "./connection/Exchange.ts";
import type { ProviderResponse } from "./ProviderError.ts";

/** Maximum bytes read from a response that is not a stream. */
export const errorBodyBytesMax = 64 * 1024;

/** Maximum wait for the body of a response that is not a stream, in milliseconds. */
export const errorBodyMs = 10_000;

/** Maximum size of a JSON document that is a response, in bytes. One event has the same limit. */
export const documentBytesMax = 16 * 1024 * 1024;

/**
 * Returns true if the body may be a stream. Gateways send healthy streams as text/plain, octet-stream, x-ndjson or without a type. So the
 * type excludes only JSON and web pages, and otherwise the first bytes decide. A 204 or 205 has no body (RFC 9110). The client asks for
 * uncompressed bytes, so a compressed body contains no events.
 */
export const mayStream = (head: Head): boolean =>
  mayHaveContent(head) && !documentTypes.test(head.headers["content-type"] ?? "");

/** Returns true if the body is the JSON document of a successful response. */
export const isDocument = (head: Head): boolean =>
  mayHaveContent(head) && /^\s*application\/json\b/i.test(head.headers["content-type"] ?? "");

/** Returns true if events may follow a response head, regardless of its content type. Some servers send a stream as `application/json`. */
export const mayHaveContent = ({ headers, status }: Head): boolean => {
  const encoding = headers["content-encoding"];
  const plain = encoding === undefined || /^\s*identity\s*$/i.test(encoding);
  return plain && status >= 200 && status <= 299 && status !== 204 && status !== 205;
};

const documentTypes = /^\s*(?:(?:application|text)\/(?:json|problem\+json|html|xhtml\+xml|xml))\b/i;

/** Returns the total size of several arrays, in bytes. */
export const sizeOf = (chunks: ReadonlyArray<Uint8Array>): number =>
  chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);

/**
 * Reads a response that is not a stream, up to `errorBodyBytesMax` bytes and for at most `errorBodyMs`. If the body breaks, the bytes that
 * have arrived are returned.
 *
 * @param first the bytes of the response that were already read
 */
export const readResponse = Effect.fnUntraced(function* (
  exchange: Exchange,
  head: Head,
  first: ReadonlyArray<Uint8Array>,
) {
  const chunks = [...first];
  // A body that breaks or stalls is not an error here, because the response still has its status.
  yield* Effect.ignore(Effect.timeoutOption(gather(exchange, chunks, errorBodyBytesMax), Duration.millis(errorBodyMs)));
  const bytes = Buffer.concat(chunks).subarray(0, errorBodyBytesMax);
  const response: ProviderResponse = { ...head, body: new TextDecoder().decode(bytes) };
  return response;
});

/**
 * Reads a whole JSON document. The watchdog's clocks apply as for a stream.
 *
 * @returns the bytes of the document as one server-sent event; undefined if it exceeds `documentBytesMax`
 */
export const readDocument = Effect.fnUntraced(function* (exchange: Exchange) {
  const chunks: Array<Uint8Array> = [];
  yield* gather(exchange, chunks, documentBytesMax);
  if (sizeOf(chunks) > documentBytesMax) return undefined;
  const lines = Buffer.concat(chunks)
    .toString()
    .split(/\r\n|\r|\n/);
  return Buffer.from(`${lines.map((line) => `data: ${line}\n`).join("")}\n`);
});

/** Reads until the end, or until the total exceeds a limit in bytes. */
const gather = (exchange: Exchange, chunks: Array<Uint8Array>, limit: number): Effect.Effect<void, ExchangeBreak> =>
  Effect.gen(function* () {
    let length = sizeOf(chunks);
    while (length <= limit) {
      const more = yield* exchange.read;
      if (more === undefined) return;
      chunks.push(...more);
      length += sizeOf(more);
    }
  });
