/**
 * Waits for something that a server, a socket or another process does in its own time.
 *
 * Each wait polls every few milliseconds: a busy loop would take the processor from the process it waits for. No test infers an event
 * from elapsed time; the test's own time limit ends a wait for an event that never comes.
 */
import { Clock, Effect, Schedule } from "effect";
import { realClock } from "../src/recorder/MonotonicTime.ts";

/** One turn of the event loop. */
export const turn = Effect.promise(() => new Promise<void>((next) => setImmediate(next)));

/** Polls every few milliseconds until `look` returns a value. */
export const polled = <A, E, R>(look: Effect.Effect<A | undefined, E, R>): Effect.Effect<A, E, R> =>
  Effect.map(
    Effect.repeat(look, { until: (it) => it !== undefined, schedule: Schedule.spaced("3 millis") }),
    // The repeat ends only with a value; its types do not say so if there is a schedule.
    (found) => found as A,
  );

/** Turns of the event loop after which polling slows down to a few milliseconds. */
const turnsMax = 200;

/** Polls with every turn of the event loop at first, then every few milliseconds. For events of this process or of a store. */
export const found = <A, E, R>(look: Effect.Effect<A | undefined, E, R>): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    for (let turns = 0; turns < turnsMax; turns += 1) {
      const it = yield* look;
      if (it !== undefined) return it;
      yield* turn;
    }
    return yield* Effect.provideService(polled(look), Clock.Clock, realClock);
  });

/** Polls a synchronous look-up in the same way. */
export const eventually = <A>(look: () => A | undefined): Effect.Effect<A> => found(Effect.sync(look));

/** Polls in the same way until a condition holds. */
export const until = (holds: () => boolean): Effect.Effect<void> =>
  Effect.asVoid(eventually(() => (holds() ? true : undefined)));
