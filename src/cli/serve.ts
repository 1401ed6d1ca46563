/**
 * Implements `stream-recovery serve`: the gateway, for any agent with a configurable base URL.
 */
import { Console, Context, Effect, Option } from "effect";
import { Command } from "effect/cli";
import { GatewayError, type GatewaySettings, settingsOf } from "../gateway/config/GatewayOptions.ts";
import { type ProgramOptions, problemOf, storeOf, workersOf } from "../gateway/config/ProgramOptions.ts";
import { Gateway } from "../gateway/Gateway.ts";
import * as GatewayLog from "../gateway/log/GatewayLog.ts";
import { failing } from "./command/CommandFailed.ts";
import * as Signals from "./command/Signals.ts";
import { storeNameProblem } from "./command/Store.ts";
import { reloadOnSignal, reloadSignals } from "./serve/ConfigReload.ts";
import * as Generation from "./serve/Generation.ts";
import { setHeap } from "./serve/HeapSettings.ts";
import { servedText } from "./serve/ServedText.ts";
import { serveFlags } from "./serve/ServeFlags.ts";
import { type Given, readProgram } from "./serve/ServeProgram.ts";
import { describeRefusal, startGateway } from "./serve/Start.ts";
import * as Supervisor from "./serve/Supervisor.ts";
import type { Refusal } from "./serve/WorkerProcess.ts";

const fail = failing("serve");

/** Serves the gateway until a signal ends it. With `--check`, it only checks and describes the configuration. */
export const serveCommand = Command.make(
  "serve",
  serveFlags,
  Effect.fn("serve")(function* (given) {
    const read = yield* readProgram(given);
    // An invalid configuration exits with the same code as a failed check, because a person has to fix the file.
    const reason = given.check || isConfigured(given) ? "negative" : "refused";
    if ("wrong" in read) return yield* failWithProblems(reason, read.wrong);
    const { program, warnings = [] } = read;
    for (const line of warnings) yield* Console.error(`serve: warning: ${line}`);
    const foreign = storeNameProblem(storeOf(program));
    if (foreign !== undefined) return yield* fail(reason, foreign);
    const settings = settingsOf(program);
    if (settings instanceof GatewayError) return yield* fail(reason, settings.message);
    const problem = problemOf(program);
    if (problem !== undefined) return yield* fail(reason, problem);
    if (given.check) return yield* Console.log(servedText(settings, program));
    if (workersOf(program) > 1) return yield* serveWithWorkers(given, program, settings);
    setHeap();
    yield* serveAlone(given, program).pipe(
      Effect.scoped,
      Effect.provide(GatewayLog.layer(program.logFormat ?? "text")),
      Effect.catchTags({
        GatewayError: ({ message }) => fail("refused", message),
        ClientConfigError: ({ message }) => fail("refused", message),
        RecorderError: (error) => failOnRefusal(describeRefusal(error)),
      }),
    );
  }),
).pipe(
  Command.withDescription("Serve all built-in provider protocols on this machine, and recover broken model streams"),
  Command.withExamples([
    {
      command: "stream-recovery serve",
      description: "Start it, then set the agent's base URL to http://127.0.0.1:8787/v1",
    },
    {
      command: "stream-recovery serve --port 0 --openai-url http://127.0.0.1:11434/v1 --reveal on_complete",
      description: "Serve a local model; the first line of output has the port",
    },
    {
      command: "stream-recovery serve --config gateway.json --check",
      description:
        "Check a configuration file: print what it would serve, or everything that is wrong with it (exit code 1)",
    },
  ]),
);

const serveWithWorkers = (given: Given, program: ProgramOptions, settings: GatewaySettings) =>
  Effect.gen(function* () {
    yield* Signals.endsNormally;
    const signals = isReread(given) ? yield* reloadSignals : undefined;
    const supervisor = yield* Supervisor.make(program, settings, workersOf(program));
    if ("reason" in supervisor) return yield* failOnGiveUp(supervisor);
    if (signals !== undefined) yield* Effect.forkScoped(reloadOnSignal(signals, given, program, supervisor));
    yield* Console.log(`listening on ${supervisor.url}`);
    yield* Effect.raceFirst(Effect.flatMap(supervisor.givenUp, failOnGiveUp), Signals.deserted);
  }).pipe(
    Effect.scoped,
    Effect.provide(GatewayLog.layer(program.logFormat ?? "text")),
    Effect.catchTag("GatewayError", ({ message }) => fail("refused", message)),
  );

const failOnGiveUp = ({ message, reason }: Supervisor.GivenUp) =>
  reason === "died" ? fail("negative", message) : failOnRefusal({ message, mayPass: reason === "store" });

/**
 * Exits with a code that tells a service manager if a restart makes sense. A restart can succeed only if the start failed because of the
 * store.
 */
const failOnRefusal = ({ mayPass, message }: Refusal) => fail(mayPass ? "store" : "refused", message);

/**
 * True if SIGHUP reloads the configuration. Without a configuration file there may still be certificates to reload, and a service must
 * survive the signal. In a terminal, the same signal means that the terminal was closed, and the process ends.
 */
const isReread = (given: Given): boolean => isConfigured(given) || process.stdin.isTTY !== true;

/** True if a configuration file is given. An empty variable counts as none. */
const isConfigured = ({ config }: Given): boolean => Option.getOrElse(config, () => "") !== "";

/** Prints one line per problem, so that all can be fixed at once. */
const failWithProblems = (reason: "negative" | "refused", wrong: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [last = "", ...others] = wrong.toReversed();
    for (const line of others.toReversed()) yield* Console.error(`serve: ${line}`);
    return yield* fail(reason, last);
  });

/**
 * Serves from this process until it is interrupted, and prints its address when ready. A second signal while it drains ends the
 * process at once (`bin.ts`).
 */
const serveAlone = Effect.fnUntraced(function* (given: Given, program: ProgramOptions) {
  yield* Signals.endsNormally;
  const signals = isReread(given) ? yield* reloadSignals : undefined;
  yield* Generation.publish(Generation.first);
  const gateway = Context.get(yield* startGateway(program), Gateway);
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      const left = yield* gateway.serving;
      if (left > 0) yield* Effect.logInfo(`finishing ${left} requests; a second signal exits at once`);
    }),
  );
  if (signals !== undefined) yield* Effect.forkScoped(reloadOnSignal(signals, given, program, gateway));
  yield* Console.log(`listening on ${gateway.url}`);
  yield* Signals.deserted;
});
