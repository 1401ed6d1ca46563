/**
 * Makes the looks for what was missed come when a test wants them: at once or never, while all else takes the time that it takes.
 */
import { Clock, Duration, Effect } from "effect";
import { lookMs } from "../../../src/recorder/shared/SharedFacts.ts";

/** From one look to the next where they come soon, in milliseconds. */
const soonMs = 20;

/** Runs with a clock by which looks come so. */
export const looking =
  (when: "soon" | "never") =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Clock.Clock, (clock) =>
      Effect.provideService(effect, Clock.Clock, {
        currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe(),
        currentTimeMillis: clock.currentTimeMillis,
        currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe(),
        currentTimeNanos: clock.currentTimeNanos,
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
        monotonicTimeNanos: clock.monotonicTimeNanos,
        sleep: (duration) => {
          if (Duration.toMillis(duration) !== lookMs) return clock.sleep(duration);
          return when === "never" ? Effect.never : clock.sleep(Duration.millis(soonMs));
        },
      }),
    );
