/**
 * Tells how long something took, by the clock that nothing sets. A wall clock may jump, so it ends no wait and no lease.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";

/** The machine's own clock, also where a program or a test has put another one in its place. */
export const realClock: Clock.Clock = Clock.Clock.defaultValue();

/** Milliseconds of a clock's monotonic time. */
export const monotonicMs = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6;

/** A disk and another process's lock take real time, even where a test moves the clock of this process. */
export const inRealTime = (ms: number): Effect.Effect<void> =>
  Effect.provideService(Effect.sleep(ms), Clock.Clock, realClock);
