/**
 * Simulates a machine that sleeps: both the wall clock and the monotonic clock jump, and pending timers fire late.
 */
import type { Clock } from "effect";
import { Effect } from "effect";

/** A clock that can jump. */
export interface SleepingClock extends Clock.Clock {
  /** Advances both clocks, in milliseconds. */
  readonly advance: (ms: number) => void;
}

/** Creates a clock over the machine's own. */
export const make = (inner: Clock.Clock): SleepingClock => {
  let slept = 0;
  const millis = () => inner.currentTimeMillisUnsafe() + slept;
  const nanos = () => inner.currentTimeNanosUnsafe() + BigInt(slept) * 1_000_000n;
  const steady = () => inner.monotonicTimeNanosUnsafe() + BigInt(slept) * 1_000_000n;
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeNanosUnsafe: nanos,
    monotonicTimeNanosUnsafe: steady,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanos: Effect.sync(steady),
    sleep: (duration) => inner.sleep(duration),
    advance: (ms) => {
      slept += ms;
    },
  };
};
