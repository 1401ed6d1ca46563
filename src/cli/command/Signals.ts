/**
 * Says how a signal ends this process. The first one ends the command in order; a second one ends the process at once, and what is
 * on record then is found by `recover`, as after any crash.
 *
 * A signal is an interruption for most commands, and they end with its code. For a server, or a view that runs until it is told
 * to stop, it is the normal end: a service manager must not take it for a failure.
 */
import { constants } from "node:os";
import { Cause, Effect, Exit, Runtime, Schedule } from "effect";

const codes = { SIGINT: 128 + constants.signals.SIGINT, SIGTERM: 128 + constants.signals.SIGTERM } as const;

/** One process has one command and one end, so this is the process's own. */
let first: keyof typeof codes | undefined;
let isNormalEnd = false;

/** Listens for signals; a second one ends the process, and so does the first where nothing else listens for it. */
export const watch = (): void => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      const again = first !== undefined;
      first ??= signal;
      if (again || process.listenerCount(signal) === 1) process.exit(codes[signal]);
    });
  }
};

/** From here on a signal is the command's normal end: the exit code is 0, once everything is closed. */
export const endsNormally: Effect.Effect<void> = Effect.sync(() => {
  isNormalEnd = true;
});

/** The exit code of a command that has ended. */
export const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isSuccess(exit) || !Cause.hasInterruptsOnly(exit.cause)) return Runtime.defaultTeardown(exit, onExit);
  return onExit(isNormalEnd && first !== undefined ? 0 : codes[first ?? "SIGINT"]);
};

/** Taken at the start: one that ends as soon as it has read that the server listens would otherwise never be missed. */
const parent = process.ppid;

/**
 * Ends when npx has gone: a `kill` reaches npx and its shell and no process behind them, and a server that has lost its starter
 * would keep the port. A server that was started in any other way never ends by itself.
 */
export const deserted: Effect.Effect<void> = Effect.suspend(() => {
  if (process.env.npm_command !== "exec") return Effect.never;
  return Effect.asVoid(
    Effect.repeat(Effect.void, {
      schedule: Schedule.spaced("500 millis"),
      while: () => process.ppid === parent,
    }),
  );
});
