/**
 * Reads how long a provider asks a client to wait.
 */
import * as Duration from "effect/Duration";
import { elements, get, number, text } from "../thrown/CauseChain.ts";
import { parseHttpDate } from "./Instants.ts";

/** Maximum wait that is accepted, in milliseconds: 30 days. We assume that a longer wait is a mistake of the provider. */
export const retryAfterMsMax = 30 * 86_400_000;

/** Numbers above this are epochs in seconds. Numbers above a thousand times this are epochs in milliseconds (GitHub, OpenRouter). */
const epochSecondsMin = 1_000_000_000;

/** Response headers in any shape. */
export type HeadersLike = Record<string, string | undefined> | { readonly get: (name: string) => string | null };

/**
 * Reads `retry-after-ms` (OpenAI, Azure), else `retry-after` (RFC 9110, 10.2.3) as seconds, HTTP date or epoch.
 *
 * Azure sends `retry-after-ms: 0` together with `retry-after: 1`, so `retry-after` takes precedence over a zero.
 *
 * A date or an epoch is relative to the response's own `Date`, because the clock of this machine may be wrong by hours.
 *
 * @param headers a plain record with names in upper or lower case, or an object with `get`
 * @param nowMs wall-clock time, in milliseconds since the epoch; without it and without a `Date`, a date or an epoch is not read
 * @returns milliseconds, at most `retryAfterMsMax`
 */
export const fromHeaders = (headers: unknown, nowMs?: number): number | undefined => {
  const precise = parseDecimal(readHeader(headers, "retry-after-ms"));
  if (precise !== undefined && precise > 0) return clampWait(precise);
  const plain = fromValue(readHeader(headers, "retry-after"), readResponseDate(headers, nowMs));
  return plain ?? (precise === undefined ? undefined : clampWait(precise));
};

/**
 * Returns the time at which a response was sent, by its own `Date` (RFC 9110, 6.6.1), else by our clock.
 *
 * @param nowMs wall-clock time, in milliseconds since the epoch
 */
export const readResponseDate = (headers: unknown, nowMs: number | undefined): number | undefined =>
  parseHttpDate((readHeader(headers, "date") ?? "").trim(), nowMs) ?? nowMs;

/**
 * Reads the wait in an error body: google.rpc RetryInfo, or a number under a well-known name.
 *
 * @param error the error object of a body
 */
export const fromBody = (error: unknown): number | undefined => {
  for (const detail of elements(get(error, "details"))) {
    const delay = get(detail, "retryDelay");
    const wait = typeof delay === "string" ? parseDuration(delay) : parseProtobufDuration(delay);
    if (wait !== undefined) return clampWait(wait);
  }
  for (const holder of [error, get(error, "metadata")]) {
    const milliseconds = number(holder, "retry_after_ms");
    if (milliseconds !== undefined && milliseconds >= 0) return clampWait(milliseconds);
    const seconds =
      number(holder, "retry_after") ?? number(holder, "retry_after_seconds") ?? number(holder, "resets_in_seconds");
    if (seconds !== undefined && seconds >= 0 && seconds < epochSecondsMin) return clampWait(seconds * 1_000);
  }
  return undefined;
};

/** Reads the wait that a library has already parsed: `retryAfter` of Effect's AiError, a Duration. */
export const fromError = (error: unknown): number | undefined => {
  const wait = get(error, "retryAfter");
  return Duration.isDuration(wait) && Duration.isFinite(wait) ? clampWait(Duration.toMillis(wait)) : undefined;
};

/** Reads one header, whose name may be in upper or lower case. Redacted and repeated values that are not strings are ignored. */
export const readHeader = (headers: unknown, name: string): string | undefined => {
  const getter = get(headers, "get");
  if (typeof getter === "function") {
    try {
      const value: unknown = Reflect.apply(getter, headers, [name]);
      if (typeof value === "string") return value;
    } catch {
      return undefined; // a `get` that is not the one of Headers
    }
  }
  const direct = text(headers, name);
  if (direct !== undefined || typeof headers !== "object" || headers === null) return direct;
  try {
    const key = Object.keys(headers).find((candidate) => candidate.toLowerCase() === name);
    return key === undefined ? undefined : text(headers, key);
  } catch {
    return undefined; // a proxy that hides its keys
  }
};

const fromValue = (value: string | undefined, nowMs: number | undefined): number | undefined => {
  if (value === undefined) return undefined;
  const number = parseDecimal(value);
  if (number !== undefined) return fromNumber(number, nowMs);
  if (nowMs === undefined) return parseDuration(value);
  const atMs = parseHttpDate(value.trim(), nowMs);
  return atMs === undefined ? parseDuration(value) : clampWait(atMs - nowMs);
};

/** Interprets a number as seconds, or as an epoch in seconds or milliseconds, by its size. */
export const fromNumber = (number: number, nowMs: number | undefined): number | undefined => {
  if (number < epochSecondsMin) return clampWait(number * 1_000);
  const atMs = number < epochSecondsMin * 1_000 ? number * 1_000 : number;
  return nowMs === undefined ? undefined : clampWait(atMs - nowMs);
};

/** Limits a wait to between 0 and `retryAfterMsMax`. */
export const clampWait = (milliseconds: number): number =>
  Math.min(Math.max(Math.round(milliseconds), 0), retryAfterMsMax);

/** Parses a number of at most 16 digits and nine fractional ones. */
export const parseDecimal = (value: string | undefined): number | undefined =>
  value !== undefined && /^\s*\d{1,16}(?:\.\d{1,9})?\s*$/.test(value) ? Number(value) : undefined;

const unitsMs: Readonly<Record<string, number>> = {
  ms: 1,
  millisecond: 1,
  s: 1_000,
  sec: 1_000,
  second: 1_000,
  m: 60_000,
  min: 60_000,
  minute: 60_000,
  h: 3_600_000,
  hr: 3_600_000,
  hour: 3_600_000,
  d: 86_400_000,
  day: 86_400_000,
  week: 604_800_000,
};

/** Parses `48s`, `48.939935699s`, `1m30s`, `20 seconds`. Reads known units from the start of the text; undefined if there are none. */
export const parseDuration = (value: string): number | undefined => {
  let total: number | undefined;
  for (const [, amount, unit] of value.slice(0, 64).matchAll(/(\d{1,9}(?:\.\d{1,9})?)\s?([a-z]+)/gi)) {
    const word = (unit ?? "").toLowerCase();
    const factor = unitsMs[word] ?? unitsMs[word.replace(/s$/, "")];
    if (factor === undefined) break;
    total = (total ?? 0) + Number(amount) * factor;
  }
  return total === undefined ? undefined : Math.min(total, retryAfterMsMax);
};

const parseProtobufDuration = (value: unknown): number | undefined => {
  const seconds = number(value, "seconds") ?? parseDecimal(text(value, "seconds"));
  if (seconds === undefined || seconds < 0) return undefined;
  return seconds * 1_000 + (number(value, "nanos") ?? 0) / 1_000_000;
};
