/**
 * Computes the wait before an automatic retry.
 *
 * The wait doubles from 0.5 s to 30 s. Half of it is jitter, so that parallel agents do not retry in lockstep. A wait that the
 * provider announced takes precedence.
 */
import { isWaited, waitFor } from "./RetryBudget.ts";
import type { Situation } from "./Situation.ts";

/** First wait after a request that the provider processed, or that was not sent, in milliseconds. */
export const baseMs = 500;

/** First wait after a request that the provider did not process (429, 503, overload), in milliseconds. */
export const notProcessedBaseMs = 2_000;

/** Maximum wait that doubling reaches, in milliseconds. */
export const longestMs = 30_000;

/** Maximum doublings. With this number every base exceeds `longestMs`, and the power stays finite for any counter. */
const doublingsMax = 16;

/**
 * Computes the wait before a retry, including the throttle's wait.
 *
 * @returns whole milliseconds, with the input's jitter applied
 */
export const delayMs = (s: Situation): number => {
  const d = stepMs(s);
  const retryAfter = s.failure.retry_after_ms;
  const wait = retryAfter === undefined ? d * (0.5 + 0.5 * s.jitter) : retryAfter + s.jitter * d;
  switch (waitFor(s)) {
    case "path":
      // The length of an outage is unknown, so the retry is sent when the path is back, but not before an announced wait ends. A request
      // that was sent also waits for its backoff, because the provider may still be recovering and would fail its retries at once.
      return Math.round(Math.max(isWaited(s) ? (retryAfter ?? 0) : wait, s.run.cooldown_ms));
    case "cooldown":
      return Math.round(Math.max(wait, s.run.cooldown_ms));
    default:
      return Math.round(wait + s.run.throttle_wait_ms);
  }
};

/** Returns the wait of the current doubling, before jitter. */
const stepMs = (s: Situation): number => {
  if (s.facts.delivery === "not_sent") return exponentialDelay(baseMs, s.run.not_processed_retries);
  if (s.notProcessed) return exponentialDelay(notProcessedBaseMs, s.run.not_processed_retries);
  return exponentialDelay(baseMs, s.run.auto_retries);
};

const exponentialDelay = (base: number, retries: number): number =>
  Math.min(longestMs, base * 2 ** Math.min(retries, doublingsMax));
