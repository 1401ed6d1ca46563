/**
 * Waits for running tool handlers: what they did is a fact that nobody should have to guess.
 */
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { Run } from "./Run.ts";

/**
 * Waits until no handler of the run's response runs, at most the drain limit. A stop does not wait, but for a user's
 * cancel: it has interrupted the handlers, and they still say what became of them.
 */
export const drained = <P, E, R>(run: Run<P, E, R>): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { chain } = run;
    if (chain === undefined || chain.running === 0) return Effect.void;
    const { drainMs } = run.shared;
    const limit = drainMs === Number.POSITIVE_INFINITY ? Effect.never : Effect.sleep(Duration.millis(drainMs));
    const stop = Effect.flatMap(Deferred.await(run.stopped), () => (run.userCancelled ? Effect.never : Effect.void));
    return Effect.raceFirst(chain.drained, Effect.raceFirst(limit, stop));
  });
