/** Virtual time: everything that a simulation waits for is waited for here, under TestClock. */
import { type Duration, Effect } from "effect";
import { TestClock } from "effect/testing";

/** Waits so many virtual milliseconds; not at all for 0. */
export const pause = (ms: number): Effect.Effect<void> => (ms <= 0 ? Effect.void : Effect.sleep(ms));

/** Lets virtual time pass. */
export const pass = (duration: Duration.Input): Effect.Effect<void> => TestClock.adjust(duration);

/** The clock of a simulation. */
export const layer = TestClock.layer();
