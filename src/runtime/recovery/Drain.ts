/**
 * Waits for running tool handlers: what they did is a fact that nobody should have to guess.
 */
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { Run } from "../run/Run.ts";

/**
 * How long a cancelled run waits for handlers that its cancel has interrupted, in milliseconds. A handler that has not ended
 * by then says later what became of its call.
 */
export const cancelGraceMs = 1_000;

/**
 * Waits until no handler of the run's response runs, at most the drain limit. A stop does not wait, but for a user's
 * cancel: it has interrupted the handlers, and they still say what became of them. A close ends that wait too (law L11).
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
