/**
 * Handles SIGINT and SIGTERM. The first signal shuts the command down cleanly. A second signal exits at once, and `recover` then finds the
 * recorded runs as after any crash.
 *
 * Commands normally exit with the signal's code. For a server or a view that runs until it is stopped, a signal is the normal end, and a
 * service manager must not report a failure.
 */
import { constants } from "node:os";
import { Cause, Effect, Exit, Runtime, Schedule } from "effect";

const codes = { SIGINT: 128 + constants.signals.SIGINT, SIGTERM: 128 + constants.signals.SIGTERM } as const;

/** Module state, because a process runs only one command. */
let first: keyof typeof codes | undefined;
let isNormalEnd = false;

/** Installs the signal handlers. The first signal also exits at once if nothing else listens for it. */
export const watch = (): void => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      const again = first !== undefined;
      first ??= signal;
      if (again || process.listenerCount(signal) === 1) process.exit(codes[signal]);
    });
  }
};

/** Makes a signal the normal end of the command, so that it exits with 0 after cleanup. */
export const endsNormally: Effect.Effect<void> = Effect.sync(() => {
  isNormalEnd = true;
});

/** Computes the exit code of a finished command. */
export const teardown: Runtime.Teardown = (exit, onExit) => {
  if (Exit.isSuccess(exit) || !Cause.hasInterruptsOnly(exit.cause)) return Runtime.defaultTeardown(exit, onExit);
  return onExit(isNormalEnd && first !== undefined ? 0 : codes[first ?? "SIGINT"]);
};

/** Read at startup: the parent may exit as soon as the server listens, and reading it later would return another process. */
const parent = process.ppid;

/**
 * Completes when npx has exited. A `kill` reaches npx and its shell but not this process, and an orphaned server would keep the port. If
 * the process was not started by npx, this effect never completes.
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
