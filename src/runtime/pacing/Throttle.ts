/**
 * Protects a broken provider from a retry storm. Every automatic retry takes a token from its provider's bucket.
 *
 * Modelled on gRPC A6 (retry throttling), but refilled by time instead of successes, because a stream takes minutes to succeed.
 */
import type { BucketSize } from "../../recorder/shared/SharedFacts.ts";

/** Maximum retries of one provider that may start at once. */
export const tokensMax = 20;

/** Tokens refilled per second. */
export const tokensPerSecond = 10;

/** Size of the bucket that all processes of a store share, or of the bucket of a process without a shared store. */
export const throttleSize: BucketSize = { max: tokensMax, perSecond: tokensPerSecond };

/** Maximum number of buckets. The least recently used bucket is evicted first. A provider without a bucket starts with a full one. */
export const providersMax = 256;

interface Bucket {
  tokens: number;
  at: number;
}

/** The buckets of one process. */
export class Throttle {
  readonly #buckets = new Map<string, Bucket>();
  readonly #max: number;
  readonly #perSecond: number;

  /** @param size capacity and refill rate of each bucket */
  constructor({ max, perSecond }: BucketSize = throttleSize) {
    this.#max = max;
    this.#perSecond = perSecond;
  }

  /** Returns the milliseconds until `provider` has a token; 0 if it has one now. `now` is in monotonic milliseconds. */
  waitMs(provider: string, now: number): number {
    const { tokens } = this.#bucket(provider, now);
    return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) / this.#perSecond) * 1_000);
  }

  /** Takes a token. An empty bucket goes into debt, so the next retry waits longer. */
  take(provider: string, now: number): void {
    this.#bucket(provider, now).tokens -= 1;
  }

  #bucket(provider: string, now: number): Bucket {
    const found = this.#buckets.get(provider);
    const bucket = found ?? { tokens: this.#max, at: now };
    const came = (Math.max(0, now - bucket.at) / 1_000) * this.#perSecond;
    bucket.tokens = Math.min(this.#max, bucket.tokens + came);
    bucket.at = now;
    this.#buckets.delete(provider);
    this.#buckets.set(provider, bucket);
    if (this.#buckets.size > providersMax) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    return bucket;
  }
}
