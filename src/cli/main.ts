/**
 * Puts the commands of `stream-recovery` together. To add one, write its file and name it in `files`.
 */
import { readFileSync } from "node:fs";
import * as NodeRuntime from "@effect/platform-node/NodeRuntime";
import * as NodeServices from "@effect/platform-node/NodeServices";
import { Cause, Effect, Logger, Runtime, Schema } from "effect";
import { CliOutput, Command } from "effect/cli";
import * as Signals from "./command/Signals.ts";
import { presenter } from "./command/Usage.ts";

/**
 * The commands, in the order of the help. Each is loaded when it is named: `runs` alone is 550 modules with what it imports, and
 * all of them are 1,150, each of which a start reads, compiles and links.
 */
const files = {
  demo: async () => (await import("./demo.ts")).demoCommand,
  serve: async () => (await import("./serve.ts")).serveCommand,
  runs: async () => (await import("./runs.ts")).runsCommand,
  paths: async () => (await import("./paths.ts")).pathsCommand,
  recover: async () => (await import("./recover.ts")).recoverCommand,
  backtest: async () => (await import("./backtest.ts")).backtestCommand,
  decide: async () => (await import("./decide.ts")).decideCommand,
  policy: async () => (await import("./policy.ts")).policyCommand,
  faults: async () => (await import("./faults.ts")).faultsCommand,
  conformance: async () => (await import("./conformance.ts")).conformanceCommand,
};

const Manifest = Schema.fromJsonString(Schema.Struct({ version: Schema.String }));

/** The version in the package's own manifest, which stands two folders above sources and build alike. */
const version = (): string =>
  Schema.decodeSync(Manifest)(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;

/**
 * The command line: what `start` runs, and what the docs print their tables of commands and flags from.
 *
 * @param args the arguments; where the first one names a command no other is loaded, and else (help, a name that there is not) all
 *   are. A script of completions is of all commands, wherever it is asked for
 */
export const root = async (args: ReadonlyArray<string>) => {
  const loads = Object.entries(files);
  const isOfAll = args.some((arg) => /^--completions(?:=|$)/.test(arg));
  const named = loads.filter(([name]) => !isOfAll && name === args[0]);
  const commands = await Promise.all((named.length === 0 ? loads : named).map(([, load]) => load()));
  return Command.make("stream-recovery").pipe(
    Command.withDescription(
      "Recovers broken LLM streams where facts prove that nothing is duplicated, and asks where not",
    ),
    Command.withSubcommands(commands),
  );
};

/** Runs the command that the process's arguments name, and exits with its code. Logs go to stderr, and stdout holds the result alone. */
export const start = async (): Promise<void> => {
  Signals.watch();
  const command = await root(process.argv.slice(2));
  command.pipe(
    Command.run({ version: version() }),
    Effect.catchTag("ShowHelp", ({ errors }) =>
      errors.length === 0 ? Effect.void : Effect.fail(new BadUsage({ reason: "bad_usage" })),
    ),
    Effect.provide(NodeServices.layer),
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.tapCause(report),
    Effect.provideService(Logger.LogToStderr, true),
    // runMain would report outside of what is provided here, on stdout.
    NodeRuntime.runMain({ disableErrorReporting: true, teardown: Signals.teardown }),
  );
};

/** A command, flag or argument that there is not; the error stands on stderr. Bad input is exit code 2 everywhere. */
class BadUsage extends Schema.TaggedError<BadUsage>()("BadUsage", { reason: Schema.Literal("bad_usage") }) {
  override readonly [Runtime.errorExitCode] = 2;
  override readonly [Runtime.errorReported] = false;
}

const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  !Cause.hasInterruptsOnly(cause) && Runtime.getErrorReported(Cause.squash(cause))
    ? Effect.logError(cause)
    : Effect.void;
