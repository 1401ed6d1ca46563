/** Virtual time under TestClock, for every wait in a simulation. */
import { type Duration, Effect } from "effect";
import { TestClock } from "effect/testing";

/** Sleeps for some virtual milliseconds; 0 does not yield. */
export const pause = (ms: number): Effect.Effect<void> => (ms <= 0 ? Effect.void : Effect.sleep(ms));

export const pass = (duration: Duration.Input): Effect.Effect<void> => TestClock.adjust(duration);

export const layer = TestClock.layer();
