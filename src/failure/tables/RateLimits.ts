/**
 * Reads the rate limits that a response reports as buckets: the amount left in each bucket, and the time at which the bucket is full again.
 *
 * Every response carries these headers, but in a success they have no meaning. Only in a refusal does an empty bucket tell the length of
 * the wait.
 */
import { parseTimestamp } from "./Instants.ts";
import { clampWait, fromNumber, parseDecimal, parseDuration, readHeader, readResponseDate } from "./RetryAfter.ts";

/** Summary of the buckets that one response reports. */
export interface Buckets {
  /** Number of buckets that report the amount left. */
  readonly reported: number;
  /** Number of buckets with nothing left. */
  readonly empty: number;
  /** Time until all empty buckets are full again, if reported, in milliseconds. */
  readonly resetMs?: number;
}

/** Reads the buckets in several objects with response headers, and combines them. */
export const read = (headers: ReadonlyArray<unknown>, nowMs: number | undefined): Buckets => {
  let reported = 0;
  let empty = 0;
  let resetMs: number | undefined;
  for (const held of headers) {
    for (const { left, reset } of names) {
      const amount = parseAmount(readHeader(held, left));
      if (amount === undefined) continue;
      reported += 1;
      if (amount > 0) continue;
      empty += 1;
      const wait = parseWait(readHeader(held, reset), readResponseDate(held, nowMs));
      if (wait !== undefined) resetMs = Math.max(resetMs ?? 0, wait);
    }
  }
  return { reported, empty, ...(resetMs === undefined ? {} : { resetMs }) };
};

interface Bucket {
  readonly left: string;
  readonly reset: string;
}

const anthropicBucket = (bucket: string): Bucket => ({
  left: `anthropic-ratelimit-${bucket}-remaining`,
  reset: `anthropic-ratelimit-${bucket}-reset`,
});

const commonBucket = (bucket: string): Bucket => ({
  left: `x-ratelimit-remaining${bucket}`,
  reset: `x-ratelimit-reset${bucket}`,
});

/** Headers of each bucket. */
const names: ReadonlyArray<Bucket> = [
  // Anthropic, "Rate limits", response headers: resets are RFC 3339.
  ...["requests", "tokens", "input-tokens", "output-tokens"].map(anthropicBucket),
  // A plan's window (claude.ai logins) reports a status instead of the amount left. Its reset is an epoch.
  { left: "anthropic-ratelimit-unified-status", reset: "anthropic-ratelimit-unified-reset" },
  // OpenAI, "Rate limits in headers" (`6m0s`), Groq (`2m59.56s`), Azure (seconds); Cerebras (the period is part of the name), OpenRouter
  // (epoch).
  ...["-requests", "-tokens", "-requests-day", "-tokens-minute", ""].map(commonBucket),
  // draft-ietf-httpapi-ratelimit-headers-06: seconds.
  { left: "ratelimit-remaining", reset: "ratelimit-reset" },
];

/**
 * Returns the amount left in a bucket. Azure sends -1 if it does not know the amount. In a status, only `rejected` means an empty bucket.
 */
const parseAmount = (value: string | undefined): number | undefined =>
  value !== undefined && /^\s*rejected\s*$/i.test(value) ? 0 : parseDecimal(value);

/** Parses `6m0s` and similar durations, seconds, an epoch, or a timestamp. */
const parseWait = (value: string | undefined, nowMs: number | undefined): number | undefined => {
  if (value === undefined) return undefined;
  const number = parseDecimal(value);
  if (number !== undefined) return fromNumber(number, nowMs);
  const atMs = parseTimestamp(value.trim());
  if (atMs !== undefined) return nowMs === undefined ? undefined : clampWait(atMs - nowMs);
  const wait = /^\s*\d/.test(value) ? parseDuration(value) : undefined;
  return wait === undefined ? undefined : clampWait(wait);
};

/**
 * Returns true if the message of a refusal is about the size of its request. OpenAI and Groq name a request larger than the limit ("Limit
 * 30000, Requested 45000"). Anthropic names a long context that the account may not use ("Extra usage is required for long context
 * requests.").
 */
export const isForItsSize = (message: string): boolean => {
  if (/\blong[- ]context\b/i.test(message)) return true;
  const asked = /\blimit:? (\d{1,12})\b[^.]{0,60}\brequested:? (\d{1,12})\b/i.exec(message);
  return asked !== null && Number(asked[2]) > Number(asked[1]);
};
