/**
 * A clock that simulates a machine whose wall clock is wrong.
 */
import { type Clock, Effect } from "effect";

/** A clock with shifted wall time and unshifted monotonic time. */
export class ShiftedClock implements Clock.Clock {
  readonly #clock: Clock.Clock;
  readonly #aheadMs: number;

  constructor(clock: Clock.Clock, aheadMs: number) {
    this.#clock = clock;
    this.#aheadMs = aheadMs;
  }

  currentTimeMillisUnsafe(): number {
    return this.#clock.currentTimeMillisUnsafe() + this.#aheadMs;
  }

  currentTimeNanosUnsafe(): bigint {
    return this.#clock.currentTimeNanosUnsafe() + BigInt(this.#aheadMs) * 1_000_000n;
  }

  monotonicTimeNanosUnsafe(): bigint {
    return this.#clock.monotonicTimeNanosUnsafe();
  }

  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe());
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe());
  readonly monotonicTimeNanos = Effect.sync(() => this.monotonicTimeNanosUnsafe());

  sleep(duration: Parameters<Clock.Clock["sleep"]>[0]): Effect.Effect<void> {
    return this.#clock.sleep(duration);
  }
}
