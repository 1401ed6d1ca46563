/**
 * Prints what a command made, or writes it to the file that `--out` names.
 */
import { Console, Effect, FileSystem, Option } from "effect";
import { failing } from "./CommandFailed.ts";

/**
 * Prints a text, or writes it to a file and says so on stderr.
 *
 * @param command the command's name, which begins its error
 * @param text ends with a line break
 * @param out the file; none prints
 */
export const printOrWrite = Effect.fnUntraced(function* (command: string, text: string, out: Option.Option<string>) {
  if (Option.isNone(out)) return yield* Console.log(text.replace(/\n$/, ""));
  const fileSystem = yield* FileSystem.FileSystem;
  yield* Effect.catchTag(fileSystem.writeFileString(out.value, text), "PlatformError", ({ message }) =>
    failing(command)("refused", `${out.value} cannot be written: ${message}`),
  );
  yield* Console.error(`written to ${out.value} (${new TextEncoder().encode(text).length} bytes)`);
});
