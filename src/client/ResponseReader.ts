/**
 * Reads answers that are no event stream, within their limits, and says of a head whether a stream may follow.
 */
import { Duration, Effect } from "effect";
import type { Broken, Exchange, Head } from "./connection/Exchange.ts";
import type { ProviderResponse } from "./ProviderError.ts";

/** Most bytes that are read of an answer that is no stream. */
export const errorBodyBytesMax = 64 * 1024;

/** Longest wait for the body of an answer that is no stream, in milliseconds. */
export const errorBodyMs = 10_000;

/** Most bytes of a JSON document that is an answer, the same as of one event. */
export const documentBytesMax = 16 * 1024 * 1024;

/**
 * Whether the body may be a stream. Gateways send healthy ones as text/plain, octet-stream, x-ndjson or without a type, so
 * that only JSON and pages are told by their type; of the rest the first bytes decide. A 204 or 205 has no body (RFC 9110).
 * Compressed bytes were not asked for and are no events.
 */
export const mayStream = (head: Head): boolean =>
  mayHaveContent(head) && !documentTypes.test(head.headers["content-type"] ?? "");

/** Whether the body is a JSON document that says yes. */
export const isDocument = (head: Head): boolean =>
  mayHaveContent(head) && /^\s*application\/json\b/i.test(head.headers["content-type"] ?? "");

/** Whether a head may have a body of events, whatever its type says: some servers send a stream as `application/json`. */
export const mayHaveContent = ({ headers, status }: Head): boolean => {
  const encoding = headers["content-encoding"];
  const plain = encoding === undefined || /^\s*identity\s*$/i.test(encoding);
  return plain && status >= 200 && status <= 299 && status !== 204 && status !== 205;
};

const documentTypes = /^\s*(?:(?:application|text)\/(?:json|problem\+json|html|xhtml\+xml|xml))\b/i;

/** The bytes of several arrays. */
export const sizeOf = (chunks: ReadonlyArray<Uint8Array>): number =>
  chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);

/**
 * Reads an answer that is no stream within its limits; what came until then counts, however it ended.
 *
 * @param first what was read of it already
 */
export const readResponse = Effect.fnUntraced(function* (
  exchange: Exchange,
  head: Head,
  first: ReadonlyArray<Uint8Array>,
) {
  const chunks = [...first];
  // A body that broke or stalled does not change what its status says.
  yield* Effect.ignore(Effect.timeoutOption(gather(exchange, chunks, errorBodyBytesMax), Duration.millis(errorBodyMs)));
  const bytes = Buffer.concat(chunks).subarray(0, errorBodyBytesMax);
  const response: ProviderResponse = { ...head, body: new TextDecoder().decode(bytes) };
  return response;
});

/**
 * Reads a JSON document whole. The watchdog's clocks hold while it is read, as for a stream.
 *
 * @returns the bytes of the same document as one server-sent event; undefined past `documentBytesMax`
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

/** Reads until the end, or until there is more than a limit in bytes. */
const gather = (exchange: Exchange, chunks: Array<Uint8Array>, limit: number): Effect.Effect<void, Broken> =>
  Effect.gen(function* () {
    let length = sizeOf(chunks);
    while (length <= limit) {
      const more = yield* exchange.read;
      if (more === undefined) return;
      chunks.push(...more);
      length += sizeOf(more);
    }
  });
