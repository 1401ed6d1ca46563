/**
 * Ends a command that did not do what it was asked for, with one line on stderr and the exit code that `--help` names.
 */
import { Console, Effect, Runtime, Schema } from "effect";

const exitCodes = { negative: 1, refused: 2, store: 3 } as const;

/** The exit codes of the commands that read a store, as `--help` says them. */
export const exitCodesHelp = [
  "",
  "",
  "  Exit codes:",
  "    0  done",
  "    1  nothing was found, or the result is a no",
  "    2  bad input, or refused",
  "    3  the store cannot be read or written",
].join("\n");

/**
 * A command ended without its result. `negative`: nothing was found, or the outcome is a no. `refused`: what was typed is wrong, or
 * the command cannot start. `store`: the store of runs failed. The reason stands on stderr, in one line.
 */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  reason: Schema.Literals(["negative", "refused", "store"]),
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = exitCodes[this.reason];
  override readonly [Runtime.errorReported] = false;
}

/**
 * Says why, and fails.
 *
 * @param command the command's name, which begins the line
 */
export const failing =
  (command: string) =>
  (reason: CommandFailed["reason"], message: string): Effect.Effect<never, CommandFailed> =>
    Effect.andThen(Console.error(`${command}: ${message}`), Effect.fail(new CommandFailed({ reason, message })));
