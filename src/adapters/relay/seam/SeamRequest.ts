/** Builds the request of a continuation: the client's own request with another body. */
import * as Json from "../../../domain/Json.ts";

/** The parts of a request that are read or changed. */
export interface SentRequest {
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
}

/** A request, with its decoded body if it came with a content encoding. */
export interface PlainRequest {
  readonly request: SentRequest;
  readonly plain?: SentRequest["body"];
}

/** Parses the body of a request; undefined if it is not a JSON object, or if `decodeBody` cannot read it. */
export const parseBody = (sent: PlainRequest): Json.JsonRecord | undefined => {
  const text = decodeBody(sent);
  return text === undefined ? undefined : Json.record(Json.parse(text)?.json);
};

/** Returns the body of a request as text; undefined if there is none, if it still has a content encoding, or if it is not UTF-8. */
export const decodeBody = ({ plain, request }: PlainRequest): string | undefined => {
  const body = plain ?? (request.headers.some(isEncoding) ? undefined : request.body);
  if (body === undefined || typeof body === "string") return body;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    // Bytes that are not UTF-8 would be written back as other bytes.
    return undefined;
  }
};

const isEncoding = ([name, value]: SentRequest["headers"][number]): boolean =>
  name.toLowerCase() === "content-encoding" && !/^\s*(?:identity\s*)?$/i.test(value);

/**
 * Replaces the body of a request; the address and the credential stay. The idempotency key is removed, because the provider would
 * return the first response again.
 *
 * @param body JSON
 */
export const withBody = <R extends SentRequest>(request: R, body: string): R => ({
  ...request,
  headers: withoutBody(request.headers),
  body,
});

/** Removes headers that describe the body, or mark the request as a repeat of another one. */
export const withoutBody = (headers: SentRequest["headers"]): SentRequest["headers"] =>
  headers.filter(([name]) => !ofBody.has(name.toLowerCase()));

/** True if the headers sign the body, so that the body cannot be replaced. */
export const isSigned = ({ headers }: Pick<SentRequest, "headers">): boolean =>
  headers.some(([name, value]) => {
    const key = name.toLowerCase();
    return signatures.has(key) || (key === "authorization" && /^\s*(?:AWS4-|Signature\b)/i.test(value));
  });

/** Headers that describe a body, or identify the request that it belongs to. */
const ofBody: ReadonlySet<string> = new Set([
  "content-length",
  "content-encoding",
  "content-digest",
  "content-md5",
  "repr-digest",
  "transfer-encoding",
  "expect",
  "digest",
  "idempotency-key",
  "x-idempotency-key",
]);

/** Signature headers of RFC 9421 and of AWS Signature Version 4. */
const signatures: ReadonlySet<string> = new Set(["signature", "signature-input", "x-amz-content-sha256"]);
