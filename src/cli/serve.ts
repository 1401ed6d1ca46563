/**
 * `stream-recovery serve`: the gateway, in front of any agent whose base URL can be set.
 */
import { Console, Effect, Layer, Option, Queue } from "effect";
import { Command } from "effect/cli";
import { GatewayError, settingsOf } from "../gateway/config/GatewayOptions.ts";
import type { ProgramOptions } from "../gateway/config/ProgramOptions.ts";
import { Gateway } from "../gateway/Gateway.ts";
import { layer } from "../gateway/GatewayLayers.ts";
import * as GatewayLog from "../gateway/log/GatewayLog.ts";
import * as RecoveryPage from "../gateway/page/RecoveryPage.ts";
import { defaultFile } from "../recorder/sql/sqlite/SqlFile.ts";
import { failing } from "./command/CommandFailed.ts";
import * as Signals from "./command/Signals.ts";
import { foreignStore } from "./command/Store.ts";
import { servedText } from "./serve/ServedText.ts";
import { serveFlags } from "./serve/ServeFlags.ts";
import { type Given, programOf } from "./serve/ServeProgram.ts";

const fail = failing("serve");

/** `serve`. */
export const serveCommand = Command.make(
  "serve",
  serveFlags,
  Effect.fn("serve")(function* (given) {
    const read = yield* programOf(given);
    // A configuration is a file that a person mends: its exit code is that of a check.
    const reason = given.check || isConfigured(given) ? "negative" : "refused";
    if ("wrong" in read) return yield* refused(reason, read.wrong);
    const { program } = read;
    const foreign = foreignStore(program.db ?? defaultFile());
    if (foreign !== undefined) return yield* fail(reason, foreign);
    const settings = settingsOf(program);
    if (settings instanceof GatewayError) return yield* fail(reason, settings.message);
    if (given.check) return yield* Console.log(servedText(settings, program));
    yield* Layer.build(layer(program, RecoveryPage.layer)).pipe(
      Effect.flatMap((services) => Effect.provideContext(listening(given, program), services)),
      Effect.scoped,
      Effect.provide(GatewayLog.layer(program.logFormat ?? "text")),
      Effect.catchTags({
        GatewayError: ({ message }) => fail("refused", message),
        ClientConfigError: ({ message }) => fail("refused", message),
        RecorderError: ({ message, reason }) => fail("refused", message === "" ? reason : message),
      }),
    );
  }),
).pipe(
  Command.withDescription(
    "Serve the protocols of OpenAI, Anthropic and Gemini on this machine, and recover model streams that break behind it",
  ),
  Command.withExamples([
    { command: "stream-recovery serve", description: "Then set the agent's base URL to http://127.0.0.1:8787/v1" },
    {
      command: "stream-recovery serve --port 0 --openai-url http://127.0.0.1:11434/v1 --reveal on_complete",
      description: "A local model; the port is the first line",
    },
    {
      command: "stream-recovery serve --config gateway.json --check",
      description: "What a configuration file would serve, or all that is wrong with it (exit code 1)",
    },
  ]),
);

/** An empty variable names no file. */
const isConfigured = ({ config }: Given): boolean => Option.getOrElse(config, () => "") !== "";

/** One line a problem, so that all can be mended at once. */
const refused = (reason: "negative" | "refused", wrong: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [last = "", ...others] = wrong.toReversed();
    for (const line of others.toReversed()) yield* Console.error(`serve: ${line}`);
    return yield* fail(reason, last);
  });

/** Says where, and serves until it is interrupted. A second signal while it drains ends the process at once (`bin.ts`). */
const listening = Effect.fnUntraced(function* (given: Given, program: ProgramOptions) {
  const gateway = yield* Gateway;
  yield* Signals.endsNormally;
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      const left = yield* gateway.serving;
      if (left > 0) yield* Effect.logInfo(`finishing ${left} requests; a second signal ends at once`);
    }),
  );
  // Without a file there are certificates to read again, and a service that is told to reload must not end. A terminal that
  // is closed says so by the same signal, and means the end.
  if (isConfigured(given) || process.stdin.isTTY !== true)
    yield* Effect.forkScoped(rereading(given, program, gateway), { startImmediately: true });
  yield* Console.log(`listening on ${gateway.url}`);
  yield* Signals.deserted;
});

/** Reads the configuration again with each SIGHUP, one at a time. */
const rereading = Effect.fnUntraced(function* (given: Given, started: ProgramOptions, gateway: Gateway["Service"]) {
  const asked = yield* Queue.sliding<void>(1);
  const ask = () => void Queue.offerUnsafe(asked, undefined);
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGHUP", ask)),
    () => Effect.sync(() => process.off("SIGHUP", ask)),
  );
  return yield* Effect.forever(Effect.andThen(Queue.take(asked), reread(given, started, gateway)));
});

const reread = Effect.fnUntraced(function* (given: Given, started: ProgramOptions, gateway: Gateway["Service"]) {
  const read = yield* programOf(given);
  if ("wrong" in read) {
    for (const line of read.wrong)
      yield* Effect.logError(`the configuration is not taken, and the last one stays: ${line}`);
    return;
  }
  const { program } = read;
  yield* gateway.configure(program).pipe(
    Effect.flatMap((fixed) => {
      const restarts = [...fixed, ...fixedIn(started, program)];
      const said = restarts.length === 0 ? "" : `; these need a restart: ${restarts.join(", ")}`;
      return Effect.logInfo(`the configuration was read again${said}`);
    }),
    Effect.catchTag("GatewayError", ({ message }) =>
      Effect.logError(`the configuration is not taken, and the last one stays: ${message}`),
    ),
  );
});

/** What stands behind the gateway was made when it started. */
const fixedIn = (started: ProgramOptions, next: ProgramOptions): ReadonlyArray<string> =>
  (["db", "onQuestion", "holdMs", "leaseMs", "logFormat"] as const).filter((name) => started[name] !== next[name]);
