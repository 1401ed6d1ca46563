/**
 * Waits of a recovery. Each can be interrupted at any time.
 */
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type { Decision } from "../../domain/Decision.ts";
import { type Departed, goes } from "../attempt/Departure.ts";
import type { Run } from "../run/Run.ts";

/**
 * Waits until the next request of the run may start, or until the run is stopped.
 *
 * A request whose decision waits for its path or a cooldown is released together with the other requests that wait for the same path or
 * cooldown. Every other request needs an open path and a place among the provider's retries that wait for their first part. No request
 * starts before its own wait is over: an announced wait may apply to this request alone, and a provider may still be down when its path
 * works again.
 *
 * @param decision the decision with the wait; absent for a request that a person asked for
 */
export const awaitDeparture = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  decision?: Pick<Decision, "delay_ms" | "wait_for">,
): Effect.fn.Return<Departed> {
  const { departure } = run;
  const from = run.now();
  while (run.stopper === undefined) {
    if (!departure.mayGo) {
      const stopped = Effect.as(Deferred.await(run.stopped), goes);
      const found = yield* Effect.raceFirst(departure.awaitAdmission, stopped);
      if (found._tag === "stays") return found;
    } else if (decision?.wait_for === undefined && !departure.isLetGo) {
      yield* Effect.raceFirst(run.place, Deferred.await(run.stopped));
    }
    const restMs = decision?.wait_for === undefined ? 0 : from + decision.delay_ms - run.now();
    if (restMs > 0) {
      // Frees the place, because other requests need not wait for this run's own delay. After a cooldown the request keeps its place,
      // because it only waits for jitter.
      if (decision?.wait_for === "path") run.onResponse();
      yield* sleepUnlessStopped(run, restMs);
    }
    if (departure.mayGo) return goes;
    run.onResponse();
  }
  return goes;
});

/** Sleeps for a time, or until the run is stopped. */
export const sleepUnlessStopped = <P, E, R>(run: Run<P, E, R>, ms: number): Effect.Effect<void> =>
  ms <= 0 ? Effect.void : Effect.raceFirst(Effect.sleep(Duration.millis(ms)), Deferred.await(run.stopped));

/**
 * Time that a cancelled run waits for its interrupted handlers, in milliseconds. A handler that ends later then reports its outcome late.
 */
export const cancelGraceMs = 1_000;

/**
 * Waits until no handler of the run's response is running, for at most `drainMs`, so that no decision has to guess an outcome. A stop ends
 * the wait. After a user's cancel, interrupted handlers have `cancelGraceMs` to report their outcomes; a close of the processor ends this
 * period (L11).
 */
export const awaitDrain = <P, E, R>(run: Run<P, E, R>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { chain } = run;
    if (chain === undefined || chain.running === 0) return Effect.void;
    const { drainMs } = run.shared;
    const limit = drainMs === Number.POSITIVE_INFINITY ? Effect.never : Effect.sleep(Duration.millis(drainMs));
    const grace = Effect.raceFirst(run.closing, Effect.sleep(Duration.millis(cancelGraceMs)));
    const stop = Effect.flatMap(Deferred.await(run.stopped), () => (run.isUserCancelled ? grace : Effect.void));
    return Effect.raceFirst(chain.awaitDrain, Effect.raceFirst(limit, stop));
  });

/**
 * Runs the caller's code in a detached fiber. An interrupted waiter, for example in a race or a timeout, interrupts that fiber
 * without waiting for it, even if the code is uninterruptible (L11).
 *
 * @param name names the code in the defect if it returns no effect, which plain JavaScript may do
 * @param make returns the effect; an exception is a defect
 */
export const runAbandonable = <A, E, R>(name: string, make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(Effect.forkDetach(invoke(name, make), { startImmediately: true }), (fiber) =>
    Effect.onInterrupt(Fiber.join(fiber), () => Effect.sync(() => fiber.interruptUnsafe())),
  );

const invoke = <A, E, R>(name: string, make: () => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const effect = make();
    return Effect.isEffect(effect) ? effect : Effect.die(new TypeError(`${name}: expected an Effect`));
  });
