/**
 * Reads the configuration again when a service is told to reload.
 */
import { Effect, Queue, type Scope } from "effect";
import { fixedIn } from "../../gateway/config/FixedOptions.ts";
import type { GatewayError } from "../../gateway/config/GatewayOptions.ts";
import type { ProgramOptions } from "../../gateway/config/ProgramOptions.ts";
import { type Given, programOf } from "./ServeProgram.ts";

/** What takes other options for the requests that come from then on. */
export interface Configured {
  /** Gives the options that differ and need a restart. */
  readonly configure: (program: ProgramOptions) => Effect.Effect<ReadonlyArray<string>, GatewayError>;
}

/** SIGHUPs that were not acted on yet, as one. It would end the process where nothing listens for it. */
export const asked: Effect.Effect<Queue.Queue<void>, never, Scope.Scope> = Effect.gen(function* () {
  const signals = yield* Queue.sliding<void>(1);
  const ask = () => void Queue.offerUnsafe(signals, undefined);
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGHUP", ask)),
    () => Effect.sync(() => process.off("SIGHUP", ask)),
  );
  return signals;
});

/** Reads the configuration again with each SIGHUP, one at a time. */
export const rereading = (
  signals: Queue.Dequeue<void>,
  given: Given,
  started: ProgramOptions,
  served: Configured,
): Effect.Effect<never> => Effect.forever(Effect.andThen(Queue.take(signals), reread(given, started, served)));

const reread = Effect.fnUntraced(function* (given: Given, started: ProgramOptions, served: Configured) {
  const read = yield* programOf(given);
  if ("wrong" in read) {
    for (const line of read.wrong)
      yield* Effect.logError(`the configuration is not taken, and the last one stays: ${line}`);
    return;
  }
  const { program, warnings = [] } = read;
  for (const line of warnings) yield* Effect.logWarning(line);
  yield* served.configure(program).pipe(
    Effect.flatMap(() => {
      const restarts = fixedIn(started, program);
      const said = restarts.length === 0 ? "" : `; these need a restart: ${restarts.join(", ")}`;
      return Effect.logInfo(`the configuration was read again${said}`);
    }),
    Effect.catchTag("GatewayError", ({ message }) =>
      Effect.logError(`the configuration is not taken, and the last one stays: ${message}`),
    ),
  );
});
