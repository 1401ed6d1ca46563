/**
 * `stream-recovery serve`: the gateway, in front of any agent whose base URL can be set.
 */
import { Config, Console, Effect, Layer, Option, Redacted } from "effect";
import { Command, Flag } from "effect/cli";
import { keepAliveMsDefault, limitsDefault, upstreamsDefault } from "../gateway/config/GatewayOptions.ts";
import { Gateway } from "../gateway/Gateway.ts";
import { holdMsDefault, layer } from "../gateway/GatewayLayers.ts";
import * as GatewayLog from "../gateway/log/GatewayLog.ts";
import { logFormats } from "../gateway/log/LogLine.ts";
import * as RecoveryPage from "../gateway/page/RecoveryPage.ts";
import { defaultFile } from "../recorder/sql/sqlite/SqlFile.ts";
import { failing } from "./command/CommandFailed.ts";
import * as Signals from "./command/Signals.ts";
import { foreignStore } from "./command/Store.ts";

const fail = failing("serve");

const text = (name: string, variable: string, description: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${description} ($${variable})`),
    Flag.withFallbackConfig(Config.String(variable)),
  );

const number = (name: string, variable: string, otherwise: number, description: string) =>
  Flag.Int(name).pipe(
    Flag.withDescription(`${description} ($${variable}; default ${otherwise})`),
    Flag.withFallbackConfig(Config.Int(variable)),
    Flag.withDefault(otherwise),
  );

const word = <const W extends ReadonlyArray<string>>(name: string, variable: string, words: W, description: string) =>
  Flag.Literals(name, words).pipe(
    Flag.withDescription(`${description} ($${variable})`),
    Flag.withFallbackConfig(Config.Literals(words, variable)),
  );

const upstreams = {
  openai: text(
    "openai-url",
    "STREAM_RECOVERY_OPENAI_URL",
    "Where requests for OpenAI, or a compatible server, go",
  ).pipe(Flag.withDefault(upstreamsDefault.openai)),
  anthropic: text("anthropic-url", "STREAM_RECOVERY_ANTHROPIC_URL", "Where requests for Anthropic go").pipe(
    Flag.withDefault(upstreamsDefault.anthropic),
  ),
  gemini: text("gemini-url", "STREAM_RECOVERY_GEMINI_URL", "Where requests for Gemini go").pipe(
    Flag.withDefault(upstreamsDefault.gemini),
  ),
};

const limits = {
  maxBodyBytes: number(
    "max-body-bytes",
    "STREAM_RECOVERY_MAX_BODY_BYTES",
    limitsDefault.maxBodyBytes,
    "Longest body of a model request, in bytes",
  ),
  maxBodiesBytes: number(
    "max-bodies-bytes",
    "STREAM_RECOVERY_MAX_BODIES_BYTES",
    limitsDefault.maxBodiesBytes,
    "Bodies of all model requests at one time, in bytes",
  ),
  maxPassedBytes: number(
    "max-passed-bytes",
    "STREAM_RECOVERY_MAX_PASSED_BYTES",
    limitsDefault.maxPassedBytes,
    "Longest body of a request that passes through, in bytes",
  ),
  maxHeaderBytes: number(
    "max-header-bytes",
    "STREAM_RECOVERY_MAX_HEADER_BYTES",
    limitsDefault.maxHeaderBytes,
    "Longest head of a request, in bytes",
  ),
  maxConnections: number(
    "max-connections",
    "STREAM_RECOVERY_MAX_CONNECTIONS",
    limitsDefault.maxConnections,
    "Most connections of clients",
  ),
  headMs: number("head-ms", "STREAM_RECOVERY_HEAD_MS", limitsDefault.headMs, "Time to send a head, in ms"),
  requestMs: number(
    "request-ms",
    "STREAM_RECOVERY_REQUEST_MS",
    limitsDefault.requestMs,
    "Time to send a request, in ms",
  ),
  slowClientMs: number(
    "slow-client-ms",
    "STREAM_RECOVERY_SLOW_CLIENT_MS",
    limitsDefault.slowClientMs,
    "A client that takes no byte for so long is given up, in ms",
  ),
  idleConnectionMs: number(
    "idle-connection-ms",
    "STREAM_RECOVERY_IDLE_CONNECTION_MS",
    limitsDefault.idleConnectionMs,
    "A connection without a request is closed after so long, in ms",
  ),
  drainMs: number(
    "drain-ms",
    "STREAM_RECOVERY_DRAIN_MS",
    limitsDefault.drainMs,
    "A shutdown waits so long for what runs, in ms",
  ),
};

const flags = {
  port: number("port", "STREAM_RECOVERY_PORT", 8787, "Port to listen on; 0 takes any free one"),
  host: text("host", "STREAM_RECOVERY_HOST", "Address to listen on; any but this machine's own needs a token").pipe(
    Flag.withDefault("127.0.0.1"),
  ),
  ...upstreams,
  db: text("db", "STREAM_RECOVERY_DB", "SQLite file with the runs, or memory; default the file that `runs` reads").pipe(
    Flag.optional,
  ),
  reveal: word(
    "reveal",
    "STREAM_RECOVERY_REVEAL",
    ["live", "on_complete"],
    "live: text goes out as it comes, calls once they are proven whole; on_complete: nothing goes out before the response is proven whole, so that every break is recovered unseen",
  ).pipe(Flag.withDefault("live" as const)),
  onBreak: word(
    "on-break",
    "STREAM_RECOVERY_ON_BREAK",
    ["abort", "error_event"],
    "A shown response that breaks for good ends as an aborted connection; error_event: with the protocol's own error event before it",
  ).pipe(Flag.withDefault("abort" as const)),
  doneCompletes: Flag.Boolean("done-completes").pipe(
    Flag.withDescription(
      "Take [DONE] for the end of a chat completion also where a server that sends finish_reason never filled it; only for servers that are known to end so ($STREAM_RECOVERY_DONE_COMPLETES)",
    ),
    Flag.withFallbackConfig(Config.Boolean("STREAM_RECOVERY_DONE_COMPLETES")),
    Flag.withDefault(false),
  ),
  onQuestion: word(
    "on-question",
    "STREAM_RECOVERY_ON_QUESTION",
    ["fail", "hold"],
    "fail: what is uncertain stops; hold: the client waits for an answer on the page or by `runs answer`",
  ).pipe(Flag.withDefault("fail" as const)),
  holdMs: number("hold-ms", "STREAM_RECOVERY_HOLD_MS", holdMsDefault, "A held question stops after so long, in ms"),
  token: Flag.Redacted("token").pipe(
    Flag.withDescription(
      "Refuse clients without it (header x-recovery-token, or /t/TOKEN before the path); better in $STREAM_RECOVERY_TOKEN, where other users of this machine do not see it",
    ),
    Flag.withFallbackConfig(Config.Redacted("STREAM_RECOVERY_TOKEN")),
    Flag.optional,
  ),
  allowHost: text(
    "allow-host",
    "STREAM_RECOVERY_ALLOW_HOST",
    "Other names that a request's Host may say, by commas, such as host.docker.internal",
  ).pipe(Flag.withDefault("")),
  keepAliveMs: number(
    "comment-ms",
    "STREAM_RECOVERY_COMMENT_MS",
    keepAliveMsDefault,
    "A waiting client gets a comment every so often, in ms; never one of Gemini",
  ),
  logFormat: word(
    "log-format",
    "STREAM_RECOVERY_LOG_FORMAT",
    logFormats,
    "text: a line an event for a person; json: one for a program",
  ).pipe(Flag.withDefault("text" as const)),
  accessLog: word(
    "access-log",
    "STREAM_RECOVERY_ACCESS_LOG",
    ["on", "off"],
    "A line in the log for every request, at the level Info",
  ).pipe(Flag.withDefault("on" as const)),
  requireStore: Flag.Boolean("require-store").pipe(
    Flag.withDescription(
      "/readyz says 503 while the store takes no writes; without it 200, as requests are served all the same ($STREAM_RECOVERY_REQUIRE_STORE)",
    ),
    Flag.withFallbackConfig(Config.Boolean("STREAM_RECOVERY_REQUIRE_STORE")),
    Flag.withDefault(false),
  ),
  leaseMs: number(
    "lease-ms",
    "STREAM_RECOVERY_LEASE_MS",
    15_000,
    "So long after the death of a gateway its runs are recovered, in ms",
  ),
  ...limits,
};

/** `serve`. */
export const serveCommand = Command.make(
  "serve",
  flags,
  Effect.fn("serve")(function* (given) {
    const { allowHost, db, holdMs, host, keepAliveMs, leaseMs, onBreak, onQuestion, port, reveal, token } = given;
    const { accessLog, anthropic, doneCompletes, gemini, logFormat, openai, requireStore } = given;
    const program = {
      ...{ holdMs, host, keepAliveMs, leaseMs, onBreak, onQuestion, port, reveal },
      upstreams: { openai, anthropic, gemini },
      ...(doneCompletes ? { tolerance: { doneWithoutFinish: true } } : {}),
      limits: limitsOf(given),
      ...{ accessLog: accessLog === "on", requireStore },
      allowedHosts: allowHost.split(",").flatMap((name) => (name.trim() === "" ? [] : [name.trim()])),
      ...(Option.isSome(db) && db.value !== "" ? { db: db.value } : {}),
      ...(Option.isSome(token) && Redacted.value(token.value) !== "" ? { token: Redacted.value(token.value) } : {}),
    };
    const foreign = foreignStore(program.db ?? defaultFile());
    if (foreign !== undefined) return yield* fail("refused", foreign);
    yield* Layer.build(layer(program, RecoveryPage.layer)).pipe(
      Effect.flatMap((services) => Effect.provideContext(listening, services)),
      Effect.scoped,
      Effect.provide(GatewayLog.layer(logFormat)),
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
  ]),
);

const limitsOf = (given: typeof limitsDefault) => ({
  maxBodyBytes: given.maxBodyBytes,
  maxBodiesBytes: given.maxBodiesBytes,
  maxPassedBytes: given.maxPassedBytes,
  maxHeaderBytes: given.maxHeaderBytes,
  maxConnections: given.maxConnections,
  headMs: given.headMs,
  requestMs: given.requestMs,
  slowClientMs: given.slowClientMs,
  idleConnectionMs: given.idleConnectionMs,
  drainMs: given.drainMs,
});

/** Says where, and serves until it is interrupted. A second signal while it drains ends the process at once (`bin.ts`). */
const listening = Effect.gen(function* () {
  const gateway = yield* Gateway;
  yield* Signals.endsNormally;
  yield* Effect.addFinalizer(() =>
    Effect.gen(function* () {
      const left = yield* gateway.serving;
      if (left > 0) yield* Effect.logInfo(`finishing ${left} requests; a second signal ends at once`);
    }),
  );
  yield* Console.log(`listening on ${gateway.url}`);
  yield* Signals.deserted;
});
