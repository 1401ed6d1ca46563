/**
 * Starts the gateway of one process.
 *
 * A store on a server may be unavailable briefly while a machine starts or the server is updated. The start waits for the store, and the
 * process does not listen until then. A permanent error (a wrong password, a missing database) ends the start at once.
 */
import { Clock, type Context, Effect, Exit, Layer, Scope } from "effect";
import type { ClientConfigError } from "../../client/ClientConfig.ts";
import type { GatewayError } from "../../gateway/config/GatewayOptions.ts";
import { type ProgramOptions, storeOf } from "../../gateway/config/ProgramOptions.ts";
import type { Gateway } from "../../gateway/Gateway.ts";
import { layer, type PageServices, type WorkerPlace } from "../../gateway/GatewayLayers.ts";
import * as RecoveryPage from "../../gateway/page/RecoveryPage.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import { failureText, isTransient } from "../../recorder/sql/SqlFailure.ts";
import { isServer } from "../../recorder/store/RunStore.ts";
import type { Refusal } from "./WorkerProcess.ts";

/**
 * Maximum time that a start waits for an unavailable server, in milliseconds. A database restart takes less than this. Waiting also keeps a
 * service manager from counting repeated failed starts.
 */
export const storeWaitMs = 60_000;

/** Pause between two attempts, in milliseconds. An attempt itself waits for a few seconds. */
const storePauseMs = 1_000;

type Services = Context.Context<Gateway | PageServices>;

/**
 * Starts the gateway, which drains and ends with the scope.
 *
 * @param worker identity of this process among several workers
 */
export const startGateway = (
  program: ProgramOptions,
  worker?: WorkerPlace,
): Effect.Effect<Services, GatewayError | ClientConfigError | RecorderError, Scope.Scope> => {
  const once = withSeparateScope(Layer.build(layer(program, RecoveryPage.layer, worker)));
  return isServer(storeOf(program)) ? retryWhileTransient(once) : once;
};

/** Closes the resources of a failed attempt before the next one. */
const withSeparateScope = <A, E>(made: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope);
    return yield* Effect.onExit(Scope.provide(made, scope), (exit) =>
      Exit.isSuccess(exit) ? Effect.void : Scope.close(scope, exit),
    );
  });

/** Retries while the store fails with a transient error. */
export const retryWhileTransient = <A, E, R>(
  once: Effect.Effect<A, E | RecorderError, R>,
): Effect.Effect<A, E | RecorderError, R> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const begunAt = monotonicMs(clock);
    let isTold = false;
    const pauseBeforeRetry = (error: RecorderError) =>
      Effect.gen(function* () {
        const said = `retrying for up to ${storeWaitMs / 1_000} s`;
        if (!isTold) yield* Effect.logWarning(`cannot open the store, ${said}: ${failureText(error)}`);
        isTold = true;
        yield* Effect.sleep(storePauseMs);
      });
    for (;;) {
      const tried = yield* Effect.result(once);
      if (tried._tag === "Success") return tried.success;
      const error = tried.failure;
      if (!(error instanceof RecorderError) || !isTransient(error)) return yield* Effect.fail(error);
      if (monotonicMs(clock) - begunAt >= storeWaitMs) return yield* Effect.fail(error);
      yield* pauseBeforeRetry(error);
    }
  });

/** Describes the error with which a store refuses a start. */
export const describeRefusal = (error: RecorderError): Refusal => {
  const { message, reason } = error;
  if (isTransient(error))
    return { message: `${failureText(error)}. Start again when the store is available`, mayPass: true };
  return { message: message === "" ? reason : message, mayPass: false };
};
