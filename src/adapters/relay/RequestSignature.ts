/**
 * Reads the signature of a request to Amazon's APIs (Signature Version 4). It covers the headers, the address and the body, so a signed
 * request can only be sent again as it is, and only while the signature is valid.
 */
import { fieldOf, type RelayRequest, readAddress } from "./RelayTransport.ts";

/** A signature of a request. */
export interface RequestSignature {
  /** The region in its scope. A server of any other region refuses it. */
  readonly region: string;
  /** The time after which servers refuse it, in milliseconds since the epoch; undefined if it names no time. */
  readonly validUntilMs: number | undefined;
  /** The names of the signed headers, in lower case. */
  readonly headers: ReadonlyArray<string>;
}

/** Time for which a signature in the headers is valid, in milliseconds: the difference between clocks that Amazon allows. */
export const validMs = 5 * 60_000;

/** Returns the signature of a request, in its headers or in its query; undefined if it has none. */
export const signatureOf = ({ headers, url }: Pick<RelayRequest, "headers" | "url">): RequestSignature | undefined => {
  const given = fieldOf(headers, "authorization") ?? "";
  const signed = /^\s*AWS4-\S+\s+(.*)$/s.exec(given)?.[1];
  if (signed !== undefined) {
    const part = (name: string): string => new RegExp(`\\b${name}=([^,\\s]+)`).exec(signed)?.[1] ?? "";
    const date = fieldOf(headers, "x-amz-date") ?? fieldOf(headers, "date") ?? "";
    return signature(part("Credential"), part("SignedHeaders"), timeOf(date), validMs);
  }
  if (!/[?&]X-Amz-Signature=/i.test(url)) return undefined;
  const query = readAddress(url)?.searchParams;
  const part = (name: string): string => query?.get(name) ?? "";
  const expiresMs = Number(part("X-Amz-Expires") || Number.NaN) * 1000;
  const time = timeOf(part("X-Amz-Date"));
  return signature(
    part("X-Amz-Credential"),
    part("X-Amz-SignedHeaders"),
    time,
    Number.isNaN(expiresMs) ? validMs : expiresMs,
  );
};

const signature = (
  credential: string,
  headers: string,
  fromMs: number | undefined,
  forMs: number,
): RequestSignature => ({
  region: credential.split("/")[2] ?? "",
  validUntilMs: fromMs === undefined ? undefined : fromMs + forMs,
  headers: headers.toLowerCase().split(";"),
});

/** Reads `20301231T235959Z`, or a date of HTTP. */
const timeOf = (text: string): number | undefined => {
  const iso = text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z");
  const time = Date.parse(iso);
  return Number.isNaN(time) ? undefined : time;
};
