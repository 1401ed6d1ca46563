/**
 * Reads responses that are no event stream, within their limits, and says whether a stream may follow a head.
 */
import { Duration, Effect } from "effect";
import type { Exchange, ExchangeBreak, Head } from "./connection/Exchange.ts";
import type { ProviderResponse } from "./ProviderError.ts";

/** Most bytes that are read of a response that is no stream. */
export const errorBodyBytesMax = 64 * 1024;

/** Longest wait for the body of a response that is no stream, in milliseconds. */
export const errorBodyMs = 10_000;

/** Most bytes of a JSON document that is a response, the same as of one event. */
export const documentBytesMax = 16 * 1024 * 1024;

/**
 * Whether the body may be a stream. Gateways send healthy streams as text/plain, octet-stream, x-ndjson or without a type, so
 * the type rules out only JSON and pages; the first bytes decide on the rest. A 204 or 205 has no body (RFC 9110). The client
 * asks for plain bytes, so compressed ones are no events.
 */
export const mayStream = (head: Head): boolean =>
  mayHaveContent(head) && !documentTypes.test(head.headers["content-type"] ?? "");

/** Whether the body is a JSON document of a success. */
export const isDocument = (head: Head): boolean =>
  mayHaveContent(head) && /^\s*application\/json\b/i.test(head.headers["content-type"] ?? "");

/** Whether events may follow a head of any type: some servers send a stream as `application/json`. */
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
 * Reads a response that is no stream within its limits; the bytes that came count, however the body ended.
 *
 * @param first the bytes of it that were already read
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
