/**
 * Draws the tokens of retries from the store, so that all processes of it together start no more than one would.
 *
 * Only a response that would be tried again asks, and puts its token back where it is not. A store that is away, or slow, is not waited for:
 * the process then goes by a bucket of its own that holds one token.
 */
import * as Effect from "effect/Effect";
import type { SharedPacing } from "../../recorder/shared/SharedFacts.ts";
import { Throttle, throttleSize, tokensMax, tokensPerSecond } from "./Throttle.ts";

/** Longest that a decision waits for its token, in milliseconds. */
const drawWaitMs = 500;

/** What a process goes by alone: a part of as many as there are tokens, so that each has at least one retry at once. */
const aloneSize = { max: 1, perSecond: tokensPerSecond / tokensMax };

/** Providers of which it is known how long their tokens were taken ahead; beyond, the oldest is forgotten, and asked for again. */
const knownMax = 256;

/** A token of the store that a run holds while it decides. */
export interface Drawn {
  readonly provider: string;
  /** Milliseconds until it may be spent. */
  readonly waitMs: number;
  /** No token was taken: so long is the wait for one known to be. */
  readonly isNone: boolean;
}

/** The throttle of one processor, as the processes of its store share it. */
export class SharedThrottle {
  /** What the process goes by where it shares nothing, or cannot ask now. */
  readonly own: Throttle;
  readonly #pacing: SharedPacing | undefined;
  /** Until when tokens are taken ahead, as the store said last, in monotonic milliseconds. */
  readonly #takenUntil = new Map<string, number>();

  constructor(pacing: SharedPacing | undefined) {
    this.#pacing = pacing;
    this.own = new Throttle(pacing === undefined ? throttleSize : aloneSize);
  }

  /** Whether tokens are drawn from the store. */
  get isShared(): boolean {
    return this.#pacing !== undefined;
  }

  /**
   * Takes a token for a retry.
   *
   * @param maxWaitMs a token that is further away is of no use to the run, and the store is not asked for one
   * @returns undefined where the store does not say: the run goes by `own`
   */
  draw(provider: string, maxWaitMs: number, now: () => number): Effect.Effect<Drawn | undefined> {
    const pacing = this.#pacing;
    if (pacing === undefined) return Effect.undefined;
    return Effect.suspend((): Effect.Effect<Drawn | undefined> => {
      const known = (this.#takenUntil.get(provider) ?? 0) - now();
      if (known > maxWaitMs) return Effect.succeed({ provider, waitMs: Math.ceil(known), isNone: true });
      return Effect.matchCause(Effect.timeout(pacing.draw(provider, 1, throttleSize), drawWaitMs), {
        onFailure: () => undefined,
        onSuccess: (left) => {
          // A recorder may come from another author.
          if (!Number.isFinite(left)) return undefined;
          const waitMs = Math.ceil((Math.max(0, -left) / tokensPerSecond) * 1_000);
          this.#learns(provider, waitMs, now());
          return { provider, waitMs, isNone: false };
        },
      });
    });
  }

  /** The run takes no retry, or one that needs no token: it is there for others again. */
  putBack({ isNone, provider }: Drawn): Effect.Effect<void> {
    if (isNone || this.#pacing === undefined) return Effect.void;
    const back = Effect.ignore(this.#pacing.draw(provider, -1, throttleSize));
    // Nothing of this run waits for it.
    return Effect.asVoid(Effect.forkDetach(Effect.timeoutOption(back, drawWaitMs)));
  }

  /** Remembers what is ahead of its time only: a bucket that has tokens is asked. */
  #learns(provider: string, waitMs: number, now: number): void {
    this.#takenUntil.delete(provider);
    if (waitMs === 0) return;
    this.#takenUntil.set(provider, now + waitMs);
    for (const oldest of this.#takenUntil.keys()) {
      if (this.#takenUntil.size > knownMax) this.#takenUntil.delete(oldest);
      break;
    }
  }
}
