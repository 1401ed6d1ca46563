/**
 * Describes each option of the gateway and of `serve` once. Everything else derives from these entries: types, the configuration file and
 * its JSON Schema, flags and environment variables, `--check`, validation, the difference between reloadable and restart-only options, and
 * the tables in the docs.
 */
import { type Redacted, Schema } from "effect";
import type { Prices } from "../../domain/Prices.ts";
import type { Budget } from "../../domain/RunFacts.ts";
import type { StricterRules } from "../../policy/RecoveryPolicy.ts";
import type { Family } from "../../provider/protocol/Address.ts";
import { PrefillRule } from "../../provider/seam/Prefills.ts";
import { retentionDefault } from "../../recorder/retention/Retention.ts";
import { leaseMsDefault } from "../../recorder/sql/SqlRunRecorder.ts";
import type { Clocks } from "../../runtime/contract/Clocks.ts";
import type { ClientOverrides } from "../clients/ClientOverrides.ts";
import { certificate, client, continueText, onBreak, reveal, route, token, upstream } from "./ConfigParts.ts";
import { GatewayAddress } from "./GatewayAddress.ts";
import {
  clock,
  custom,
  type Entry,
  entriesOf,
  type Filled,
  type Given,
  integer,
  integerOr,
  limit,
  makeApart,
  type Option,
  text,
  words,
  yesOrNo,
} from "./Option.ts";
import type { RouteLists } from "./RouteSettings.ts";
import type { CertificatePair, UpstreamSettings } from "./UpstreamSettings.ts";

const mebibyte = 1024 * 1024;

/** Limits of a gateway. */
export const limits = {
  maxBodyBytes: limit("Maximum body of a model request", 64 * mebibyte, {
    unit: "bytes",
    from: "Anthropic takes 32 MB, OpenAI 50 MB",
  }),
  maxBodiesBytes: limit("Maximum size of all model request bodies in memory", 1024 * mebibyte, {
    unit: "bytes",
    from: "sixteen bodies of the maximum size",
  }),
  maxPassedBytes: limit("Maximum body of a request that passes through", 1024 * mebibyte, {
    unit: "bytes",
    from: "uploads are larger than model requests and are not kept in memory",
  }),
  maxHeaderBytes: limit("Maximum head of a request", 64 * 1024, {
    unit: "bytes",
    restart: true,
    from: "four times Node's own limit",
  }),
  maxConnections: limit("Maximum client connections", 8192, {
    from: "four times the 2,000 streams that this project's benchmarks run",
  }),
  headMs: limit("Maximum time to send a head", 30_000, { unit: "ms", from: "half of Node's own limit" }),
  requestMs: limit("Maximum time to send a request", 300_000, { unit: "ms", from: "Node's own limit" }),
  slowClientMs: limit("Disconnects a client that has not read for this long while bytes are pending", 300_000, {
    unit: "ms",
    from: "half of the 10 minutes for which SDKs wait for a response",
  }),
  idleConnectionMs: limit("Closes a connection that has had no request for this long", 65_000, {
    unit: "ms",
    from: "longer than the minute after which load balancers close theirs",
  }),
  drainMs: limit("Maximum time that a shutdown waits for requests in flight", 30_000, {
    unit: "ms",
    from: "less than the 45 s that the systemd unit allows",
  }),
};

/** Timeouts of an attempt. */
export const clocks = {
  connect: integer("Until a connection is open (name lookup, proxy, TCP and TLS together; never `off`)", {
    unit: "ms",
    flag: false,
  }),
  first_progress: clock("From the request to the first sign of progress"),
  idle: clock("From one sign of progress to the next"),
  silence: clock("Without a byte, if the provider sends keep-alives"),
  attempt: clock("The whole attempt"),
  run: clock("The whole run, across its attempts"),
} satisfies Record<keyof Clocks | "connect", Option>;

const budgetLimit = (description: string, unit?: "ms") =>
  integer(description, { min: 0, flag: false, ...(unit === undefined ? {} : { unit }) });

/** Retry budget of a run. */
export const budget = {
  max_auto_retries: budgetLimit("Automatic retries, all modes together"),
  max_not_processed: budgetLimit("Retries of requests that were not sent or that the provider did not process"),
  max_after_shown: budgetLimit("Replays after output was shown"),
  max_after_stall: budgetLimit("Replays after a stall"),
  max_elapsed_ms: budgetLimit("Time since the first failure", "ms"),
  max_retry_after_ms: budgetLimit("Maximum Retry-After that a run waits for", "ms"),
  max_moves: budgetLimit("Moves of a run to another route"),
  max_wasted_tokens: budgetLimit(
    "Tokens that the broken responses of a run may cost, including those that a retry would repeat; if omitted, no limit",
  ),
  max_group_retries: budgetLimit(
    "Automatic retries that the runs of a group (`x-recovery-group`) share; if omitted, no limit",
  ),
  max_group_wasted_tokens: budgetLimit(
    "Tokens that the broken responses of a group's runs may cost together; if omitted, no limit",
  ),
  max_outage_ms: integerOr(
    "forever",
    "Total time that a run waits for its path to the provider and for announced cooldowns (or `forever`)",
    'expected whole milliseconds from 0 to 2147483647, or "forever"',
    { min: 0, unit: "ms", default: 600_000, from: "as long as SDKs wait for a response" },
  ),
} satisfies Record<keyof Budget, Option>;

const address = (name: string, of: string, byDefault: string): Option<string, string> & { readonly apart: true } => ({
  ...text(`Base URL for ${of}`, { key: false, flag: `${name}-url`, default: byDefault }),
  apart: true,
});

/** Addresses of the upstreams that need no prefix, one for each family of protocols. */
export const upstreams = {
  openai: address("openai", "OpenAI or a compatible server", "https://api.openai.com/v1"),
  anthropic: address("anthropic", "Anthropic", "https://api.anthropic.com"),
  gemini: address("gemini", "Gemini", "https://generativelanguage.googleapis.com"),
  "code-assist": address(
    "code-assist",
    "Code Assist, which gemini-cli calls for users with a Google account",
    "https://cloudcode-pa.googleapis.com",
  ),
  ollama: address("ollama", "Ollama's own API", "http://127.0.0.1:11434"),
  cohere: address("cohere", "Cohere", "https://api.cohere.com"),
  bedrock: address(
    "bedrock",
    "Amazon Bedrock; the region of a client's signature replaces the one in it",
    "https://bedrock-runtime.us-east-1.amazonaws.com",
  ),
} satisfies Record<Family, Option>;

/** Ways in which a healthy stream of an upstream may differ from its protocol. */
export const tolerance = {
  doneWithoutFinish: yesOrNo(
    "Accepts [DONE] as the end of a chat completion even if no finish_reason arrived from a server that sends the field; only for servers that are known to end this way",
    "switch",
    { key: false, flag: "done-completes", default: false },
  ),
};

/** A token that clients of the gateway send, with its permissions. */
export interface GatewayToken {
  /** Identifies the token in logs and metrics. */
  readonly name: string;
  readonly token: Redacted.Redacted<string>;
  /** Names of the upstreams that the token may use. Default: all. */
  readonly upstreams?: ReadonlyArray<string>;
  /** Requests other than model requests that the token may send to upstreams with their own credential: `METHOD /path` with `*`. */
  readonly paths?: ReadonlyArray<string>;
  /** True if the token may use the page and its API, which show runs and accept answers. */
  readonly page: boolean;
  /** True if the token may read `/metrics`. */
  readonly metrics: boolean;
}

const listNames = (names: ReadonlyArray<string>): string =>
  names.map((name, at) => `${at === 0 ? "" : at === names.length - 1 ? " and " : ", "}\`${name}\``).join("");

const byName = <S extends Schema.Top>(value: S) => Schema.Record(Schema.String, value);

/** Options of the server itself. */
export const server = {
  host: text("Address to listen on; any address other than loopback needs a token", {
    key: "listen.host",
    default: "127.0.0.1",
    restart: true,
  }),
  port: integer("Port to listen on; 0 selects a free port", {
    key: "listen.port",
    min: 0,
    max: 65_535,
    default: 8787,
    restart: true,
  }),
  tls: makeApart<CertificatePair>()("none", "Listens with TLS", certificate, {
    key: "listen.tls",
    restart: "on_or_off",
  }),
  named: makeApart<ReadonlyArray<UpstreamSettings>>()(
    "none",
    `Servers that receive requests, by name. ${listNames(Object.keys(upstreams))} need no prefix; any other name is reached under \`/u/NAME/\``,
    byName(upstream),
    { key: "upstreams" },
  ),
  routes: makeApart<RouteLists>()(
    "none",
    "By upstream name: the routes that a request moves to if that upstream fails, in order",
    byName(Schema.Array(route)),
    {},
  ),
  token: makeApart<string>()(
    "secret",
    "Token that clients must send (header x-recovery-token, or /t/TOKEN before the path). Prefer $STREAM_RECOVERY_TOKEN, which other users of this machine cannot see",
    Schema.String,
    { key: false },
  ),
  tokens: makeApart<ReadonlyArray<GatewayToken>>()(
    "none",
    "Client tokens by name; logs and metrics show the name instead of the token",
    byName(token),
    {},
  ),
  allowedHosts: custom(
    "list",
    "Host names that requests may have in addition to this machine's own, for example host.docker.internal",
    Schema.Array(Schema.String),
    { flag: "allow-host", default: [] },
  ),
  reveal: words(
    "live: text is sent as it arrives, calls once they are proven whole; on_complete: nothing is sent before the response is proven whole, so every break is recovered unseen. If omitted, the best for each client, and live for an unknown one",
    reveal,
  ),
  onBreak: words(
    "End of a response that breaks permanently after a part was shown. tell: its protocol's own error event; abort: a broken body; as_provider: the provider's own end. If omitted, the best for each client, and tell for an unknown one",
    onBreak,
  ),
  continueText: words(
    "A response that breaks after shown text. auto: the model is asked to continue, and its text is joined if the seam is proven, which costs the prompt again; ask: the response breaks, or a person is asked",
    continueText,
    { default: "ask" },
  ),
  prefills: custom(
    "none",
    "Providers that accept a prefill, that is, continue an assistant message at the end of a request; by origin and model (`*` matches any text). Checked before the built-in rules; the first match decides",
    Schema.Array(PrefillRule),
    { default: [] },
  ),
  clients: makeApart<ClientOverrides>()(
    "none",
    "By name: the name of a client in the table, or `unknown`, changes that row; any other name adds a row",
    byName(client),
    {},
  ),
  holdMaxMs: integer("Time after which a held response continues as live (if omitted, as long as its client waits)", {
    min: 0,
    unit: "ms",
  }),
  lingerMs: integer(
    "How long a run continues after its client leaves, so that a returning client attaches to it instead of paying again (0 is off; otherwise you also pay for this time after a user's Stop)",
    { min: 0, unit: "ms", default: 0 },
  ),
  lingerMaxMs: integer("Maximum that a request may set in `x-recovery-linger`", {
    unit: "ms",
    default: 600_000,
    from: "as long as SDKs wait for a response",
  }),
  keepAliveMs: integer("Time between comments or events for a waiting client", {
    key: "comment_ms",
    flag: "comment-ms",
    unit: "ms",
    default: 15_000,
    from: "less than the 30 s after which some proxies disconnect",
  }),
  policy: custom<StricterRules>(
    "pairs",
    "By rule: `ask_user` or `do_not_retry`, if that is stricter than the action of the default policy (as a flag: RULE=ACTION)",
    // `problemsOfPolicy` checks each rule and action against the policy.
    byName(Schema.Literals(["ask_user", "do_not_retry"])) as unknown as Schema.Codec<StricterRules, unknown>,
  ),
  advertise: text(
    "Address at which other gateways over the same store reach this process, for example https://gateway-1.internal:8787. The client of a lingering run may then return to any gateway that has one. https, or http to a loopback address; never a load balancer's",
    { schema: GatewayAddress, restart: true },
  ),
  accessLog: yesOrNo("Logs a line for every request, at level Info", "on_off", {
    key: "log.access",
    flag: "access-log",
    default: true,
  }),
  requireStore: yesOrNo("Answers `/readyz` and every model request with 503 while the store is unavailable", "switch", {
    default: false,
  }),
  retryEmpty: yesOrNo("Requests an empty response again", "on_off", { default: true }),
};

const dollars = (description: string) =>
  Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ description });

/** Maximum number of worker processes. It exceeds the number of cores of any usual machine. */
export const workersMax = 128;

/** Options of the store, questions, log and processes. They are read only at the start. */
export const program = {
  db: text(
    "SQLite file with the runs, `postgres://…`, or `memory`; if omitted, the file that `stream-recovery runs` reads: `stream-recovery/runs.db` in the user's state folder",
    {
      restart: true,
    },
  ),
  stateDir: text(
    "Folder for records that a stopping gateway cannot write to its store; the next start writes them (if omitted, the folder of the SQLite file, or the user's state folder)",
    { restart: true },
  ),
  onQuestion: words(
    "fail: an uncertain run stops; hold: its client waits for an answer on the page or by `runs answer`",
    ["fail", "hold"],
    { default: "fail", restart: true },
  ),
  holdMs: integer("Time after which an unanswered question stops its run", {
    unit: "ms",
    default: 600_000,
    restart: true,
    from: "as long as SDKs wait for a response",
  }),
  keepRuns: text(
    "How long ended runs are kept, for example 30d, 12h or 2w, or forever; a run that has not ended is never deleted",
    {
      schema: Schema.String.check(
        Schema.isPattern(/^(?:\d{1,6}[smhdw]|forever)$/, {
          message: "expected a duration, for example 30d, 12h or 2w, or forever",
        }),
      ),
      default: "30d",
      restart: true,
    },
  ),
  keepRunsMax: integer(
    "Maximum ended runs that are kept; the newest stay. No run is deleted within a minute of its end, and none at all with `forever`",
    { min: 0, default: retentionDefault.runs, restart: true },
  ),
  leaseMs: integer("Time without a heartbeat after which a gateway's runs are recovered", {
    unit: "ms",
    default: leaseMsDefault,
    restart: true,
  }),
  logFormat: words("text: one line per event, for people; json: one line per event, for programs", ["text", "json"], {
    key: "log.format",
    flag: "log-format",
    default: "text",
    restart: true,
  }),
  prices: custom<Prices>(
    "none",
    "By model, or by the beginning of its name followed by `*`: the prices for the page, the metrics and `runs list`",
    byName(
      Schema.Struct({
        input: dollars("Price of a million request tokens, in US dollars"),
        output: dollars("Price of a million response tokens, in US dollars"),
      }),
    ),
    { restart: true },
  ),
  workers: integerOr(
    "auto",
    "Processes that share the port, or auto for one per core: docs/gateway-operation.md",
    `expected 1 to ${workersMax}, or auto`,
    { min: 1, max: workersMax, default: 1, restart: true },
  ),
};

/**
 * Groups of options, by the key that they have in common in the file and in programs. `pairs` is the flag that accepts them as
 * `NAME=VALUE`.
 */
export const groups: Readonly<Record<string, { readonly description: string; readonly pairs?: string }>> = {
  listen: { description: "The address that it listens on" },
  clocks: {
    description: "Clocks of an attempt, in ms, or `off`",
    pairs: "clock",
  },
  budget: { description: "Retry budget of a run", pairs: "budget" },
  limits: { description: "Limits: sizes in bytes, times in ms" },
  log: { description: "The log's content and format" },
};

/** The options of a gateway, without those of its program. */
export const gatewayEntries: ReadonlyArray<Entry> = [
  ...entriesOf(server),
  ...entriesOf(upstreams, "upstreams"),
  ...entriesOf(tolerance, "tolerance"),
  ...entriesOf(clocks, "clocks"),
  ...entriesOf(budget, "budget"),
  ...entriesOf(limits, "limits"),
];

/** All options. */
export const entries: ReadonlyArray<Entry> = [...gatewayEntries, ...entriesOf(program)];

/** Returns the defaults of a table by option name. */
export const defaultsOf = <T extends Readonly<Record<string, Option>>>(table: T): Filled<T> =>
  // `Filled` derives the type of each option from its entry's default, so the cast is safe.
  Object.fromEntries(Object.entries(table).map(([name, entry]) => [name, entry.default])) as Filled<T>;

/** Limits of a gateway. Times are in milliseconds, sizes in bytes. */
export interface GatewayLimits extends Required<Given<typeof limits>> {}

/** Limits of a gateway whose configuration names none. */
export const limitsDefault: GatewayLimits = defaultsOf(limits);

/** Options of a `serve` command without flags, variables and configuration. */
export const programDefaults: Filled<typeof program> = defaultsOf(program);

/** The name of an upstream that needs no prefix. */
export type UpstreamName = keyof typeof upstreams;

/** Base addresses of the upstreams that need no prefix, in the form in which a client of the provider configures them. */
export type Upstreams = Readonly<Record<UpstreamName, string>>;

/** The providers' own addresses, which are also the defaults of their SDKs. */
export const upstreamsDefault: Upstreams =
  // Every entry of the table has a text as its default.
  Object.fromEntries(Object.entries(upstreams).map(([name, entry]) => [name, entry.default])) as unknown as Upstreams;
