/**
 * Makes the request of a continuation: the client's own with another body.
 */
import * as Json from "../../../domain/Json.ts";

/** What of a request is looked at or changed. */
export interface SentRequest {
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  readonly body: string | Uint8Array<ArrayBuffer> | undefined;
}

/** A request, and its body without content encoding where it has one. */
export interface PlainRequest {
  readonly request: SentRequest;
  readonly plain?: SentRequest["body"];
}

/** The body of a request, parsed; undefined where it cannot be read here. */
export const sentBody = (sent: PlainRequest): Json.JsonRecord | undefined => {
  const text = sentText(sent);
  return text === undefined ? undefined : Json.record(Json.parse(text)?.json);
};

/** The same as text. */
export const sentText = ({ plain, request }: PlainRequest): string | undefined => {
  const body = plain ?? (request.headers.some(isEncoding) ? undefined : request.body);
  if (body === undefined || typeof body === "string") return body;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    // Bytes that are no text would come out as others.
    return undefined;
  }
};

const isEncoding = ([name, value]: SentRequest["headers"][number]): boolean =>
  name.toLowerCase() === "content-encoding" && !/^\s*(?:identity\s*)?$/i.test(value);

/**
 * A request with another body, at the same address and with the same credential. The key by which its provider would know it for
 * the first request does not go with it: the provider would give the first response again.
 *
 * @param body JSON
 */
export const withBody = <R extends SentRequest>(request: R, body: string): R => ({
  ...request,
  headers: request.headers.filter(([name]) => !ofBody.has(name.toLowerCase())),
  body,
});

/** Whether the headers sign the body, so that no other one may go with them. */
export const isSigned = ({ headers }: Pick<SentRequest, "headers">): boolean =>
  headers.some(([name, value]) => {
    const key = name.toLowerCase();
    return signatures.has(key) || (key === "authorization" && /^\s*(?:AWS4-|Signature\b)/i.test(value));
  });

/** Headers that describe a body, or name the request that it is of. */
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

/** RFC 9421, and AWS Signature Version 4. */
const signatures: ReadonlySet<string> = new Set(["signature", "signature-input", "x-amz-content-sha256"]);
