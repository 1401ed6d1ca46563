/**
 * A clock over virtual time that can jump: the process was frozen, or its wall clock was set. What was due meanwhile is due
 * at once, and late, as timers of a process are that was stopped and goes on.
 */
import { type Clock, Deferred, Duration, Effect } from "effect";

/** A clock of its own offset. */
export interface FreezingClock extends Clock.Clock {
  /** Lets so many milliseconds pass by either clock in one step. */
  readonly jump: (wall: number, monotonic: number) => void;
}

/** Where the wall clock starts, in milliseconds. */
const epochMs = 1_760_000_000_000;

/** Makes one over another clock. */
export const make = (inner: Clock.Clock): FreezingClock => {
  // A wall clock that is set back must still stand behind 1970.
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
