/**
 * Stops with its process: in a killed process no wait ends, so it does nothing that depends on time.
 */
import { Clock, Deferred, Effect } from "effect";

export const mortalClock = (dead: Deferred.Deferred<void>): Effect.Effect<Clock.Clock> =>
  Effect.map(Clock.Clock, (clock) => ({
    ...clock,
    sleep: (duration) =>
      Effect.andThen(
        clock.sleep(duration),
        Effect.suspend(() => (Deferred.isDoneUnsafe(dead) ? Effect.never : Effect.void)),
      ),
  }));
