/**
 * Assembles the commands of `stream-recovery`. To add one, write its file and add it to `files`.
 */
import { readFileSync } from "node:fs";
import * as NodeRuntime from "@effect/platform-node/NodeRuntime";
import * as NodeServices from "@effect/platform-node/NodeServices";
import { Cause, Effect, Logger, Runtime, Schema } from "effect";
import { CliOutput, Command } from "effect/cli";
import * as Signals from "./command/Signals.ts";
import { presenter } from "./command/Usage.ts";

/**
 * The commands, in help order. Each is imported only when it is used, because Node reads, compiles and links 550 modules for `runs` alone
 * and 1,150 for all commands.
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

/** Reads the version from the package manifest, which is two folders up from both the sources and the build. */
const version = (): string =>
  Schema.decodeSync(Manifest)(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;

/**
 * Builds the command line. `start` runs it, and the docs generate their tables of commands and flags from it.
 *
 * @param args the arguments. If the first argument names a command, only that command is imported. Otherwise, or if `--completions` is
 *   among the arguments, all commands are imported
 */
export const root = async (args: ReadonlyArray<string>) => {
  const loads = Object.entries(files);
  const isOfAll = args.some((arg) => /^--completions(?:=|$)/.test(arg));
  const named = loads.filter(([name]) => !isOfAll && name === args[0]);
  const commands = await Promise.all((named.length === 0 ? loads : named).map(([, load]) => load()));
  return Command.make("stream-recovery").pipe(
    Command.withDescription(
      "Recovers broken LLM streams if recorded facts prove that nothing is duplicated, and asks otherwise",
    ),
    Command.withSubcommands(commands),
  );
};

/** Runs the command that the process arguments name and exits with its code. Logs go to stderr; stdout holds only the result. */
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
    // By default, runMain would report to stdout, without the logger provided here.
    NodeRuntime.runMain({ disableErrorReporting: true, teardown: Signals.teardown }),
  );
};

/** An unknown command, flag or argument. The error is already on stderr. Invalid input has exit code 2 in every command. */
class BadUsage extends Schema.TaggedError<BadUsage>()("BadUsage", { reason: Schema.Literal("bad_usage") }) {
  override readonly [Runtime.errorExitCode] = 2;
  override readonly [Runtime.errorReported] = false;
}

const report = (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  !Cause.hasInterruptsOnly(cause) && Runtime.getErrorReported(Cause.squash(cause))
    ? Effect.logError(cause)
    : Effect.void;
