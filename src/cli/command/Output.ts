/**
 * Prints a command's output, or writes it to the `--out` file.
 */
import { Console, Effect, FileSystem, Option } from "effect";
import { failing } from "./CommandFailed.ts";

/**
 * Prints the output, or writes it to a file and reports that on stderr.
 *
 * @param command the command's name, printed before an error
 * @param text the output, with a trailing line break
 * @param out the file; stdout if none
 */
export const printOrWrite = Effect.fnUntraced(function* (command: string, text: string, out: Option.Option<string>) {
  if (Option.isNone(out)) return yield* Console.log(text.replace(/\n$/, ""));
  const fileSystem = yield* FileSystem.FileSystem;
  yield* Effect.catchTag(fileSystem.writeFileString(out.value, text), "PlatformError", ({ message }) =>
    failing(command)("refused", `cannot write ${out.value}: ${message}`),
  );
  yield* Console.error(`written to ${out.value} (${new TextEncoder().encode(text).length} bytes)`);
});
