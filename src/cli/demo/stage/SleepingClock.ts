/**
 * A clock of a machine that sleeps: one jump of both clocks, behind which everything that was due is late.
 */
import type { Clock } from "effect";
import { Effect } from "effect";

/** A clock that can jump. */
export interface SleepingClock extends Clock.Clock {
  /** The machine has slept for so many milliseconds. */
  readonly sleeps: (ms: number) => void;
}

/** Makes one over the machine's own clock. */
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
    sleeps: (ms) => {
      slept += ms;
    },
  };
};
