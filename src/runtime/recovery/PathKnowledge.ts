/**
 * Finds out how the path of a broken attempt stands before its decision is taken.
 *
 * A connect that failed says nothing by itself: a wrong address fails as a lost network does. So the path is asked, and where this
 * process has never reached it, the record is.
 */
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import type { Failure } from "../../domain/Failure.ts";
import * as TransportCodes from "../../domain/TransportCodes.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { isUnconnected } from "../attempt/Departure.ts";
import type { BrokenAttempt } from "../run/Chain.ts";
import type { Run } from "../run/Run.ts";

/** Most runs of a provider that are read to find one that was answered. */
export const runsReadMax = 20;

/** Longest that the record is waited for, in milliseconds. */
export const recordWaitMs = 2_000;

/**
 * Waits until it is known whether the path is down, where no connection could be made; at most until the run is stopped.
 *
 * @returns what broke, as it stands with that knowledge: what an outage has caused is well once the outage is over, also a name that
 *   does not resolve, and a certificate of somebody who is not the origin
 */
export const onItsPath = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
): Effect.fn.Return<BrokenAttempt<P>> {
  const { failure } = broken;
  const failedThough = run.departure.failedThough;
  run.departure.failsThough(false);
  run.departure.hasWaitedForPath(false);
  if (run.stopper !== undefined || !isUnconnected(failure, broken.facts().delivery)) return broken;
  const { shared } = run;
  // The next request may go another way: what broke says something about its own path only.
  const scope = { ...run.scope, path: broken.attempt.path };
  const stopped = Deferred.await(run.stopped);
  if (!shared.paths.hasReached(scope.path)) yield* Effect.raceFirst(reachedByRecord(run, scope.path), stopped);
  if (isForeign(failure) && !shared.paths.hasReached(scope.path)) return broken;
  yield* Effect.raceFirst(shared.paths.unconnected(scope, failure.code), stopped);
  const { path, returning } = shared.paths.standing(scope, run.budget.max_retry_after_ms);
  const isDown = path === "down" && returning !== true;
  run.departure.failsThough(!isDown);
  // The outage may have ended between the failure and the probe's answer. A second such failure in a row has another cause.
  run.departure.hasWaitedForPath(!isDown && !failedThough && shared.paths.hasReached(scope.path));
  // Where the probe already works again, a portal was left, or a name resolves again, in between.
  const isElsewhere = meaningOf(failure) === "dns" || isForeign(failure);
  const isPassing = isDown || (isElsewhere && shared.paths.hasReached(scope.path));
  return isPassing ? { ...broken, failure: { ...failure, retryable: true } } : broken;
});

const meaningOf = ({ code }: Failure): TransportCodes.TransportMeaning | undefined =>
  code === undefined ? undefined : TransportCodes.lookup(code)?.meaning;

/** Whether a certificate or the TLS before it was not as it has to be. */
const isForeign = (failure: Failure): boolean => meaningOf(failure) === "never";

/** Asks the record once for each path whether a run of this provider was ever answered. */
const reachedByRecord = <P, E, R>({ provider, shared }: Run<P, E, R>, path: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { recorder } = shared;
    if (!recorder.durable || shared.askedOf.has(path)) return Effect.void;
    shared.askedOf.add(path);
    return recorder.runs({ provider: provider.id, limit: runsReadMax }).pipe(
      Effect.timeoutOption(Duration.millis(recordWaitMs)),
      Effect.map(Option.getOrElse((): ReadonlyArray<RunRecord> => [])),
      Effect.match({
        onFailure: () => undefined,
        onSuccess: (runs) => {
          // The list has providers whose name contains this one.
          const own = runs.filter((it) => it.provider.id === provider.id);
          const isAnswered = own.some(({ attempts }) => attempts.some(({ facts }) => facts.delivery === "accepted"));
          if (isAnswered) shared.paths.wasReached(path);
        },
      }),
    );
  });
