/**
 * Describes each option of the gateway and of `serve` once. Types, the configuration file and its JSON Schema, flags and
 * environment variables, `--check`, validation, the split into reloadable and restart-only options, and the tables in the docs
 * derive from these entries.
 */
import { type Redacted, Schema } from "effect";
import type { Prices } from "../../domain/Prices.ts";
import type { Budget } from "../../domain/RunFacts.ts";
import type { StricterRules } from "../../policy/RecoveryPolicy.ts";
import { PrefillRule } from "../../provider/seam/Prefills.ts";
import { retentionDefault } from "../../recorder/retention/Retention.ts";
import { leaseMsDefault } from "../../recorder/sql/SqlRunRecorder.ts";
import type { Clocks } from "../../runtime/contract/Clocks.ts";
import type { ClientOverrides } from "../clients/ClientOverrides.ts";
import { certificate, client, continueText, onBreak, reveal, route, token, upstream } from "./ConfigParts.ts";
import { GatewayAddress } from "./GatewayAddress.ts";
import {
  apart,
  clock,
  type Entry,
  entriesOf,
  type Filled,
  type Given,
  integer,
  integerOr,
  limit,
  type Option,
  shaped,
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
  maxBodiesBytes: limit("Maximum bodies of all model requests together", 1024 * mebibyte, {
    unit: "bytes",
    from: "sixteen of the largest bodies",
  }),
  maxPassedBytes: limit("Maximum body of a request that passes through", 1024 * mebibyte, {
    unit: "bytes",
    from: "uploads are larger than model requests, and are not kept",
  }),
  maxHeaderBytes: limit("Maximum head of a request", 64 * 1024, {
    unit: "bytes",
    restart: true,
    from: "four times Node's own limit",
  }),
  maxConnections: limit("Maximum connections of clients", 8192, {
    from: "four times the 2,000 streams that this project measures",
  }),
  headMs: limit("Maximum time to send a head", 30_000, { unit: "ms", from: "half of Node's own limit" }),
  requestMs: limit("Maximum time to send a request", 300_000, { unit: "ms", from: "Node's own limit" }),
  slowClientMs: limit("Disconnects a client that has not read for this long while bytes are pending", 300_000, {
    unit: "ms",
    from: "SDKs wait 10 minutes for a response, so a client that reads nothing for 5 is gone",
  }),
  idleConnectionMs: limit("Closes a connection that has had no request for this long", 65_000, {
    unit: "ms",
    from: "longer than the minute after which load balancers close theirs",
  }),
  drainMs: limit("Maximum time that a shutdown waits for requests in flight", 30_000, {
    unit: "ms",
    from: "less than the 45 s that the unit for systemd allows",
  }),
};

/** Timeouts of an attempt. */
export const clocks = {
  connect: integer("Until there is a connection (name lookup, proxy, TCP and TLS together; never `off`)", {
    unit: "ms",
    flag: false,
  }),
  first_progress: clock("From the request to the first progress"),
  idle: clock("From progress to progress"),
  silence: clock("Without any byte, if the provider sends keep-alives"),
  attempt: clock("The whole attempt"),
  run: clock("The whole run, over its attempts"),
} satisfies Record<keyof Clocks | "connect", Option>;

const spent = (description: string, unit?: "ms") =>
  integer(description, { min: 0, flag: false, ...(unit === undefined ? {} : { unit }) });

/** The budget of a run. */
export const budget = {
  max_auto_retries: spent("Automatic retries over all modes"),
  max_not_processed: spent("Retries of requests that the provider did not process, or that were not sent"),
  max_after_shown: spent("Replays after something was shown"),
  max_after_stall: spent("Replays after a stall"),
  max_elapsed_ms: spent("Time since the first failure", "ms"),
  max_retry_after_ms: spent("Maximum Retry-After that is waited for", "ms"),
  max_moves: spent("Times that a run moves to another route"),
  max_wasted_tokens: spent(
    "Tokens that broken responses of a run may cost, with those that a retry would repeat; left out, no limit",
  ),
  max_group_retries: spent("Automatic retries that the runs of a group (`x-recovery-group`) share; left out, no limit"),
  max_group_wasted_tokens: spent(
    "Tokens that broken responses of a group's runs may cost together; left out, no limit",
  ),
  max_outage_ms: integerOr(
    "forever",
    "All waits of a run for a way to its provider and for announced cooldowns together (or `forever`)",
    'expected whole milliseconds from 0 to 2147483647, or "forever"',
    { min: 0, unit: "ms", default: 600_000, from: "the time that SDKs wait for a response" },
  ),
} satisfies Record<keyof Budget, Option>;

const address = (name: string, of: string, byDefault: string): Option<string, string> & { readonly apart: true } => ({
  ...text(`Where requests for ${of} go`, { key: false, flag: `${name}-url`, default: byDefault }),
  apart: true,
});

/** Addresses of the three upstreams that need no prefix. */
export const upstreams = {
  openai: address("openai", "OpenAI, or a compatible server,", "https://api.openai.com/v1"),
  anthropic: address("anthropic", "Anthropic", "https://api.anthropic.com"),
  gemini: address("gemini", "Gemini", "https://generativelanguage.googleapis.com"),
};

/** Ways in which the upstreams' healthy streams differ from their protocols. */
export const tolerance = {
  doneWithoutFinish: yesOrNo(
    "Takes [DONE] for the end of a chat completion even if a server that sends finish_reason never filled it; only for servers that are known to end so",
    "switch",
    { key: false, flag: "done-completes", default: false },
  ),
};

/** A client token. */
export interface GatewayToken {
  /** Replaces the token in logs and metrics. */
  readonly name: string;
  readonly token: Redacted.Redacted<string>;
  /** Names of the permitted upstreams. Default: all. */
  readonly upstreams?: ReadonlyArray<string>;
  /** Permitted requests other than model requests, to upstreams with their own credential: `METHOD /path` with `*`. */
  readonly paths?: ReadonlyArray<string>;
  /** True to permit the page and its API, which give access to runs and accept answers. */
  readonly page: boolean;
  /** True to permit `/metrics`. */
  readonly metrics: boolean;
}

const byName = <S extends Schema.Top>(value: S) => Schema.Record(Schema.String, value);

/** Options of the server itself. */
export const server = {
  host: text("Address to listen on; any but this machine's own needs a token", {
    key: "listen.host",
    default: "127.0.0.1",
    restart: true,
  }),
  port: integer("Port to listen on; 0 takes any free one", {
    key: "listen.port",
    min: 0,
    max: 65_535,
    default: 8787,
    restart: true,
  }),
  tls: apart<CertificatePair>()("none", "Listens with TLS", certificate, {
    key: "listen.tls",
    restart: "on_or_off",
  }),
  named: apart<ReadonlyArray<UpstreamSettings>>()(
    "none",
    "By name. `openai`, `anthropic` and `gemini` need no prefix; any other is reached under `/u/NAME/`",
    byName(upstream),
    { key: "upstreams" },
  ),
  routes: apart<RouteLists>()(
    "none",
    "By the name of the upstream that requests go to: where they move when it fails, in this order",
    byName(Schema.Array(route)),
    {},
  ),
  token: apart<string>()(
    "secret",
    "Refuses clients without it (header x-recovery-token, or /t/TOKEN before the path); better in $STREAM_RECOVERY_TOKEN, where other users of this machine do not see it",
    Schema.String,
    { key: false },
  ),
  tokens: apart<ReadonlyArray<GatewayToken>>()(
    "none",
    "By name, which stands in logs and metrics in the token's place",
    byName(token),
    {},
  ),
  allowedHosts: shaped(
    "list",
    "Names besides this machine's own that a request's Host may have, for example host.docker.internal",
    Schema.Array(Schema.String),
    { flag: "allow-host", default: [] },
  ),
  reveal: words(
    "live: text goes out as it comes, calls once they are proven whole; on_complete: nothing goes out before the response is proven whole, so that every break is recovered unseen. Left out, the best for each client, and live for an unknown one",
    reveal,
  ),
  onBreak: words(
    "End of a shown response that breaks for good. tell: its protocol's own error event; abort: a broken body; as_provider: the provider's own end. Left out, the best for each client, and tell for an unknown one",
    onBreak,
  ),
  continueText: words(
    "A response that breaks after shown text. auto: the model is asked to continue, and its text is joined if the seam is proven, which costs the prompt once more; ask: the response breaks, or a person is asked",
    continueText,
    { default: "ask" },
  ),
  prefills: shaped(
    "none",
    "Providers that continue a text that a request ends with, by origin and model (`*` stands for any text), before those that are known; the first that fits counts",
    Schema.Array(PrefillRule),
    { default: [] },
  ),
  clients: apart<ClientOverrides>()(
    "none",
    "By name: a client of the table or `unknown` changes that row, any other name makes a row of its own",
    byName(client),
    {},
  ),
  holdMaxMs: integer("A held response is handed over as live after this long (left out: as long as its client waits)", {
    min: 0,
    unit: "ms",
  }),
  lingerMs: integer(
    "Time that a run outlives its client, so that a client that comes back attaches to it instead of paying again (0 is off; every Stop of a user pays for it)",
    { min: 0, unit: "ms", default: 0 },
  ),
  lingerMaxMs: integer("Maximum that a request may ask for by `x-recovery-linger`", {
    unit: "ms",
    default: 600_000,
    from: "the time that SDKs wait for a response",
  }),
  keepAliveMs: integer("Time between comments or events to a client that waits", {
    key: "comment_ms",
    flag: "comment-ms",
    unit: "ms",
    default: 15_000,
    from: "less than the 30 s after which proxies are known to cut",
  }),
  policy: shaped<StricterRules>(
    "pairs",
    "A stricter action than the default policy's, by rule (RULE=ask_user or RULE=do_not_retry)",
    // `problemsOfPolicy` checks each rule and action against the policy.
    byName(Schema.Literals(["ask_user", "do_not_retry"])) as unknown as Schema.Codec<StricterRules, unknown>,
  ),
  advertise: text(
    "Address at which the other gateways over the same store reach this process, for example https://gateway-1.internal:8787: a client of a lingering run may then come back to any gateway that has one. https, or http to a loopback address; not that of a balancer",
    { schema: GatewayAddress, restart: true },
  ),
  accessLog: yesOrNo("A line in the log for every request, at the level Info", "on_off", {
    key: "log.access",
    flag: "access-log",
    default: true,
  }),
  requireStore: yesOrNo("While the store is away, `/readyz` and every model request are answered 503", "switch", {
    default: false,
  }),
  retryEmpty: yesOrNo("A response with nothing in it is asked for again", "on_off", { default: true }),
};

const dollars = (description: string) =>
  Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)).annotate({ description });

/** Maximum worker processes: more than the cores of any machine with one port. */
export const workersMax = 128;

/** Options of the store, questions, log and processes. All are read only at the start. */
export const program = {
  db: text("SQLite file with the runs, `postgres://…`, or `memory`; left out, the store that `runs` reads", {
    restart: true,
  }),
  stateDir: text(
    "Folder for what a gateway that ends could not write to its store; the next start writes it (left out, the folder of the SQLite file, or the user's state folder)",
    { restart: true },
  ),
  onQuestion: words(
    "fail: what is uncertain stops; hold: the client waits for an answer on the page or by `runs answer`",
    ["fail", "hold"],
    { default: "fail", restart: true },
  ),
  holdMs: integer("A held question stops after this long", {
    unit: "ms",
    default: 600_000,
    restart: true,
    from: "the time that SDKs wait for a response",
  }),
  keepRuns: text(
    "Time that ended runs are kept, for example 30d, 12h or 2w, or forever; a run that has not ended is never forgotten",
    {
      schema: Schema.String.check(
        Schema.isPattern(/^(?:\d{1,6}[smhdw]|forever)$/, {
          message: "expected a duration such as 30d, 12h or 2w, or forever",
        }),
      ),
      default: "30d",
      restart: true,
    },
  ),
  keepRunsMax: integer(
    "Maximum ended runs that are kept, those that ended last; none goes within a minute of its end, and with `forever` none at all",
    { min: 0, default: retentionDefault.runs, restart: true },
  ),
  leaseMs: integer("The runs of a gateway that has died are recovered after this long", {
    unit: "ms",
    default: leaseMsDefault,
    restart: true,
  }),
  logFormat: words("text: a line an event for a person; json: one for a program", ["text", "json"], {
    key: "log.format",
    flag: "log-format",
    default: "text",
    restart: true,
  }),
  prices: shaped<Prices>(
    "none",
    "By model, or by the beginning of its name with `*` at the end: money on the page, in metrics and in `runs list`",
    byName(
      Schema.Struct({
        input: dollars("A million tokens of requests, in US dollars"),
        output: dollars("A million tokens of responses, in US dollars"),
      }),
    ),
    { restart: true },
  ),
  workers: integerOr(
    "auto",
    "Processes that serve behind the one port, or auto for one a core: docs/gateway-operation.md",
    `expected 1 to ${workersMax}, or auto`,
    { min: 1, max: workersMax, default: 1, restart: true },
  ),
};

/**
 * Groups of options that share a name in the file and in programs: their description, and the flag that accepts them as
 * `NAME=VALUE`.
 */
export const groups: Readonly<Record<string, { readonly description: string; readonly pairs?: string }>> = {
  listen: { description: "Where it listens" },
  clocks: {
    description: "Clocks of an attempt, in ms, or `off`",
    pairs: "clock",
  },
  budget: { description: "What a run may spend", pairs: "budget" },
  limits: { description: "Limits: sizes in bytes, times in ms" },
  log: { description: "What is logged, and how" },
};

/** Options of a gateway without its program. */
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

/** Collects the defaults of a table by option name. */
export const defaultsOf = <T extends Readonly<Record<string, Option>>>(table: T): Filled<T> =>
  // `Filled` derives each option's type from its entry's default.
  Object.fromEntries(Object.entries(table).map(([name, entry]) => [name, entry.default])) as Filled<T>;

/** Limits of a gateway. Times are in milliseconds, sizes in bytes. */
export interface GatewayLimits extends Required<Given<typeof limits>> {}

/** Default limits. */
export const limitsDefault: GatewayLimits = defaultsOf(limits);

/** Default options of the program. */
export const programDefaults: Filled<typeof program> = defaultsOf(program);

/** The name of an upstream that needs no prefix. */
export type UpstreamName = keyof typeof upstreams;

/** Base addresses, each as a client of that provider would be given it. */
export type Upstreams = Readonly<Record<UpstreamName, string>>;

/** The providers' own addresses, as in their SDKs. */
export const upstreamsDefault: Upstreams = {
  openai: upstreams.openai.default,
  anthropic: upstreams.anthropic.default,
  gemini: upstreams.gemini.default,
};
