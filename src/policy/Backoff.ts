/**
 * Says how long to wait before an automatic retry.
 *
 * The wait doubles from 0.5 s to 30 s. Jitter is half of it, so that parallel agents do not retry in lockstep. A provider's own
 * wait comes first.
 */
import { isWaited, waitFor } from "./RetryBudget.ts";
import type { Situation } from "./Situation.ts";

/** First wait of a failure that was processed, or of a request that was not sent, in milliseconds. */
export const baseMs = 500;

/** First wait of a failure that the provider did not process (429, 503, overload), in milliseconds. */
export const notProcessedBaseMs = 2_000;

/** Longest wait that doubling reaches, in milliseconds. */
export const longestMs = 30_000;

/** Doublings after which every base is past `longestMs`: keeps the power finite for any counter. */
const doublingsMax = 16;

/**
 * The wait before a retry, the throttle's wait included.
 *
 * @returns whole milliseconds, with the input's jitter applied
 */
export const delayMs = (s: Situation): number => {
  const d = stepMs(s);
  const retryAfter = s.failure.retry_after_ms;
  const wait = retryAfter === undefined ? d * (0.5 + 0.5 * s.jitter) : retryAfter + s.jitter * d;
  switch (waitFor(s)) {
    case "path":
      // How long it is away is not known: the run goes when it is back, and not before the end of a wait that was announced. What was
      // sent has met a provider that may not be back yet: its retries would be spent in one instant without their backoff.
      return Math.round(Math.max(isWaited(s) ? (retryAfter ?? 0) : wait, s.run.cooldown_ms));
    case "cooldown":
      return Math.round(Math.max(wait, s.run.cooldown_ms));
    default:
      return Math.round(wait + s.run.throttle_wait_ms);
  }
};

/** The step of the doubling, before jitter. */
const stepMs = (s: Situation): number => {
  if (s.facts.delivery === "not_sent") return doubled(baseMs, s.run.not_processed_retries);
  if (s.notProcessed) return doubled(notProcessedBaseMs, s.run.not_processed_retries);
  return doubled(baseMs, s.run.auto_retries);
};

const doubled = (base: number, retries: number): number =>
  Math.min(longestMs, base * 2 ** Math.min(retries, doublingsMax));
