/**
 * A clock over virtual time that can jump, as if the process was frozen or its wall clock was set. Sleeps that were due in the
 * meantime end at once, and late, like the timers of a process that was stopped and continued.
 */
import { type Clock, Deferred, Duration, Effect } from "effect";

export interface FreezingClock extends Clock.Clock {
  /** Advances both clocks in one step, in milliseconds. */
  readonly jump: (wall: number, monotonic: number) => void;
}

/** Start of the wall clock, in milliseconds. */
const epochMs = 1_760_000_000_000;

export const make = (inner: Clock.Clock): FreezingClock => {
  // A wall clock that is set back must still be after 1970.
  let [wall, monotonic] = [epochMs, 0];
  let bell = Deferred.makeUnsafe<void>();
  const millis = () => inner.currentTimeMillisUnsafe() + wall;
  const nanos = () => inner.currentTimeNanosUnsafe() + BigInt(wall) * 1_000_000n;
  const steady = () => inner.monotonicTimeNanosUnsafe() + BigInt(monotonic) * 1_000_000n;
  const until = (end: bigint): Effect.Effect<void> =>
    Effect.suspend(() => {
      const left = end - steady();
      if (left <= 0n) return Effect.void;
      const rest = inner.sleep(Duration.nanos(left));
      return Effect.andThen(Effect.raceFirst(rest, Deferred.await(bell)), () => until(end));
    });
  return {
    currentTimeMillisUnsafe: millis,
    currentTimeNanosUnsafe: nanos,
    monotonicTimeNanosUnsafe: steady,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanos: Effect.sync(steady),
    sleep: (duration) => {
      const nanoseconds = Duration.toNanos(duration);
      return nanoseconds._tag === "None" ? Effect.never : Effect.suspend(() => until(steady() + nanoseconds.value));
    },
    jump: (wallMs, monotonicMs) => {
      wall += wallMs;
      monotonic += monotonicMs;
      const rung = bell;
      bell = Deferred.makeUnsafe<void>();
      Deferred.doneUnsafe(rung, Effect.void);
    },
  };
};
