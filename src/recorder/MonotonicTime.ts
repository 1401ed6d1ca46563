/** Measures durations by the monotonic clock. A wall clock may jump, so no timeout or lease depends on wall clocks. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";

/** The machine's own clock, even if a program or a test has replaced `Clock`. */
export const realClock: Clock.Clock = Clock.Clock.defaultValue();

/** Reads a clock's monotonic time, in milliseconds. */
export const monotonicMs = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6;

/**
 * Waits for an effect for at most `ms` of real time, then interrupts it. It does not wait for the interruption, because an unresponsive
 * server does not respond to a cancel either.
 *
 * @returns true if the effect ended in time
 */
export const runWithin = <E>(effect: Effect.Effect<unknown, E>, ms: number): Effect.Effect<boolean, E> =>
  Effect.flatMap(Effect.forkDetach(Effect.interruptible(effect), { startImmediately: true }), (fiber) => {
    // Callers are scope finalizers, which are uninterruptible, but the loser of the race has to be interruptible.
    const ends = Effect.interruptible(Effect.as(Fiber.join(fiber), true));
    const late = Effect.interruptible(Effect.as(sleepRealTime(ms), false));
    return Effect.ensuring(
      Effect.raceFirst(ends, late),
      Effect.sync(() => fiber.interruptUnsafe()),
    );
  });

/** Sleeps in real time. Disks and locks of other processes take real time, even if a test controls this process's clock. */
export const sleepRealTime = (ms: number): Effect.Effect<void> =>
  Effect.provideService(Effect.sleep(ms), Clock.Clock, realClock);
