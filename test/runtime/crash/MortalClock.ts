/**
 * Stands still with its process: a killed process comes to the end of no wait, so that nothing is done by it that only time
 * would bring.
 */
import { Clock, Deferred, Effect } from "effect";

/** The test's clock, whose sleeps never end once the process is dead. */
export const mortalClock = (dead: Deferred.Deferred<void>): Effect.Effect<Clock.Clock> =>
  Effect.map(Clock.Clock, (clock) => ({
    ...clock,
    sleep: (duration) =>
      Effect.andThen(
        clock.sleep(duration),
        Effect.suspend(() => (Deferred.isDoneUnsafe(dead) ? Effect.never : Effect.void)),
      ),
  }));
