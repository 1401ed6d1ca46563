/**
 * Describes the options of a gateway: where it listens, where requests go, what it holds back, and its limits.
 */
import { createHash } from "node:crypto";
import { Redacted, Schema } from "effect";
import type { Budget } from "../../domain/RunFacts.ts";
import type { StricterRules } from "../../policy/RecoveryPolicy.ts";
import type { Tolerance } from "../../provider/Protocols.ts";
import type { PrefillRule } from "../../provider/seam/Prefills.ts";
import type { ClockOptions } from "../../runtime/contract/Clocks.ts";
import type { ClientOverrides } from "../clients/ClientOverrides.ts";
import { pathText } from "./JsonText.ts";
import { problemOfPaths } from "./PathPattern.ts";
import { problemsOfRoutes } from "./RouteProblems.ts";
import type { RouteList, RouteLists } from "./RouteSettings.ts";
import { isUpstreamName, namePattern, upstreamNameWords } from "./UpstreamNames.ts";
import { hasOwnCredential, type UpstreamSettings } from "./UpstreamSettings.ts";

/** The providers whose addresses a gateway knows. */
export type UpstreamName = "openai" | "anthropic" | "gemini";

/** Base addresses, each as a client of that provider would be given it. */
export type Upstreams = Readonly<Record<UpstreamName, string>>;

/** The providers' own addresses, as their SDKs have them. */
export const upstreamsDefault: Upstreams = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com",
  gemini: "https://generativelanguage.googleapis.com",
};

/** Limits of a gateway. Times are milliseconds, sizes bytes. */
export interface GatewayLimits {
  /** Body of one request that is kept, because it may have to be sent again. */
  readonly maxBodyBytes: number;
  /** All of those at one time. */
  readonly maxBodiesBytes: number;
  /** Body of one request that only passes through. */
  readonly maxPassedBytes: number;
  /** Head of one request. */
  readonly maxHeaderBytes: number;
  readonly maxConnections: number;
  /** A client has so long to send a request's head. */
  readonly headMs: number;
  /** A client has so long to send a whole request. */
  readonly requestMs: number;
  /** A client that takes no byte for so long, while some wait for it, is given up. */
  readonly slowClientMs: number;
  /** A connection without a request is closed after so long. */
  readonly idleConnectionMs: number;
  /** A shutdown waits so long for what runs. */
  readonly drainMs: number;
}

/**
 * The limits by default. Providers take request bodies up to 32 MB (Anthropic) and 50 MB (OpenAI); uploads up to 1 GiB are
 * not kept. 2,000 streams are a bar of this project, four times as many connections a limit. SDKs wait 10 minutes for a
 * response, so a client that reads nothing for 5 is gone.
 */
export const limitsDefault: GatewayLimits = {
  maxBodyBytes: 64 * 1024 * 1024,
  maxBodiesBytes: 1024 * 1024 * 1024,
  maxPassedBytes: 1024 * 1024 * 1024,
  maxHeaderBytes: 64 * 1024,
  maxConnections: 8192,
  headMs: 30_000,
  requestMs: 300_000,
  slowClientMs: 300_000,
  idleConnectionMs: 65_000,
  drainMs: 30_000,
};

/** Where it listens by default. */
export const hostDefault = "127.0.0.1";

/** The port that it listens on by default. */
export const portDefault = 8787;

/** How often a comment goes to a client that waits, in milliseconds: less than the 30 s that proxies are known to cut after. */
export const keepAliveMsDefault = 15_000;

/**
 * The longest that a run waits for paths and cooldowns by default, in milliseconds: as long as the SDKs wait for a response. A program
 * that embeds the library has less, because it may have no client that can be kept waiting.
 */
export const maxOutageMsDefault = 600_000;

/**
 * How long a request that does not stream waits for its path before its client is told to ask again, in milliseconds: nothing can be sent to
 * that client meanwhile, and it is well below the minute after which the least patient one gives up.
 */
export const pathPatienceMsDefault = 15_000;

/**
 * The longest that a request may let its run outlive its client, in milliseconds: as long as the SDKs wait for a response. A client that
 * has not come back by then has given it up.
 */
export const lingerMaxMsDefault = 600_000;

/** A certificate to listen with, and its key, as PEM texts. */
export interface ListenTls {
  readonly cert: string;
  readonly key: Redacted.Redacted<string>;
}

/** A token that clients are admitted by, and what it permits. */
export interface GatewayToken {
  /** Stands in logs and metrics in the token's place. */
  readonly name: string;
  readonly token: Redacted.Redacted<string>;
  /** Names of the upstreams that it permits; left out, all. */
  readonly upstreams?: ReadonlyArray<string>;
  /** What it permits beside model requests, of upstreams with a credential of their own: `METHOD /path` with `*`. */
  readonly paths?: ReadonlyArray<string>;
  /** It permits the page and its API, where runs are read and questions are answered. */
  readonly page: boolean;
  /** It permits `/metrics`. */
  readonly metrics: boolean;
}

/** Options of a gateway; everything has a default. */
export interface GatewayOptions {
  /** Default 127.0.0.1. Any address but this machine's own needs a token. */
  readonly host?: string;
  /** Default 8787; 0 takes any free one. */
  readonly port?: number;
  /** Left out, it listens without TLS. */
  readonly tls?: ListenTls;
  /** Addresses of the three upstreams that need no prefix. */
  readonly upstreams?: Partial<Upstreams>;
  /** Upstreams that are reached under `/u/NAME/`; one that is called `openai`, `anthropic` or `gemini` stands for that default one. */
  readonly named?: ReadonlyArray<UpstreamSettings>;
  /** Where requests move when their upstream fails, by the name of that upstream. */
  readonly routes?: RouteLists;
  /** What is held back from clients; left out, the client's row says it, and `live` where it has none. */
  readonly reveal?: "live" | "on_complete";
  /**
   * What a client gets where a shown response breaks for good: its protocol's own error event (`tell`, whose old name is
   * `error_event`), a broken body, or the provider's own end byte for byte. Left out, the client's row says it.
   */
  readonly onBreak?: "tell" | "abort" | "as_provider" | "error_event";
  /**
   * Whether text that was shown goes on by itself where the seam can be proven. Default `ask`: the response breaks, or a person is
   * asked. An upstream's own word wins over it, and the header `x-recovery-continue-text` over both.
   */
  readonly continueText?: "auto" | "ask";
  /** Which providers go on with a text that a request ends with; they stand before those that are known. */
  readonly prefills?: ReadonlyArray<PrefillRule>;
  /** What a configuration changes in the table of clients. */
  readonly clients?: ClientOverrides;
  /** A response that is held is handed over as `live` after so long, in milliseconds; left out, the client's row says it. */
  readonly holdMaxMs?: number;
  /** A client without it is refused. It is never forwarded. It permits everything, and its name is `default`. */
  readonly token?: string;
  /** Further tokens, each with what it permits. */
  readonly tokens?: ReadonlyArray<GatewayToken>;
  /** Names besides this machine's own that a request's Host may say, such as `host.docker.internal`. */
  readonly allowedHosts?: ReadonlyArray<string>;
  /** How the upstreams' healthy streams differ: `doneWithoutFinish` for servers that end a chat with `[DONE]` alone. */
  readonly tolerance?: Pick<Tolerance, "doneWithoutFinish">;
  /** Milliseconds between comments to a client that waits. */
  readonly keepAliveMs?: number;
  /** Milliseconds that a request that does not stream waits for a provider that cannot be reached, until its client is told to ask again. */
  readonly pathPatienceMs?: number;
  /**
   * A run outlives its client by so many milliseconds, so that the client may come back to it. Default 0: it ends with its client.
   * Every Stop of a user pays for as long.
   */
  readonly lingerMs?: number;
  /** The longest that a request may ask for by `x-recovery-linger`, in milliseconds. */
  readonly lingerMaxMs?: number;
  /** Whether the log gets a line for every request. Default: it does, at the level Info. */
  readonly accessLog?: boolean;
  /** `/readyz` says 503 while the store takes no writes. Default: 200, because requests are served all the same. */
  readonly requireStore?: boolean;
  /**
   * Whether a response with nothing in it (no content, no call, no refusal, at most one output token) is asked for again. Default
   * true.
   */
  readonly retryEmpty?: boolean;
  readonly limits?: Partial<GatewayLimits>;
  /** What a run may spend. `max_outage_ms` is `maxOutageMsDefault` where it is left out. */
  readonly budget?: Partial<Budget>;
  /** Clocks of an attempt, in milliseconds; `false` is off. */
  readonly clocks?: ClockOptions;
  /** The `connect` clock of upstreams that name none, in milliseconds. */
  readonly connectMs?: number;
  /** Rules that are stricter than the default policy's. */
  readonly policy?: StricterRules;
}

/** The gateway cannot start. The message is one line that names the option, or the address that is taken. */
export class GatewayError extends Schema.TaggedError<GatewayError>()("GatewayError", {
  reason: Schema.Literals(["bad_option", "cannot_listen"]),
  message: Schema.String,
}) {}

/** A token with the digest that a client's is compared with. */
export interface AdmittedToken extends GatewayToken {
  readonly digest: Buffer;
}

/** Options with their defaults, checked. */
export interface GatewaySettings {
  readonly host: string;
  readonly port: number;
  readonly tls: ListenTls | undefined;
  /** Addresses of the three upstreams that need no prefix. */
  readonly upstreams: Upstreams;
  /** All upstreams by name, those three too. */
  readonly servers: ReadonlyMap<string, UpstreamSettings>;
  /** The further routes by the name of the upstream that a request is meant for. */
  readonly routes: ReadonlyMap<string, RouteList>;
  /** What holds for every client that has no word of its own. */
  readonly manner: {
    readonly reveal?: "live" | "on_complete";
    readonly onBreak?: "tell" | "abort" | "as_provider";
    readonly holdMaxMs?: number;
    readonly clients?: ClientOverrides;
  };
  readonly continueText: "auto" | "ask";
  readonly prefills: ReadonlyArray<PrefillRule>;
  /** Empty where every client is admitted. */
  readonly tokens: ReadonlyArray<AdmittedToken>;
  readonly allowedHosts: ReadonlyArray<string>;
  readonly keepAliveMs: number;
  readonly pathPatienceMs: number;
  readonly lingerMs: number;
  readonly lingerMaxMs: number;
  /** What a run may spend, where it is not the default of a run. */
  readonly budget: Partial<Budget> & Pick<Budget, "max_outage_ms">;
  readonly accessLog: boolean;
  readonly requireStore: boolean;
  readonly retryEmpty: boolean;
  readonly limits: GatewayLimits;
  /** It listens for this machine only. */
  readonly local: boolean;
}

/**
 * Fills in defaults and checks.
 *
 * @returns the settings, or what is wrong in one line
 */
export const settingsOf = (options: GatewayOptions): GatewaySettings | GatewayError => {
  const host = options.host ?? hostDefault;
  const { servers, upstreams } = serversOf(options);
  const tokens = tokensOf(options);
  const settings: GatewaySettings = {
    host,
    port: options.port ?? portDefault,
    tls: options.tls,
    upstreams,
    servers,
    routes: new Map(Object.entries(options.routes ?? {})),
    manner: mannerOf(options),
    continueText: options.continueText ?? "ask",
    prefills: options.prefills ?? [],
    tokens,
    allowedHosts: options.allowedHosts ?? [],
    keepAliveMs: options.keepAliveMs ?? keepAliveMsDefault,
    pathPatienceMs: options.pathPatienceMs ?? pathPatienceMsDefault,
    lingerMs: options.lingerMs ?? 0,
    lingerMaxMs: options.lingerMaxMs ?? lingerMaxMsDefault,
    budget: { max_outage_ms: maxOutageMsDefault, ...options.budget },
    accessLog: options.accessLog ?? true,
    requireStore: options.requireStore ?? false,
    retryEmpty: options.retryEmpty ?? true,
    limits: { ...limitsDefault, ...options.limits },
    local: isLocal(host),
  };
  const problem = problemOf(settings) ?? problemOfNames(options) ?? problemOfRoutes(settings);
  return problem === undefined ? settings : new GatewayError({ reason: "bad_option", message: problem });
};

const mannerOf = ({ clients, holdMaxMs, onBreak, reveal }: GatewayOptions): GatewaySettings["manner"] => ({
  ...(reveal === undefined ? {} : { reveal }),
  ...(onBreak === undefined ? {} : { onBreak: onBreak === "error_event" ? "tell" : onBreak }),
  ...(holdMaxMs === undefined ? {} : { holdMaxMs }),
  ...(clients === undefined ? {} : { clients }),
});

/** The three that need no prefix, by their names, and the others. What is said of an upstream itself wins. */
const serversOf = (options: GatewayOptions): Pick<GatewaySettings, "servers" | "upstreams"> => {
  const { connectMs, named = [], tolerance } = options;
  const addresses = { ...upstreamsDefault, ...options.upstreams };
  const servers = new Map<string, UpstreamSettings>();
  const add = (upstream: UpstreamSettings) =>
    servers.set(upstream.name, {
      ...(connectMs === undefined ? {} : { connectMs }),
      ...upstream,
      ...(tolerance === undefined ? {} : { tolerance: { ...tolerance, ...upstream.tolerance } }),
    });
  for (const name of defaultNames) add({ name, url: addresses[name], headers: [] });
  for (const upstream of named) add(upstream);
  const urlOf = (name: UpstreamName) => servers.get(name)?.url ?? addresses[name];
  return { servers, upstreams: { openai: urlOf("openai"), anthropic: urlOf("anthropic"), gemini: urlOf("gemini") } };
};

/** The names of the upstreams that need no prefix. */
export const defaultNames = ["openai", "anthropic", "gemini"] as const;

/** The name of the one token that has none. */
export const tokenNameDefault = "default";

const tokensOf = ({ token, tokens = [] }: GatewayOptions): ReadonlyArray<AdmittedToken> => {
  const one: ReadonlyArray<GatewayToken> =
    token === undefined ? [] : [{ name: tokenNameDefault, token: Redacted.make(token), page: true, metrics: true }];
  return [...one, ...tokens].map((it) => ({ ...it, digest: digestOf(Redacted.value(it.token)) }));
};

/** Names of tokens with the secret of an earlier one, and that one's name. */
export const sameTokens = (
  tokens: ReadonlyArray<Pick<GatewayToken, "name" | "token">>,
): ReadonlyArray<readonly [name: string, other: string]> => {
  const first = new Map<string, string>();
  return tokens.flatMap(({ name, token }): ReadonlyArray<readonly [string, string]> => {
    const other = first.get(Redacted.value(token));
    if (other === undefined) first.set(Redacted.value(token), name);
    return other === undefined ? [] : [[name, other]];
  });
};

/** The digest of a token: all are of one length, so that a comparison tells nothing of a token, its length neither. */
export const digestOf = (token: string): Buffer => createHash("sha256").update(token).digest();

/** Shortest token: what can be guessed is none. */
export const tokenCharactersMin = 16;

/** Says why a token cannot be one; the token itself is in no message. */
export const problemOfToken = (token: string): string | undefined => {
  if (!/^[\w.~-]+$/.test(token)) return "expected letters, digits and -._~ only";
  return token.length < tokenCharactersMin
    ? `expected at least ${tokenCharactersMin} characters, got ${token.length}`
    : undefined;
};

/** Says why an address cannot be an upstream's; the address is not in the message, for it may hold a password. */
export const problemOfUrl = (address: string): string | undefined => {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isAddress =
    url !== undefined &&
    // `URL` takes blanks and an empty query away: a path that is put behind them would be lost.
    !/[\s?#\\]/.test(address) &&
    /^https?:$/.test(url.protocol) &&
    url.username === "" &&
    url.password === "" &&
    url.search === "" &&
    url.hash === "";
  return isAddress ? undefined : "expected http(s)://host[:port][/path] and nothing else";
};

const problemOf = ({
  keepAliveMs,
  lingerMaxMs,
  lingerMs,
  limits,
  local,
  pathPatienceMs,
  port,
  servers,
  tokens,
}: GatewaySettings): string | undefined => {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) return `port: expected 0 to 65535, got ${port}`;
  for (const { connectMs, lingerMs: ofUpstream = 0, name, url } of servers.values()) {
    const problem = problemOfUrl(url);
    if (problem !== undefined) return `${name}-url: ${problem}`;
    if (connectMs !== undefined && !isMilliseconds(connectMs))
      return `connectMs of ${name}: expected 1 to ${numberMax}, got ${connectMs}`;
    const problemOfLinger = lingerProblem(ofUpstream, lingerMaxMs);
    if (problemOfLinger !== undefined) return `lingerMs of ${name}: ${problemOfLinger}`;
  }
  for (const { name, token } of tokens) {
    const problem = problemOfToken(Redacted.value(token));
    if (problem !== undefined) return `${name === tokenNameDefault ? "token" : `token ${name}`}: ${problem}`;
  }
  if (!local && tokens.length === 0)
    return "token: needed for any host but this machine's own (127.0.0.1, ::1, localhost)";
  const problemOfLinger = lingerProblem(lingerMs, lingerMaxMs);
  if (problemOfLinger !== undefined) return `lingerMs: ${problemOfLinger}`;
  for (const [name, value] of Object.entries({ keepAliveMs, lingerMaxMs, pathPatienceMs, ...limits })) {
    if (!isMilliseconds(value)) return `${name}: expected 1 to ${numberMax}, got ${value}`;
  }
  return undefined;
};

/** What is wrong with how long a run outlives its client; 0 is off. */
const lingerProblem = (ms: number, max: number): string | undefined =>
  Number.isInteger(ms) && ms >= 0 && ms <= max ? undefined : `expected 0 to ${max} (lingerMaxMs), got ${ms}`;

/** Times and limits are whole numbers. */
const isMilliseconds = (value: number): boolean => Number.isInteger(value) && value >= 1 && value <= numberMax;

const problemOfNames = ({ named = [], token, tokens = [] }: GatewayOptions): string | undefined => {
  const strange = named.find(({ name }) => !isUpstreamName(name));
  if (strange !== undefined) return `upstream ${JSON.stringify(strange.name)}: expected ${upstreamNameWords}`;
  const names = [...(token === undefined ? [] : [tokenNameDefault]), ...tokens.map(({ name }) => name)];
  const bad = names.find((name) => !namePattern.test(name));
  if (bad !== undefined) return `token ${JSON.stringify(bad)}: expected a name of 1 to 32 of a-z, 0-9 and -`;
  const twice = repeated(names) ?? repeated(named.map(({ name }) => name));
  if (twice !== undefined) return `${twice}: expected each name once`;
  const [same] = sameTokens(tokensOf({ ...(token === undefined ? {} : { token }), tokens }));
  if (same !== undefined) return `token ${same[0]}: expected another secret than that of the token ${same[1]}`;
  for (const { name, paths } of [...named, ...tokens]) {
    const problem = problemOfPaths(paths ?? []);
    if (problem !== undefined) return `paths of ${name}: ${problem.message}`;
  }
  const known = new Set([...defaultNames, ...named.map(({ name }) => name)]);
  const lost = tokens.flatMap(({ upstreams = [] }) => upstreams).find((name) => !known.has(name));
  return lost === undefined ? undefined : `token: there is no upstream ${JSON.stringify(lost)}`;
};

/**
 * What is wrong with the routes. Without tokens every program of this machine, and a page that guesses, could buy with the
 * operator's credential what its own key was refused.
 */
const problemOfRoutes = ({ routes, servers, tokens }: GatewaySettings): string | undefined => {
  const [first] = problemsOfRoutes(Object.fromEntries(routes), servers.values());
  if (first !== undefined) return `${pathText(["routes", ...first.path]).slice(2)}: ${first.message}`;
  const all = [...routes.values()].flatMap((list) => list.routes);
  const bought = all.find(({ upstream }) => hasOwnCredential(servers.get(upstream) ?? noCredential));
  return tokens.length > 0 || bought === undefined
    ? undefined
    : `routes: the route ${bought.id} has a credential of its own (upstream ${bought.upstream}), so clients need a token: configure tokens or --token, or let the upstream use the client's credential`;
};

const noCredential = { headers: [] };

const repeated = (names: ReadonlyArray<string>): string | undefined =>
  names.find((name, at) => names.indexOf(name) !== at);

/** Largest delay that a timer takes, in milliseconds, and more bytes than any limit here means. */
export const numberMax = 2_147_483_647;

const isLocal = (host: string): boolean => host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
