/**
 * Keeps a process from storming a broken provider: a token bucket per provider that every automatic retry draws from.
 *
 * After gRPC A6 (retry throttling), with time instead of successes as the refill: a stream takes minutes to succeed.
 */

/** Retries of one provider that may start at once. */
export const tokensMax = 20;

/** Tokens that come back per second. */
export const tokensPerSecond = 10;

/** Providers that are told apart; beyond, the least recently used bucket is forgotten, and is full again. */
export const providersMax = 256;

interface Bucket {
  tokens: number;
  at: number;
}

/** The buckets of one process: its part of those of all processes that share a store. */
export class Throttle {
  readonly #buckets = new Map<string, Bucket>();
  #processes = 1;

  /** So many processes drive runs now. Each has its part, and at least one retry at once. */
  sharedBy(processes: number): void {
    this.#processes = Math.max(1, processes);
  }

  get #max(): number {
    return Math.max(1, tokensMax / this.#processes);
  }

  /** Milliseconds until `provider` has a token; 0 when it has one now. `now` is monotonic milliseconds. */
  waitMs(provider: string, now: number): number {
    const { tokens } = this.#bucket(provider, now);
    return tokens >= 1 ? 0 : Math.ceil(((1 - tokens) / tokensPerSecond) * 1_000 * this.#processes);
  }

  /** Takes a token, ahead of its time where none is there: the next one waits longer. */
  take(provider: string, now: number): void {
    this.#bucket(provider, now).tokens -= 1;
  }

  #bucket(provider: string, now: number): Bucket {
    const found = this.#buckets.get(provider);
    const bucket = found ?? { tokens: this.#max, at: now };
    const came = (Math.max(0, now - bucket.at) / 1_000) * (tokensPerSecond / this.#processes);
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
