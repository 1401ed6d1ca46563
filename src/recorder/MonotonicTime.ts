/**
 * Tells how long something took, by the clock that nothing sets. A wall clock may jump, so it ends no wait and no lease.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";

/** The machine's own clock, also where a program or a test has put another one in its place. */
export const realClock: Clock.Clock = Clock.Clock.defaultValue();

/** Milliseconds of a clock's monotonic time. */
export const monotonicMs = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6;

/**
 * Waits for an effect at most so long in real time; then it is interrupted, and not waited for: a server that does not answer does not
 * answer to a cancel either.
 *
 * @returns whether it came to its end
 */
export const endsWithin = <E>(effect: Effect.Effect<unknown, E>, ms: number): Effect.Effect<boolean, E> =>
  Effect.flatMap(Effect.forkDetach(Effect.interruptible(effect), { startImmediately: true }), (fiber) => {
    // It is asked for where a scope closes, which nothing interrupts: the one that loses has to be.
    const ends = Effect.interruptible(Effect.as(Fiber.join(fiber), true));
    const late = Effect.interruptible(Effect.as(inRealTime(ms), false));
    return Effect.ensuring(
      Effect.raceFirst(ends, late),
      Effect.sync(() => fiber.interruptUnsafe()),
    );
  });

/** A disk and another process's lock take real time, even where a test moves the clock of this process. */
export const inRealTime = (ms: number): Effect.Effect<void> =>
  Effect.provideService(Effect.sleep(ms), Clock.Clock, realClock);
