/**
 * Holds the waits of a recovery: each ends at once when somebody stops the run.
 */
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { Run } from "../run/Run.ts";

/** Waits for a place among the provider's unanswered retries, at most until somebody stops the run. */
export const admitted = <P, E, R>(run: Run<P, E, R>): Effect.Effect<void> => {
  const entered = run.shared.gate.enter(run.options.provider.id, (leave) => {
    run.leaveGate = leave;
  });
  return Effect.raceFirst(entered, Deferred.await(run.stopped));
};

/** Waits, at most until somebody stops the run. */
export const waited = <P, E, R>(run: Run<P, E, R>, ms: number): Effect.Effect<void> =>
  ms <= 0 ? Effect.void : Effect.raceFirst(Effect.sleep(Duration.millis(ms)), Deferred.await(run.stopped));
