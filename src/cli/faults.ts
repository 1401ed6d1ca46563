/**
 * `stream-recovery faults`: serves the fault provider over HTTP.
 */
import { Console, Effect, FileSystem, Option, Path } from "effect";
import { Command, Flag } from "effect/cli";
import { FaultProvider } from "../testing/faults/FaultProvider.ts";
import { FaultScriptError, type FaultScriptInput, parse, scriptBytesMax } from "../testing/script/FaultScript.ts";
import { failing } from "./command/CommandFailed.ts";
import * as Signals from "./command/Signals.ts";

const fail = failing("faults");

const flags = {
  port: Flag.Int("port").pipe(Flag.withDescription("Port to listen on; 0 selects a free port"), Flag.withDefault(0)),
  host: Flag.String("host").pipe(
    Flag.withDescription("Address to listen on; the default accepts only this machine"),
    Flag.withDefault("127.0.0.1"),
  ),
  script: Flag.String("script").pipe(
    Flag.withDescription(
      "JSON file with the responses and their breaks; without it every request gets a healthy response",
    ),
    Flag.optional,
  ),
  log: Flag.Boolean("log").pipe(
    Flag.withDescription("Print a JSON line for each finished request"),
    Flag.withDefault(false),
  ),
};

/** The `faults` command: serves scripted responses in every protocol and breaks them, until it is interrupted. */
export const faultsCommand = Command.make(
  "faults",
  flags,
  Effect.fn("faults")(
    function* ({ host, log, port, script }) {
      const options = Option.isNone(script) ? {} : yield* readScript(script.value);
      const provider = yield* FaultProvider.make({ ...options, host, port });
      yield* Signals.endsNormally;
      yield* Console.log(`listening on ${provider.url}`);
      yield* Effect.raceFirst(log ? printLog(provider) : Effect.never, Signals.deserted);
    },
    Effect.scoped,
    Effect.catchTags({
      FaultScriptError: (error) => fail("refused", error.message),
      FaultListenError: (error) => fail("refused", error.message),
    }),
  ),
).pipe(
  Command.withDescription(
    "Serve scripted provider responses over HTTP and break them: resets, cuts, clean ends without a terminal event, stalls, errors",
  ),
  Command.withExamples([
    { command: "stream-recovery faults", description: "A healthy provider in every protocol" },
    {
      command: "stream-recovery faults --port 4010 --script faults.json --log",
      description:
        'faults.json: {"answers":[{"content":[{"text":5}],"break":{"kind":"rst","at":"event","n":3}},{"content":[{"text":5}]}]}',
    },
    {
      command: "curl -N -X POST http://127.0.0.1:4010/v1/chat/completions -d '{}'",
      description: "Watch the break (also /v1/responses, /v1/messages, /v1beta/models/X:streamGenerateContent)",
    },
  ]),
);

/** Reads a script. Its `raw_file` paths are relative to the script's folder. */
const readScript = Effect.fnUntraced(function* (file: string) {
  const fileSystem = yield* FileSystem.FileSystem;
  const path = yield* Path.Path;
  const unreadableError = (problem: string) =>
    new FaultScriptError({ reason: "unreadable", message: `script: ${problem}` });
  if (!(yield* Effect.orElseSucceed(fileSystem.exists(file), () => false)))
    return yield* unreadableError(`no such file: ${file}`);
  const { size } = yield* Effect.mapError(fileSystem.stat(file), (error) => unreadableError(error.message));
  if (size > scriptBytesMax) return yield* unreadableError(`${file} is longer than ${scriptBytesMax} bytes`);
  const text = yield* Effect.mapError(fileSystem.readFileString(file), (error) => unreadableError(error.message));
  // `parse` validated the text as a script whose defaults are not filled in yet.
  yield* parse(text);
  return { script: JSON.parse(text) as FaultScriptInput, directory: path.dirname(path.resolve(file)) };
});

/** Prints each request once, as soon as its response has ended. */
const printLog = Effect.fnUntraced(function* (provider: FaultProvider["Service"]) {
  const printed = new Set<number>();
  while (true) {
    const ended = yield* provider.until((rows) => {
      const fresh = rows.filter((row) => row.outcome !== "open" && !printed.has(row.number));
      return fresh.length === 0 ? undefined : fresh;
    });
    for (const row of ended) {
      printed.add(row.number);
      yield* Console.log(JSON.stringify(row));
    }
  }
});
