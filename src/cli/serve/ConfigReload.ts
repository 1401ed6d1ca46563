/**
 * Reloads the configuration when the service receives SIGHUP.
 */
import { Effect, Queue, type Scope } from "effect";
import { fixedChangesIn } from "../../gateway/config/FixedOptions.ts";
import type { GatewayError } from "../../gateway/config/GatewayOptions.ts";
import type { ProgramOptions } from "../../gateway/config/ProgramOptions.ts";
import * as Generation from "./Generation.ts";
import { type Given, readProgram } from "./ServeProgram.ts";

/** A gateway or supervisor that can apply new options to future requests. */
export interface Configured {
  /** @param generation number of the configuration; `Generation.first` is the configuration at the start */
  readonly configure: (program: ProgramOptions, generation: number) => Effect.Effect<unknown, GatewayError>;
}

/** Queues SIGHUPs and merges pending ones into one. Without a listener the signal would end the process. */
export const reloadSignals: Effect.Effect<Queue.Queue<void>, never, Scope.Scope> = Effect.gen(function* () {
  const signals = yield* Queue.sliding<void>(1);
  const ask = () => void Queue.offerUnsafe(signals, undefined);
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGHUP", ask)),
    () => Effect.sync(() => process.off("SIGHUP", ask)),
  );
  return signals;
});

/** Reloads the configuration after each SIGHUP, one at a time. */
export const reloadOnSignal = Effect.fnUntraced(function* (
  signals: Queue.Dequeue<void>,
  given: Given,
  started: ProgramOptions,
  served: Configured,
): Effect.fn.Return<never> {
  for (let generation = Generation.first + 1; ; ) {
    yield* Queue.take(signals);
    if (yield* reload(given, started, served, generation)) generation += 1;
  }
});

/** @returns true if the configuration was accepted */
const reload = Effect.fnUntraced(function* (
  given: Given,
  started: ProgramOptions,
  served: Configured,
  generation: number,
): Effect.fn.Return<boolean> {
  const reject = (why: string) =>
    Effect.as(
      Effect.logError(`the new configuration was rejected, and the previous one stays in effect: ${why}`),
      false,
    );
  const read = yield* readProgram(given);
  if ("wrong" in read) {
    for (const line of read.wrong) yield* reject(line);
    return false;
  }
  const { program, warnings = [] } = read;
  for (const line of warnings) yield* Effect.logWarning(line);
  return yield* served.configure(program, generation).pipe(
    Effect.andThen(Generation.publish(generation)),
    Effect.andThen(
      Effect.suspend(() => {
        const restarts = fixedChangesIn(started, program);
        const said = restarts.length === 0 ? "" : `; these need a restart: ${restarts.join(", ")}`;
        return Effect.as(Effect.logInfo(`the configuration was reloaded${said}`, { generation }), true);
      }),
    ),
    Effect.catchTag("GatewayError", ({ message }) => reject(message)),
  );
});
