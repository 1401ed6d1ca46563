/**
 * Determines the state of a broken attempt's path before its decision is taken.
 *
 * A failed connect alone is ambiguous, because a wrong address fails like a lost network. So the path is probed. If this process has never
 * reached the path, the record is checked for a run that has.
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

/** Maximum runs of a provider that are read to find one with a response. */
export const runsReadMax = 20;

/** Maximum wait for the record, in milliseconds. */
export const recordWaitMs = 2_000;

/**
 * If the attempt failed without a connection, waits until it is known whether its path is down. A stop of the run ends the wait.
 *
 * @returns the broken attempt. Its failure is retryable if an outage caused it, even for a name that does not resolve or a certificate
 *   that is not the origin's
 */
export const onItsPath = Effect.fnUntraced(function* <P, E, R>(
  run: Run<P, E, R>,
  broken: BrokenAttempt<P>,
): Effect.fn.Return<BrokenAttempt<P>> {
  const { failure } = broken;
  const failedThough = run.departure.hasFailedOnOpenPath;
  run.departure.setFailedOnOpenPath(false);
  run.departure.setWaitedForPath(false);
  if (run.stopper !== undefined || !isUnconnected(failure, broken.facts().delivery)) return broken;
  const { shared } = run;
  // Use the path of this attempt, because the next request may take another path.
  const scope = { ...run.scope, path: broken.attempt.path };
  const stopped = Deferred.await(run.stopped);
  if (!shared.paths.hasReached(scope.path)) {
    const reached = Effect.raceFirst(checkRecord(run, scope.path), stopped);
    yield* run.reads.within(reached, undefined);
  }
  if (isTlsFailure(failure) && !shared.paths.hasReached(scope.path)) return broken;
  yield* Effect.raceFirst(shared.paths.recordConnectFailure(scope, failure.code), stopped);
  const { path, returning } = shared.paths.standing(scope, run.budget.max_retry_after_ms);
  const isDown = path === "down" && returning !== true;
  run.departure.setFailedOnOpenPath(!isDown);
  // The outage may have ended between the failure and the probe's answer. If that happens twice in a row, there is another cause.
  run.departure.setWaitedForPath(!isDown && !failedThough && shared.paths.hasReached(scope.path));
  // If the path works again, the cause was temporary: a captive portal is gone or the name resolves again.
  const isElsewhere = meaningOf(failure) === "dns" || isTlsFailure(failure);
  const isPassing = isDown || (isElsewhere && shared.paths.hasReached(scope.path));
  return isPassing ? { ...broken, failure: { ...failure, retryable: true } } : broken;
});

const meaningOf = ({ code }: Failure): TransportCodes.TransportMeaning | undefined =>
  code === undefined ? undefined : TransportCodes.lookup(code)?.meaning;

/** Returns true if the certificate or the TLS handshake was invalid. */
const isTlsFailure = (failure: Failure): boolean => meaningOf(failure) === "never";

/** Checks the record, once per path, for a run of this provider that got a response. */
const checkRecord = <P, E, R>({ provider, shared }: Run<P, E, R>, path: string): Effect.Effect<void> =>
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
          // The query also finds providers whose name contains this provider's name.
          const own = runs.filter((it) => it.provider.id === provider.id);
          const isAnswered = own.some(({ attempts }) => attempts.some(({ facts }) => facts.delivery === "accepted"));
          if (isAnswered) shared.paths.markReached(path);
        },
      }),
    );
  });
