/**
 * Names the flags of `serve` with their variables. A flag wins over its variable, and either over the configuration file: so
 * none has a default here, and its help names the one that holds where nothing else is said.
 */
import { Config } from "effect";
import { Flag } from "effect/cli";
import {
  type GatewayLimits,
  hostDefault,
  keepAliveMsDefault,
  limitsDefault,
  lingerMaxMsDefault,
  maxOutageMsDefault,
  portDefault,
  upstreamsDefault,
} from "../../gateway/config/GatewayOptions.ts";
import { workersMax } from "../../gateway/config/ProgramOptions.ts";
import { holdMsDefault } from "../../gateway/GatewayLayers.ts";
import { retentionDefault } from "../../recorder/retention/Retention.ts";

const text = (name: string, variable: string, description: string, otherwise?: string) =>
  Flag.String(name).pipe(
    Flag.withDescription(`${description} ($${variable}${otherwise === undefined ? "" : `; default ${otherwise}`})`),
    Flag.withFallbackConfig(Config.String(variable)),
    Flag.optional,
  );

const number = (name: string, variable: string, otherwise: number | undefined, description: string) =>
  Flag.Int(name).pipe(
    Flag.withDescription(`${description} ($${variable}${otherwise === undefined ? "" : `; default ${otherwise}`})`),
    Flag.withFallbackConfig(Config.Int(variable)),
    Flag.optional,
  );

const word = <const W extends ReadonlyArray<string>>(name: string, variable: string, words: W, description: string) =>
  Flag.Literals(name, words).pipe(
    Flag.withDescription(`${description} ($${variable})`),
    Flag.withFallbackConfig(Config.Literals(words, variable)),
    Flag.optional,
  );

const yes = (name: string, variable: string, description: string) =>
  Flag.Boolean(name).pipe(
    Flag.withDescription(`${description} ($${variable})`),
    Flag.withFallbackConfig(Config.Boolean(variable)),
    Flag.optional,
  );

const url = (name: keyof typeof upstreamsDefault, whose: string) =>
  text(
    `${name}-url`,
    `STREAM_RECOVERY_${name.toUpperCase()}_URL`,
    `Where requests for ${whose} go`,
    upstreamsDefault[name],
  );

/** A limit's name as a flag and as a variable. */
const limit = (name: keyof GatewayLimits, flag: string, description: string) =>
  number(flag, `STREAM_RECOVERY_${flag.toUpperCase().replaceAll("-", "_")}`, limitsDefault[name], description);

/** The limits. */
export const limitFlags = {
  maxBodyBytes: limit("maxBodyBytes", "max-body-bytes", "Longest body of a model request, in bytes"),
  maxBodiesBytes: limit("maxBodiesBytes", "max-bodies-bytes", "Bodies of all model requests at one time, in bytes"),
  maxPassedBytes: limit(
    "maxPassedBytes",
    "max-passed-bytes",
    "Longest body of a request that passes through, in bytes",
  ),
  maxHeaderBytes: limit("maxHeaderBytes", "max-header-bytes", "Longest head of a request, in bytes"),
  maxConnections: limit("maxConnections", "max-connections", "Most connections of clients"),
  headMs: limit("headMs", "head-ms", "Time to send a head, in ms"),
  requestMs: limit("requestMs", "request-ms", "Time to send a request, in ms"),
  slowClientMs: limit("slowClientMs", "slow-client-ms", "A client that takes no byte for so long is given up, in ms"),
  idleConnectionMs: limit(
    "idleConnectionMs",
    "idle-connection-ms",
    "A connection without a request is closed after so long, in ms",
  ),
  drainMs: limit("drainMs", "drain-ms", "A shutdown waits so long for what runs, in ms"),
};

const where = {
  config: text(
    "config",
    "STREAM_RECOVERY_CONFIG",
    "JSON file with everything below and more: docs/gateway-config.md. SIGHUP reads it again",
  ),
  check: Flag.Boolean("check").pipe(
    Flag.withDescription("Print what would be served, or all that is wrong with it, and end"),
    Flag.withDefault(false),
  ),
  port: number("port", "STREAM_RECOVERY_PORT", portDefault, "Port to listen on; 0 takes any free one"),
  host: text(
    "host",
    "STREAM_RECOVERY_HOST",
    "Address to listen on; any but this machine's own needs a token",
    hostDefault,
  ),
  workers: text(
    "workers",
    "STREAM_RECOVERY_WORKERS",
    `Processes that serve behind the one port, 1 to ${workersMax}, or auto for one a core: docs/gateway-operation.md`,
    "1",
  ),
  tlsCert: text("tls-cert", "STREAM_RECOVERY_TLS_CERT", "File of a certificate and its chain (PEM): listens with TLS"),
  tlsKey: text("tls-key", "STREAM_RECOVERY_TLS_KEY", "File of the certificate's key (PEM)"),
  openai: url("openai", "OpenAI, or a compatible server,"),
  anthropic: url("anthropic", "Anthropic"),
  gemini: url("gemini", "Gemini"),
  db: text(
    "db",
    "STREAM_RECOVERY_DB",
    "SQLite file with the runs, postgres://…, or memory; left out, the store that `runs` reads",
  ),
};

const manner = {
  reveal: word(
    "reveal",
    "STREAM_RECOVERY_REVEAL",
    ["live", "on_complete"],
    "live: text goes out as it comes, calls once they are proven whole; on_complete: nothing goes out before the response is proven whole, so that every break is recovered unseen. Left out, what is best for each client, and live for an unknown one",
  ),
  onBreak: word(
    "on-break",
    "STREAM_RECOVERY_ON_BREAK",
    ["tell", "abort", "as_provider", "error_event"],
    "How a shown response ends that breaks for good. tell: with its protocol's own error event; abort: as a broken body; as_provider: as the provider ended it. error_event is the old name of tell. Left out, what is best for each client, and tell for an unknown one",
  ),
  continueText: word(
    "continue-text",
    "STREAM_RECOVERY_CONTINUE_TEXT",
    ["auto", "ask"],
    "What becomes of a response that breaks behind shown text. auto: the model is asked to go on, and what it says is joined where the seam is proven, which costs the prompt once more; ask: the response breaks, or a person is asked, as where it is left out",
  ),
  doneCompletes: yes(
    "done-completes",
    "STREAM_RECOVERY_DONE_COMPLETES",
    "Take [DONE] for the end of a chat completion also where a server that sends finish_reason never filled it; only for servers that are known to end so",
  ),
  onQuestion: word(
    "on-question",
    "STREAM_RECOVERY_ON_QUESTION",
    ["fail", "hold"],
    "fail: what is uncertain stops, as where it is left out; hold: the client waits for an answer on the page or by `runs answer`",
  ),
  holdMs: number("hold-ms", "STREAM_RECOVERY_HOLD_MS", holdMsDefault, "A held question stops after so long, in ms"),
  holdMaxMs: number(
    "hold-max-ms",
    "STREAM_RECOVERY_HOLD_MAX_MS",
    undefined,
    "A held response is handed over as live after so long, in ms; left out, as long as its client waits",
  ),
  keepAliveMs: number(
    "comment-ms",
    "STREAM_RECOVERY_COMMENT_MS",
    keepAliveMsDefault,
    "A waiting client hears something every so often, in ms",
  ),
  lingerMs: number(
    "linger-ms",
    "STREAM_RECOVERY_LINGER_MS",
    0,
    "A run outlives its client by so long, in ms, so that a client which comes back attaches to it instead of paying again; 0 is off. Every Stop of a user pays for as long",
  ),
  lingerMaxMs: number(
    "linger-max-ms",
    "STREAM_RECOVERY_LINGER_MAX_MS",
    lingerMaxMsDefault,
    "The longest that a request may ask for by x-recovery-linger, in ms",
  ),
};

/** A flag that may be repeated, and whose values may be several by commas. */
const pairs = (name: string, variable: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(`${description} ($${variable})`), Flag.atLeast(0));

const rules = {
  clock: pairs(
    "clock",
    "STREAM_RECOVERY_CLOCK",
    "NAME=MS or NAME=off of a clock: connect (never off), first_progress, idle, silence, attempt, run; repeated, or several by commas",
  ),
  budget: pairs(
    "budget",
    "STREAM_RECOVERY_BUDGET",
    "NAME=NUMBER of what a run may spend, such as max_auto_retries=1; repeated, or several by commas",
  ),
  maxOutageMs: Flag.String("max-outage-ms").pipe(
    Flag.withDescription(
      `All waits of a run for a way to its provider and for announced cooldowns together, in ms, or forever; the same as --budget max_outage_ms=N ($STREAM_RECOVERY_MAX_OUTAGE_MS; default ${maxOutageMsDefault})`,
    ),
    Flag.withMetavar("ms|forever"),
    Flag.withFallbackConfig(Config.String("STREAM_RECOVERY_MAX_OUTAGE_MS")),
    Flag.optional,
  ),
  policy: pairs(
    "policy",
    "STREAM_RECOVERY_POLICY",
    "RULE=ask_user or RULE=do_not_retry, stricter than the default policy; repeated, or several by commas",
  ),
};

/** All flags of `serve`. */
export const serveFlags = {
  ...where,
  ...manner,
  ...rules,
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
  ),
  logFormat: word(
    "log-format",
    "STREAM_RECOVERY_LOG_FORMAT",
    ["text", "json"],
    "text: a line an event for a person, as where it is left out; json: one for a program",
  ),
  accessLog: word(
    "access-log",
    "STREAM_RECOVERY_ACCESS_LOG",
    ["on", "off"],
    "A line in the log for every request, at the level Info; on where it is left out",
  ),
  requireStore: yes(
    "require-store",
    "STREAM_RECOVERY_REQUIRE_STORE",
    "/readyz says 503 while the store takes no writes; without it 200, as requests are served all the same",
  ),
  deliveryLog: yes(
    "delivery-log",
    "STREAM_RECOVERY_DELIVERY_LOG",
    "With PostgreSQL: what clients of lingering runs are sent is logged there for as long as they linger, sealed with a key that only the client holds, so that it may come back to any gateway over the same database",
  ),
  retryEmpty: word(
    "retry-empty",
    "STREAM_RECOVERY_RETRY_EMPTY",
    ["on", "off"],
    "A response with nothing in it is asked for again; on where it is left out",
  ),
  leaseMs: number(
    "lease-ms",
    "STREAM_RECOVERY_LEASE_MS",
    15_000,
    "So long after the death of a gateway its runs are recovered, in ms",
  ),
  keepRuns: text(
    "keep-runs",
    "STREAM_RECOVERY_KEEP_RUNS",
    "How long ended runs are kept, as 30d, 12h or 2w, or forever; a run that has not ended is never forgotten",
    "30d",
  ),
  keepRunsMax: number(
    "keep-runs-max",
    "STREAM_RECOVERY_KEEP_RUNS_MAX",
    retentionDefault.runs,
    "Most ended runs that are kept, those that ended last, and none goes within a minute of its end; with --keep-runs forever all",
  ),
  ...limitFlags,
};
