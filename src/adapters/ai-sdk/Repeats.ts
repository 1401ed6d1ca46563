/**
 * Detects a caller that sends a request again right after it has failed for good.
 *
 * The SDK itself does not retry a failure of this package (`isRetryable` is false, and no `error` part is sent), but a loop around the SDK
 * may. Its retries multiply those of the run, although the loop does not know what was shown and which tools ran.
 */
import { dropOldest } from "../../domain/Limits.ts";
import type { CallOptions } from "./Parts.ts";

/** Time after a failure during which the same request counts as a repeat, in milliseconds. The SDK's own retries wait 2 s and 4 s. */
export const repeatWithinMs = 10_000;

/** Maximum number of remembered requests. The oldest is evicted first. */
export const failuresMax = 64;

/** Remembers the requests that failed recently. Only their digests are kept. */
export class Repeats {
  readonly #failed = new Map<string, number>();

  /** Records that a call has failed for good. */
  recordFailure(params: CallOptions, nowMs: number): void {
    const key = digest(params);
    this.#failed.delete(key);
    this.#failed.set(key, nowMs);
    dropOldest(this.#failed, failuresMax);
  }

  /** Returns the warning for a call that repeats a failed call; undefined for any other call. */
  warning(params: CallOptions, nowMs: number): string | undefined {
    if (this.#failed.size === 0) return undefined;
    const at = this.#failed.get(digest(params));
    if (at === undefined || nowMs - at > repeatWithinMs) return undefined;
    return (
      `This request failed here ${Math.round(nowMs - at)} ms ago and was sent again unchanged. Leave retries to ` +
      "effect-stream-recovery, which knows what was shown and what ran: set maxRetries to 0, omit streamRetries, and " +
      "do not repeat a failed call in a loop. A person may ask again at any time."
    );
  }
}

/** Computes a 32-bit FNV-1a hash of the prompt, plus its length. A collision causes only a needless warning. */
const digest = ({ prompt }: CallOptions): string => {
  const text = JSON.stringify(prompt);
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return `${text.length}.${hash >>> 0}`;
};
