/**
 * The agent's tools: two for the files of one folder, and a shell that begins there.
 *
 * The file tools stay inside of the folder. The shell is no security boundary: a command can do what its user can.
 */
import { Effect, FileSystem, Option, Path, Schema, Stream } from "effect";
import { ChildProcess, ChildProcessSpawner } from "effect/process";
import type { SideEffects, ToolGuard } from "effect-stream-recovery";
import type { ToolDescription } from "./Models.ts";

/** Maximum text that a model is given of a file or a command, in characters. */
const outputCharactersMax = 64 * 1024;

/** Maximum duration of a command. */
const commandTimeout = "60 seconds";

type Verdict = Effect.Success<ReturnType<ToolGuard.Verify>>;

/** A tool, before it is guarded. The inputs are the argument texts of the model. */
export interface Tool extends ToolDescription {
  readonly effect: SideEffects.ToolEffect;
  /** Runs a call. The model reads the message of a failure. */
  readonly run: (input: string) => Effect.Effect<string, { readonly message: string }>;
  /** Looks whether a call that was cut off took effect. It changes nothing. */
  readonly verify: (input: string) => Effect.Effect<Verdict>;
}

/** A call that a tool could not carry out. */
class ToolFailed extends Schema.TaggedError<ToolFailed>()("ToolFailed", {
  reason: Schema.Literals(["outside", "exit_code", "timeout"]),
  message: Schema.String,
}) {}

const unknown = () => Effect.succeed("unknown" as const);
const tool = <I, E extends { readonly message: string }>(definition: {
  readonly name: string;
  readonly description: string;
  readonly effect: SideEffects.ToolEffect;
  readonly input: Schema.Codec<I>;
  readonly run: (input: I) => Effect.Effect<string, E>;
  readonly verify?: (input: I) => Effect.Effect<Verdict, E>;
}): Tool => {
  const { description, effect, input, name, run, verify = unknown } = definition;
  const decode = Schema.decodeEffect(Schema.fromJsonString(input));
  return {
    ...{ name, description, effect },
    parameters: Schema.toJsonSchemaDocument(input).schema,
    run: (text) => Effect.flatMap(decode(text), run),
    verify: (text) => Effect.catch(Effect.flatMap(decode(text), verify), unknown),
  };
};

const inFolder = Schema.String.annotate({ description: "Path relative to your folder" });

/** Makes the tools of a folder, and the folder if it is not there. */
export const make = Effect.fn("Tools.make")(function* (dir: string) {
  const fs = yield* FileSystem.FileSystem;
  const path = yield* Path.Path;
  const { spawn } = yield* ChildProcessSpawner.ChildProcessSpawner;
  yield* fs.makeDirectory(dir, { recursive: true });
  const root = yield* fs.realPath(dir);

  /** Resolves a path and its symbolic links as far as they exist: no existing part of it may lie outside. */
  const inside = Effect.fn("Tools.inside")(function* (name: string) {
    const wanted = path.resolve(root, name);
    let existing = wanted;
    while (Option.isNone(yield* Effect.option(fs.realPath(existing)))) existing = path.dirname(existing);
    const real = yield* fs.realPath(existing);
    if (real !== root && !real.startsWith(root + path.sep))
      return yield* new ToolFailed({ reason: "outside", message: `${name} is outside of your folder` });
    return path.join(real, path.relative(existing, wanted));
  });

  const readFile = tool({
    name: "read_file",
    description: `Reads a text file of your folder, at most ${outputCharactersMax} characters of it.`,
    effect: "read_only",
    input: Schema.Struct({ path: inFolder }),
    run: (input) =>
      inside(input.path).pipe(
        Effect.flatMap((file) => fs.readFileString(file)),
        Effect.map((text) => text.slice(0, outputCharactersMax)),
      ),
  });

  const writeFile = tool({
    name: "write_file",
    description: "Writes a text file of your folder. It replaces what was there, and makes missing folders.",
    effect: "mutating",
    input: Schema.Struct({ path: inFolder, content: Schema.String }),
    run: ({ content, path: name }) =>
      Effect.gen(function* () {
        const file = yield* inside(name);
        yield* fs.makeDirectory(path.dirname(file), { recursive: true });
        // A file that is renamed into its place is never half written.
        const beside = `${file}.${process.pid}.part`;
        yield* fs.writeFileString(beside, content);
        yield* fs.rename(beside, file);
        return `Wrote ${content.length} characters to ${name}.`;
      }),
    verify: ({ content, path: name }) =>
      inside(name).pipe(
        Effect.flatMap((file) => fs.readFileString(file)),
        Effect.map((text) => (text === content ? "it_ran" : "unknown")),
      ),
  });

  const shell = tool({
    name: "shell",
    description: `Runs a command with /bin/sh in your folder, for at most ${commandTimeout}.`,
    // A command may do anything, so nobody can say what repeating it would do.
    effect: "unknown",
    input: Schema.Struct({ command: Schema.String }),
    run: ({ command }) =>
      Effect.gen(function* () {
        const env = { PATH: process.env.PATH, HOME: root };
        const child = yield* spawn(ChildProcess.make("/bin/sh", ["-c", command], { cwd: root, env, stdin: "ignore" }));
        const output = yield* child.all.pipe(
          Stream.decodeText(),
          Stream.runFold(
            () => "",
            (text, more) => (text + more).slice(-outputCharactersMax),
          ),
        );
        const code = yield* child.exitCode;
        if (code === 0) return output || "[no output]";
        return yield* new ToolFailed({ reason: "exit_code", message: `${output}\n[exit code ${code}]` });
      }).pipe(
        // The end of the scope kills the command with everything that it has started.
        Effect.scoped,
        Effect.timeoutOrElse({
          duration: commandTimeout,
          orElse: () => new ToolFailed({ reason: "timeout", message: `[killed after ${commandTimeout}]` }),
        }),
      ),
  });

  return [readFile, writeFile, shell] as const satisfies ReadonlyArray<Tool>;
});
