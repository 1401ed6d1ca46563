/**
 * Waits for what a server, a socket or another process does in its own time.
 *
 * Who waits asks again every few milliseconds: a loop without a pause takes the processor from the very process that it waits for. Nothing is
 * taken to have happened because time has passed; the test's own limit ends what never comes.
 */
import { Clock, Effect, Schedule } from "effect";
import { realClock } from "../src/recorder/MonotonicTime.ts";

/** One turn of the event loop. */
export const turn = Effect.promise(() => new Promise<void>((next) => setImmediate(next)));

/** Looks every few milliseconds until something is there. */
export const polled = <A, E, R>(look: Effect.Effect<A | undefined, E, R>): Effect.Effect<A, E, R> =>
  Effect.map(
    Effect.repeat(look, { until: (it) => it !== undefined, schedule: Schedule.spaced("3 millis") }),
    // What ends the looks is there; the types of repeat do not say so where there is a schedule.
    (found) => found as A,
  );

/** Turns of the event loop within which most of what is waited for in this process has come. */
const turnsMax = 200;

/** Waits for something of this process: it is looked for with every turn of the event loop for a moment, and every few milliseconds then. */
export const eventually = <A>(look: () => A | undefined): Effect.Effect<A> =>
  Effect.gen(function* () {
    for (let turns = 0; turns < turnsMax; turns += 1) {
      const found = look();
      if (found !== undefined) return found;
      yield* turn;
    }
    return yield* Effect.provideService(polled(Effect.sync(look)), Clock.Clock, realClock);
  });
