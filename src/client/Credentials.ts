/** Reads credentials for every attempt, and renews expired ones once for all runs that need them. */
import { Deferred, Duration, Effect } from "effect";
import type { RequestHeaders } from "./ProviderRequest.ts";

/** Maximum duration of a renewal, in milliseconds. After that the renewal counts as failed, and the next one may begin. */
export const refreshMs = 30_000;

/** Reads and renews the stored credentials. */
export interface CredentialSource<E, R> {
  /** Reads the headers of a request. Run for every attempt. */
  readonly read: Effect.Effect<RequestHeaders, E>;
  /** Obtains new credentials and stores them for the next `read`. */
  readonly refresh: Effect.Effect<unknown, E, R>;
}

/** Shared credentials: a client reads them for each request, and a run renews them. */
export interface Credentials<E, R> {
  /** Reads the headers of a request. Pass it as `ProviderRequest.headers`. */
  readonly headers: Effect.Effect<RequestHeaders, E>;
  /**
   * Renews the credentials. Pass it as `RunOptions.refreshCredentials`. A run waits for it once, after a 401. The next attempt of the run
   * then reads the headers again.
   */
  readonly refreshCredentials: Effect.Effect<unknown, E | CredentialsStalled, R>;
}

/** A renewal took longer than `refreshMs`. */
export class CredentialsStalled extends Error {
  override readonly name = "CredentialsStalled";
}

/**
 * Creates credentials that many runs share. While a renewal is in progress, other runs that need one wait for it, because a renewal often
 * invalidates the previous token. A run that stops does not stop the renewal.
 *
 * @param source effects that read and renew the credentials
 */
export const make = <E, R = never>(source: CredentialSource<E, R>): Credentials<E, R> => {
  type Renewal = Deferred.Deferred<unknown, E | CredentialsStalled>;
  let running: Renewal | undefined;
  const renew = (renewal: Renewal) =>
    source.refresh.pipe(
      Effect.timeoutOrElse({
        duration: Duration.millis(refreshMs),
        orElse: () => Effect.fail(new CredentialsStalled(`The credentials were not renewed within ${refreshMs} ms`)),
      }),
      Effect.onExit((exit) =>
        Effect.sync(() => {
          running = undefined;
          Deferred.doneUnsafe(renewal, exit);
        }),
      ),
    );
  return {
    headers: source.read,
    refreshCredentials: Effect.gen(function* () {
      if (running !== undefined) return yield* Deferred.await(running);
      const renewal: Renewal = Deferred.makeUnsafe();
      running = renewal;
      yield* Effect.forkDetach(Effect.ignoreCause(renew(renewal)), { startImmediately: true });
      return yield* Deferred.await(renewal);
    }),
  };
};
