/**
 * Runs a command's effect in this process and collects its output.
 */
import { Console, Effect, type Exit } from "effect";

/** The outcome of a command. */
export interface Printed<E> {
  readonly stdout: string;
  readonly stderr: string;
  readonly exit: Exit.Exit<void, E>;
}

/** Runs a command. It never fails: the command's exit is part of the result. */
export const printed = <E, R>(command: Effect.Effect<void, E, R>): Effect.Effect<Printed<E>, never, R> =>
  Effect.gen(function* () {
    const out: Array<string> = [];
    const err: Array<string> = [];
    const real = yield* Console.Console;
    const kept: Console.Console = {
      ...real,
      log: (...lines) => void out.push(lines.join(" ")),
      error: (...lines) => void err.push(lines.join(" ")),
    };
    const exit = yield* Effect.exit(Effect.provideService(command, Console.Console, kept));
    return { stdout: out.join("\n"), stderr: err.join("\n"), exit };
  });

/** The exit code that a failure requests, and its message. */
export const failure = <E>({ exit, stderr }: Printed<E>): readonly [string, string] => {
  const error =
    exit._tag === "Failure" ? exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error : undefined;
  const reason = typeof error === "object" && error !== null && "reason" in error ? String(error.reason) : "none";
  return [reason, stderr];
};
