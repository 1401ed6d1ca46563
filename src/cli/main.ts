/**
 * Puts the commands of `stream-recovery` together. To add one, write its file and name it in `commands`.
 */
import { readFileSync } from "node:fs";
import { NodeRuntime, NodeServices } from "@effect/platform-node";
import { Cause, Effect, Logger, Runtime, Schema } from "effect";
import { CliOutput, Command } from "effect/cli";
import { agentCommand } from "./agent.ts";
import { backtestCommand } from "./backtest.ts";
import * as Signals from "./command/Signals.ts";
import { presenter } from "./command/Usage.ts";
import { conformanceCommand } from "./conformance.ts";
import { decideCommand } from "./decide.ts";
import { demoCommand } from "./demo.ts";
import { faultsCommand } from "./faults.ts";
import { pathsCommand } from "./paths.ts";
import { policyCommand } from "./policy.ts";
import { recoverCommand } from "./recover.ts";
import { runsCommand } from "./runs.ts";
import { serveCommand } from "./serve.ts";

const commands = [
  demoCommand,
  serveCommand,
  runsCommand,
  pathsCommand,
  recoverCommand,
  backtestCommand,
  decideCommand,
  policyCommand,
  faultsCommand,
  conformanceCommand,
  agentCommand,
] as const;

const Manifest = Schema.fromJsonString(Schema.Struct({ version: Schema.String }));

/** The version in the package's own manifest, which stands two folders above sources and build alike. */
const version = (): string =>
  Schema.decodeSync(Manifest)(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;

/** The whole command line: what `start` runs, and what the docs print their tables of commands and flags from. */
export const root = Command.make("stream-recovery").pipe(
  Command.withDescription(
    "Recovers broken LLM streams where facts prove that nothing is duplicated, and asks where not",
  ),
  Command.withSubcommands(commands),
);

/** Runs the command that the process's arguments name, and exits with its code. Logs go to stderr, and stdout holds the result alone. */
export const start = (): void => {
  Signals.watch();
  root.pipe(
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
