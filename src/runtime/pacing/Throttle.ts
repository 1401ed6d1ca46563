/**
 * Keeps a process from storming a broken provider: a token bucket per provider that every automatic retry draws from.
 *
 * After gRPC A6 (retry throttling), with time instead of successes as the refill: a stream takes minutes to succeed.
 */
import type { BucketSize } from "../../recorder/shared/SharedFacts.ts";

/** Retries of one provider that may start at once. */
export const tokensMax = 20;

/** Tokens that come back per second. */
export const tokensPerSecond = 10;

/** How much a bucket of all processes that share a store holds, or that of a process which shares none. */
export const throttleSize: BucketSize = { max: tokensMax, perSecond: tokensPerSecond };

/** Providers that are told apart; beyond, the least recently used bucket is forgotten, and is full again. */
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

  /** @param size what one bucket holds, and what comes back to it */
  constructor({ max, perSecond }: BucketSize = throttleSize) {
    this.#max = max;
    this.#perSecond = perSecond;
  }

  /** Milliseconds until `provider` has a token; 0 when it has one now. `now` is monotonic milliseconds. */
  waitMs(provider: string, now: number): number {
    const { tokens } = this.#bucket(provider, now);
    return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) / this.#perSecond) * 1_000);
  }

  /** Takes a token, ahead of its time where none is there: the next one waits longer. */
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
