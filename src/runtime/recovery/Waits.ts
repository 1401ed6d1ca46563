/**
 * Holds the waits of a recovery: each can be left at any moment.
 */
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type { Decision } from "../../domain/Decision.ts";
import { type Departed, goes } from "../attempt/Departure.ts";
import type { Run } from "../run/Run.ts";

/**
 * Waits until the next request of the run may go, at most until the run is stopped.
 *
 * One that its decision lets wait for its path or for a cooldown goes with the others that wait for it. Any other one needs a place
 * among the provider's retries that wait for their first part, and a path that is open then. None goes before its decision's own wait is
 * over: an announced wait may be about this request alone, and a provider behind a path that is back may not be back yet.
 *
 * @param decision how the request waits; left out for one that a person asks for
 */
export const departed = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  decision?: Pick<Decision, "delay_ms" | "wait_for">,
): Effect.fn.Return<Departed> {
  const { departure } = run;
  const from = run.now();
  while (run.stopper === undefined) {
    if (!departure.mayGo) {
      const stopped = Effect.as(Deferred.await(run.stopped), goes);
      const found = yield* Effect.raceFirst(departure.admitted, stopped);
      if (found._tag === "stays") return found;
    } else if (decision?.wait_for === undefined && !departure.isLetGo) {
      yield* Effect.raceFirst(run.place, Deferred.await(run.stopped));
    }
    const restMs = decision?.wait_for === undefined ? 0 : from + decision.delay_ms - run.now();
    if (restMs > 0) {
      // The others need not wait for this one's own wait. What was let go at the end of a cooldown keeps its place: it waits for jitter.
      if (decision?.wait_for === "path") run.responded();
      yield* waited(run, restMs);
    }
    if (departure.mayGo) return goes;
    run.responded();
  }
  return goes;
});

/** Waits, at most until the run is stopped. */
export const waited = <P, E, R>(run: Run<P, E, R>, ms: number): Effect.Effect<void> =>
  ms <= 0 ? Effect.void : Effect.raceFirst(Effect.sleep(Duration.millis(ms)), Deferred.await(run.stopped));

/**
 * How long a cancelled run waits for handlers that its cancel has interrupted, in milliseconds. A handler that has not ended
 * by then says later what became of its call.
 */
export const cancelGraceMs = 1_000;

/**
 * Waits until no handler of the run's response runs, at most the drain limit: what a handler did is a fact that no decision
 * should have to guess. A stop ends the wait. A user's cancel leaves a grace, because the handlers that it has interrupted still
 * say what became of them; a close ends that grace too (L11).
 */
export const drained = <P, E, R>(run: Run<P, E, R>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { chain } = run;
    if (chain === undefined || chain.running === 0) return Effect.void;
    const { drainMs } = run.shared;
    const limit = drainMs === Number.POSITIVE_INFINITY ? Effect.never : Effect.sleep(Duration.millis(drainMs));
    const grace = Effect.raceFirst(run.closing, Effect.sleep(Duration.millis(cancelGraceMs)));
    const stop = Effect.flatMap(Deferred.await(run.stopped), () => (run.userCancelled ? grace : Effect.void));
    return Effect.raceFirst(chain.drained, Effect.raceFirst(limit, stop));
  });

/**
 * Runs code of the caller in a fiber of its own. A waiter that is interrupted, by a race or a timeout too, interrupts that
 * fiber and does not wait for its end, also where the code cannot be interrupted (L11).
 *
 * @param name names the code in the defect where it gives no effect: it may be plain JavaScript
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
