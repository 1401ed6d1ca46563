/**
 * Runs code of the caller so that a wait for it can be left at any moment, also where the code cannot be interrupted.
 */
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";

/**
 * Runs an effect in a fiber of its own. A waiter that is interrupted, by a race or a timeout too, interrupts that fiber and
 * does not wait until it has ended (law L11).
 *
 * @param name says whose code it is, where it is no effect: it may be plain JavaScript
 * @param make gives the effect; what it throws is a defect
 */
export const abandonable = <A, E, R>(name: string, make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkDetach(called(name, make), { startImmediately: true }), (fiber) =>
    Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => fiber.interruptUnsafe())),
  );

const called = <A, E, R>(name: string, make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const effect = make();
    return Effect.isEffect(effect) ? effect : Effect.die(new TypeError(`${name}: expected an Effect`));
  });
