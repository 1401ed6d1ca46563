/**
 * Reads credentials for every attempt and renews them once for all runs that found them expired.
 */
import { Deferred, Duration, Effect } from "effect";
import type { RequestHeaders } from "./ProviderRequest.ts";

/** Longest time that a renewal may take, in milliseconds; after that it has failed, and the next one may begin. */
export const refreshMs = 30_000;

/** Where credentials come from. */
export interface CredentialSource<E, R> {
  /** Reads the headers of a request from the place where the credentials are kept. Run for every attempt. */
  readonly read: Effect.Effect<RequestHeaders, E>;
  /** Puts new credentials into that place. */
  readonly refresh: Effect.Effect<unknown, E, R>;
}

/** How credentials are given to a client and to a run. */
export interface Credentials<E, R> {
  /** For `ProviderRequest.headers`. */
  readonly headers: Effect.Effect<RequestHeaders, E>;
  /** For `RunOptions.refreshCredentials`: after a 401 a run waits for it once, and its next attempt reads again. */
  readonly refreshCredentials: Effect.Effect<unknown, E | CredentialsStalled, R>;
}

/** A renewal took longer than `refreshMs`. */
export class CredentialsStalled extends Error {
  override readonly name = "CredentialsStalled";
}

/**
 * Makes credentials that many runs share. While a renewal runs, every other run that asks for one waits for it, because a
 * renewal often makes the token before it worthless. A run that is stopped leaves the renewal running.
 *
 * @param source how to read and how to renew
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
