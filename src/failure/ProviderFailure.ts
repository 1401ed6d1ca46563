/**
 * Derives a failure from a provider's response: its status, its error body, its headers.
 */
import type { Failure } from "../domain/Failure.ts";
import * as ErrorBody from "./evidence/ErrorBody.ts";
import * as HttpStatus from "./tables/HttpStatus.ts";
import { type CodeMeaning, isPlanLimitText, lookup } from "./tables/ProviderErrors.ts";
import * as RateLimits from "./tables/RateLimits.ts";
import * as RetryAfter from "./tables/RetryAfter.ts";
import * as WaitWords from "./tables/WaitWords.ts";
import { codeLabel } from "./thrown/ErrorLabel.ts";

/**
 * Derives a failure from an error status.
 *
 * @param status 400 to 599
 * @param body the reading of the body
 * @param headers objects with response headers, the outermost first
 * @param nowMs wall-clock time, in milliseconds since the epoch
 */
export const classifyStatus = (
  status: number,
  body: ErrorBody.BodyReading,
  headers: ReadonlyArray<unknown>,
  nowMs?: number,
): Failure => {
  const provider = findRefinement(status, body, headers);
  const retryable = shouldRetry(headers) ?? HttpStatus.canRetryStatus(status);
  const failure: Failure = {
    ...(provider?.failure ?? HttpStatus.failureOf(status)),
    status,
    ...(retryable === undefined ? {} : { retryable }),
    ...(provider?.not_processed === false || !HttpStatus.isBelievable(status, body.form)
      ? { not_processed: false }
      : {}),
    ...codeOf(body),
  };
  return withRetryAfter(failure, body, headers, nowMs);
};

/** Returns the meaning of a provider's code if it is more specific than the status. Otherwise the status determines the kind. */
const findRefinement = (
  status: number,
  body: ErrorBody.BodyReading,
  headers: ReadonlyArray<unknown>,
): CodeMeaning | undefined => {
  const code = body.byCode;
  const says = code?.failure;
  const reason = says?.kind === "rejected" ? says.reason : undefined;
  if (status === 429) return reason === "quota" ? code : findPermanent(body, status);
  if (status >= 500) {
    // A message counts only in the provider's own JSON, because the author of a proxy's page is unknown.
    const permanent = body.form === "text" ? undefined : findPermanent(body, status);
    return code?.rank === 4 || (status === 503 && says?.kind === "overloaded") ? code : permanent;
  }
  if (status === 402 || status === 408 || status === 409 || status === 425 || status === 499) return undefined;
  const spoken = code !== undefined && code.rank > 2 ? code : (ErrorBody.findByText(body, status) ?? code);
  if (status === 403 && spoken === undefined) return isTokenRefused(headers) ? lookup("invalid_token") : undefined;
  if (spoken?.failure.kind === "server_error" || spoken?.failure.kind === "cancelled") return undefined;
  if (status === 400 || status === 422) return spoken;
  return spoken !== undefined && spoken.rank >= 3 ? spoken : undefined;
};

/**
 * Finds a message about a fault that waiting does not fix (a prompt too long, a server without images). Such a message counts in addition
 * to any code.
 */
const findPermanent = (body: ErrorBody.BodyReading, status: number | undefined): CodeMeaning | undefined => {
  const found = ErrorBody.findByText(body, status);
  return found?.rank === 4 ? found : undefined;
};

/**
 * Derives a failure from an error body alone, for an error inside a stream or a client that lost the status.
 *
 * A code that no table knows is still the provider's error, so it is a `server_error`.
 */
export const classifyBody = (body: ErrorBody.BodyReading, headers: ReadonlyArray<unknown>, nowMs?: number): Failure => {
  if (body.status !== undefined) return classifyStatus(body.status, body, headers, nowMs);
  const weak = body.byCode?.rank === 1 ? ErrorBody.findByText(body, undefined) : undefined;
  const throttled = body.byCode?.rank === 2 ? findPermanent(body, undefined) : undefined;
  const spoken = weak ?? throttled ?? body.byCode ?? ErrorBody.findByText(body, undefined);
  const retryable = shouldRetry(headers);
  const failure: Failure = {
    ...(spoken?.failure ?? { kind: "server_error" }),
    ...(spoken?.not_processed === false ? { not_processed: false } : {}),
    ...(retryable === undefined ? {} : { retryable }),
    ...codeOf(body),
  };
  return withRetryAfter(failure, body, headers, nowMs);
};

/**
 * Adds the code in the response headers to the reading of the body. Bedrock names the exception in `x-amzn-errortype:
 * ThrottlingException:http://…`. If a client did not pass on the body and the content type is HTML or plain text, the body counts as a web
 * page.
 */
export const withHeaderCode = (read: ErrorBody.BodyReading, headers: unknown): ErrorBody.BodyReading => {
  const page =
    read.form === "absent" && /^text\/(?:html|plain)\b/i.test(RetryAfter.readHeader(headers, "content-type") ?? "");
  const body: ErrorBody.BodyReading = page ? { ...read, form: "text" } : read;
  const named = RetryAfter.readHeader(headers, "x-amzn-errortype")?.replace(/:.*$/, "");
  const meaning = named === undefined ? undefined : lookup(named);
  if (named === undefined || meaning === undefined || body.byCode !== undefined) return body;
  return { ...body, form: "schema", carries: true, codes: [named, ...body.codes], byCode: meaning, code: named };
};

/** True if the challenge names an expired or revoked token (RFC 6750, 3.1). */
const isTokenRefused = (headers: ReadonlyArray<unknown>): boolean =>
  headers.some((held) => /\berror="?invalid_token\b/.test(RetryAfter.readHeader(held, "www-authenticate") ?? ""));

/** Reads `x-should-retry` of OpenAI and Anthropic, which their own SDKs check before any status. */
const shouldRetry = (headers: ReadonlyArray<unknown>): boolean | undefined => {
  for (const held of headers) {
    const value = RetryAfter.readHeader(held, "x-should-retry");
    if (value === "true" || value === "false") return value === "true";
  }
  return undefined;
};

/** Returns the provider's code for a failure's fingerprint, if it is a known word. Text of unknown origin is never included. */
export const codeOf = (body: ErrorBody.BodyReading): { readonly code?: string } => {
  const spelt = [body.code, ...body.codes].filter((code) => code !== undefined && !/^\d+$/.test(code));
  const passed = spelt.map(codeLabel).find((code) => code !== undefined);
  return passed === undefined ? {} : { code: passed };
};

/**
 * Adds the wait before a retry. The sources, in order: the headers, the field in the body, the error message (if this kind of failure needs
 * a wait), and the reset time of the rate-limit buckets that a refusal reports as empty.
 */
const withRetryAfter = (
  failure: Failure,
  body: ErrorBody.BodyReading,
  responseHeaders: ReadonlyArray<unknown>,
  nowMs: number | undefined,
): Failure => {
  const headers = body.headers === undefined ? responseHeaders : [...responseHeaders, body.headers];
  const refused = isRefusal(failure, body);
  const buckets = refused ? RateLimits.read(headers, nowMs) : undefined;
  const wait =
    headers.map((held) => RetryAfter.fromHeaders(held, nowMs)).find((found) => found !== undefined) ??
    body.retryAfterMs ??
    (refused || failure.kind === "server_error" ? waitInMessages(body.messages, headers, nowMs) : undefined) ??
    buckets?.resetMs;
  const isPlan = isPlanLimit(failure, body);
  if (wait === undefined && isPlan) return { ...failure, kind: "rejected", reason: "quota" };
  const alone = (wait !== undefined && isPlan) || isAlone(failure, body, buckets, wait);
  return {
    ...failure,
    ...(wait === undefined ? {} : { retry_after_ms: wait }),
    ...(alone ? { only_this: true } : {}),
  };
};

/** Returns the wait that a message names. A date in it is relative to the response's own date. */
const waitInMessages = (
  messages: ReadonlyArray<string>,
  headers: ReadonlyArray<unknown>,
  nowMs: number | undefined,
): number | undefined => {
  const dated = headers.map((held) => RetryAfter.readResponseDate(held, undefined)).find((at) => at !== undefined);
  return messages.map((message) => WaitWords.read(message, dated ?? nowMs)).find((found) => found !== undefined);
};

/**
 * True if the allowance of a subscription plan is used up. The same request may then be refused for hours. Like a quota rejection, this
 * does not delay other runs. A provider that asks for a retry takes precedence, and a server's own failure counts only if its body is JSON.
 */
const isPlanLimit = ({ kind, retryable }: Failure, { codes, form, messages }: ErrorBody.BodyReading): boolean => {
  if (retryable === true || (kind !== "rate_limited" && kind !== "overloaded" && kind !== "server_error")) return false;
  if (kind !== "rate_limited" && form === "text") return false;
  return [...messages, ...codes].some(isPlanLimitText);
};

/** True for a temporary refusal. In any other response, the headers do not announce a wait. */
const isRefusal = ({ kind, status }: Failure, { form }: ErrorBody.BodyReading): boolean =>
  kind === "rate_limited" || kind === "overloaded" || (status === 503 && form === "schema");

/**
 * True if the announced wait applies to this request alone. The failure is then a rate limit without an empty bucket (a shorter request
 * would pass), a request over the provider's size limit, or a rejection, which no wait can fix.
 */
const isAlone = (
  { kind }: Failure,
  body: ErrorBody.BodyReading,
  buckets: RateLimits.Buckets | undefined,
  wait: number | undefined,
): boolean => {
  if (kind === "rejected") return wait !== undefined;
  if (kind !== "rate_limited") return false;
  return (
    (buckets !== undefined && buckets.reported > 0 && buckets.empty === 0) ||
    body.messages.some(RateLimits.isForItsSize)
  );
};
