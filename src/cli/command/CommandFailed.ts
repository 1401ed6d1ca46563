/**
 * Ends a failed command with one line on stderr and the exit code that `--help` documents.
 */
import { Console, Effect, Runtime, Schema } from "effect";

const exitCodes = { negative: 1, refused: 2, store: 3 } as const;

/** The `--help` text for the exit codes of commands that read a store. */
export const exitCodesHelp = [
  "",
  "",
  "  Exit codes:",
  "    0  done",
  "    1  nothing was found, or the result is negative",
  "    2  bad input, or refused",
  "    3  the store cannot be read or written",
].join("\n");

/**
 * A command failed, and the reason is already on stderr. `negative`: nothing was found, or the result is negative. `refused`: the input is
 * invalid, or the command cannot start. `store`: the run store failed.
 */
export class CommandFailed extends Schema.TaggedError<CommandFailed>()("CommandFailed", {
  reason: Schema.Literals(["negative", "refused", "store"]),
  message: Schema.String,
}) {
  override readonly [Runtime.errorExitCode] = exitCodes[this.reason];
  override readonly [Runtime.errorReported] = false;
}

/**
 * Returns a function that prints a message on stderr and fails with the exit code of its reason.
 *
 * @param command the command's name, printed before the message
 */
export const failing =
  (command: string) =>
  (reason: CommandFailed["reason"], message: string): Effect.Effect<never, CommandFailed> =>
    Effect.andThen(Console.error(`${command}: ${message}`), Effect.fail(new CommandFailed({ reason, message })));
