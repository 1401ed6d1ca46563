/**
 * Validates the options of a gateway and fills in their defaults.
 */
import { createHash } from "node:crypto";
import { Redacted, Result, Schema } from "effect";
import type { Budget } from "../../domain/RunFacts.ts";
import { pathText } from "./JsonText.ts";
import { entriesOf, type Filled, type Given, readValue, valueAt } from "./Option.ts";
import {
  budget,
  type clocks,
  defaultsOf,
  entries,
  type GatewayLimits,
  type GatewayToken,
  type limits,
  limitsDefault,
  server,
  type tolerance,
  type UpstreamName,
  type Upstreams,
  upstreamsDefault,
} from "./Options.ts";
import { problemOfPaths } from "./PathPattern.ts";
import { problemsOfRoutes } from "./RouteProblems.ts";
import type { RouteList } from "./RouteSettings.ts";
import { isUpstreamName, namePattern, upstreamNameWords } from "./UpstreamNames.ts";
import { type CertificatePair, hasOwnCredential, type UpstreamSettings } from "./UpstreamSettings.ts";

/** A certificate and its key for TLS, as PEM text. */
export interface ListenTls extends CertificatePair {}

/** Options of a gateway. Every option has a default; Options.ts describes them. */
export interface GatewayOptions extends Given<typeof server> {
  readonly upstreams?: Partial<Upstreams>;
  readonly tolerance?: Given<typeof tolerance>;
  readonly clocks?: Given<typeof clocks>;
  readonly budget?: Given<typeof budget>;
  readonly limits?: Given<typeof limits>;
}

/** The gateway cannot start. The message is one line that names the invalid option or the unavailable address. */
export class GatewayError extends Schema.TaggedError<GatewayError>()("GatewayError", {
  reason: Schema.Literals(["bad_option", "cannot_listen"]),
  message: Schema.String,
}) {}

/** A token and its digest. Tokens of clients are compared by digest. */
export interface AdmittedToken extends GatewayToken {
  readonly digest: Buffer;
}

/** All settings of a gateway: validated options with defaults applied. */
export interface GatewaySettings extends Filled<typeof server> {
  readonly tls: ListenTls | undefined;
  /** Addresses of the upstreams that need no prefix. */
  readonly upstreams: Upstreams;
  /** All upstreams by name, including those in `upstreams`. */
  readonly servers: ReadonlyMap<string, UpstreamSettings>;
  /** Fallback routes, by the name of the upstream to which clients address their requests. */
  readonly routes: ReadonlyMap<string, RouteList>;
  /** Settings for all clients, and the configured rows of the client table. A configured row takes precedence over the settings. */
  readonly manner: Given<Pick<typeof server, "reveal" | "onBreak" | "holdMaxMs" | "clients">>;
  /** Admitted tokens. If there are none, every client is admitted. */
  readonly tokens: ReadonlyArray<AdmittedToken>;
  /** The configured budget of a run. Missing fields have the processor's defaults. */
  readonly budget: Partial<Budget> & Pick<Budget, "max_outage_ms">;
  readonly limits: GatewayLimits;
  /** True if the gateway listens on the loopback interface only. */
  readonly local: boolean;
}

/**
 * Adds the defaults to the options and validates the result.
 *
 * @returns the settings, or the first problem as one line
 */
export const settingsOf = (options: GatewayOptions): GatewaySettings | GatewayError => {
  const { servers, upstreams } = makeServers(options);
  const filled = { ...serverDefaults, ...directSettings(options) };
  const settings: GatewaySettings = {
    ...filled,
    tls: options.tls,
    upstreams,
    servers,
    routes: new Map(Object.entries(options.routes ?? {})),
    manner: makeManner(options),
    tokens: tokensOf(options),
    budget: { max_outage_ms: budget.max_outage_ms.default, ...options.budget },
    limits: { ...limitsDefault, ...options.limits },
    local: isLocal(filled.host),
  };
  const problem = problemOf(settings, options) ?? problemOfNames(options) ?? problemOfRoutes(settings);
  return problem === undefined ? settings : new GatewayError({ reason: "bad_option", message: problem });
};

const serverDefaults = defaultsOf(server);

const settledNames = new Set(entriesOf(server).flatMap(({ apart, name }) => (apart ? [] : [name])));

/** Returns the options that become settings without a conversion. */
const directSettings = (options: GatewayOptions): Given<typeof server> =>
  // The filtered entries are a subset of the options, all of which are optional, so the cast is safe.
  Object.fromEntries(Object.entries(options).filter(([name]) => settledNames.has(name))) as Given<typeof server>;

const makeManner = ({ clients, holdMaxMs, onBreak, reveal }: GatewayOptions): GatewaySettings["manner"] => ({
  ...(reveal === undefined ? {} : { reveal }),
  ...(onBreak === undefined ? {} : { onBreak }),
  ...(holdMaxMs === undefined ? {} : { holdMaxMs }),
  ...(clients === undefined ? {} : { clients }),
});

/** Creates the default upstreams and the named ones. An upstream's own settings override the general ones. */
const makeServers = (options: GatewayOptions): Pick<GatewaySettings, "servers" | "upstreams"> => {
  const { clocks: { connect } = {}, named = [], tolerance } = options;
  const addresses = { ...upstreamsDefault, ...options.upstreams };
  const local = isLocal(options.host ?? serverDefaults.host);
  const servers = new Map<string, UpstreamSettings>();
  const add = (upstream: UpstreamSettings) =>
    servers.set(upstream.name, {
      ...(connect === undefined ? {} : { connectMs: connect }),
      ...upstream,
      ...(tolerance === undefined ? {} : { tolerance: { ...tolerance, ...upstream.tolerance } }),
    });
  // A server on this machine's loopback is for this machine's clients, unless the operator names its address.
  for (const name of defaultNames)
    if (local || options.upstreams?.[name] !== undefined || !isLocal(new URL(upstreamsDefault[name]).hostname))
      add({ name, url: addresses[name], headers: [] });
  for (const upstream of named) add(upstream);
  const urls = defaultNames.map((name) => [name, servers.get(name)?.url ?? addresses[name]]);
  // The names are the keys of the table from which the type is derived, so the cast is safe.
  return { servers, upstreams: Object.fromEntries(urls) as Upstreams };
};

/** Names of the upstreams that need no prefix. */
export const defaultNames = Object.keys(upstreamsDefault) as ReadonlyArray<UpstreamName>; // the keys of the table

/** Name of the token in the `token` option. */
export const tokenNameDefault = "default";

const tokensOf = ({ token, tokens = [] }: GatewayOptions): ReadonlyArray<AdmittedToken> => {
  const one: ReadonlyArray<GatewayToken> =
    token === undefined ? [] : [{ name: tokenNameDefault, token: Redacted.make(token), page: true, metrics: true }];
  return [...one, ...tokens].map((it) => ({ ...it, digest: digestOf(Redacted.value(it.token)) }));
};

/** Lists the tokens that have the same secret as an earlier token, each with the earlier token's name. */
export const findRepeatedTokens = (
  tokens: ReadonlyArray<Pick<GatewayToken, "name" | "token">>,
): ReadonlyArray<readonly [name: string, other: string]> => {
  const first = new Map<string, string>();
  return tokens.flatMap(({ name, token }): ReadonlyArray<readonly [string, string]> => {
    const other = first.get(Redacted.value(token));
    if (other === undefined) first.set(Redacted.value(token), name);
    return other === undefined ? [] : [[name, other]];
  });
};

/** Hashes a token. Digests have a fixed length, so their comparison reveals nothing about a token, not even its length. */
export const digestOf = (token: string): Buffer => createHash("sha256").update(token).digest();

/** Minimum length of a token, in characters, so that it cannot be guessed. */
export const tokenCharactersMin = 16;

/** Describes why a token is invalid, without quoting it. */
export const problemOfToken = (token: string): string | undefined => {
  if (!/^[\w.~-]+$/.test(token)) return "expected letters, digits and -._~ only";
  return token.length < tokenCharactersMin
    ? `expected at least ${tokenCharactersMin} characters, got ${token.length}`
    : undefined;
};

/** Describes why an upstream's address is invalid. The address is not quoted, because it may contain a password. */
export const problemOfUrl = (address: string): string | undefined => {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isAddress =
    url !== undefined &&
    // `URL` drops white space and an empty query. A path that is appended to the address would then become part of the query.
    !/[\s?#\\]/.test(address) &&
    /^https?:$/.test(url.protocol) &&
    url.username === "" &&
    url.password === "" &&
    url.search === "" &&
    url.hash === "";
  return isAddress ? undefined : "expected http(s)://host[:port][/path] and nothing else";
};

const problemOf = (
  { lingerMaxMs, lingerMs, local, servers, tokens }: GatewaySettings,
  options: GatewayOptions,
): string | undefined => {
  const [wrong] = problemsOfValues(options);
  if (wrong !== undefined) return wrong;
  for (const { lingerMs: ofUpstream = 0, name, url } of servers.values()) {
    const problem = problemOfUrl(url);
    if (problem !== undefined) return `${name}-url: ${problem}`;
    const problemOfLinger = lingerProblem(ofUpstream, lingerMaxMs);
    if (problemOfLinger !== undefined) return `lingerMs of ${name}: ${problemOfLinger}`;
  }
  for (const { name, token } of tokens) {
    const problem = problemOfToken(Redacted.value(token));
    if (problem !== undefined) return `${name === tokenNameDefault ? "token" : `token ${name}`}: ${problem}`;
  }
  if (!local && tokens.length === 0)
    return "token: required for any host other than loopback (127.0.0.1, ::1, localhost)";
  const problemOfLinger = lingerProblem(lingerMs, lingerMaxMs);
  return problemOfLinger === undefined ? undefined : `lingerMs: ${problemOfLinger}`;
};

/** Validates each option with its schema. An option whose type differs from its type in the file is checked where it is built. */
const problemsOfValues = (options: GatewayOptions): ReadonlyArray<string> =>
  entries.flatMap((entry) => {
    const value = entry.apart || entry.read !== undefined ? undefined : valueAt(options, entry.path);
    const read = value === undefined ? undefined : readValue(entry, value);
    if (read === undefined || Result.isSuccess(read)) return [];
    return read.failure.map(({ message, path }) => `${entry.name}${path.slice(1)}: ${message}`);
  });

/** Describes why a linger time is invalid; 0 disables lingering. */
const lingerProblem = (ms: number, max: number): string | undefined =>
  Number.isInteger(ms) && ms >= 0 && ms <= max ? undefined : `expected 0 to ${max} (lingerMaxMs), got ${ms}`;

const problemOfNames = ({ named = [], token, tokens = [] }: GatewayOptions): string | undefined => {
  const strange = named.find(({ name }) => !isUpstreamName(name));
  if (strange !== undefined) return `upstream ${JSON.stringify(strange.name)}: expected ${upstreamNameWords}`;
  const names = [...(token === undefined ? [] : [tokenNameDefault]), ...tokens.map(({ name }) => name)];
  const bad = names.find((name) => !namePattern.test(name));
  if (bad !== undefined) return `token ${JSON.stringify(bad)}: expected a name of 1 to 32 of a-z, 0-9 and -`;
  const twice = firstDuplicate(names) ?? firstDuplicate(named.map(({ name }) => name));
  if (twice !== undefined) return `${twice}: expected each name once`;
  const [same] = findRepeatedTokens(tokensOf({ ...(token === undefined ? {} : { token }), tokens }));
  if (same !== undefined) return `token ${same[0]}: expected a secret that differs from that of the token ${same[1]}`;
  for (const { name, paths } of [...named, ...tokens]) {
    const problem = problemOfPaths(paths ?? []);
    if (problem !== undefined) return `paths of ${name}: ${problem.message}`;
  }
  const known = new Set([...defaultNames, ...named.map(({ name }) => name)]);
  const lost = tokens.flatMap(({ upstreams = [] }) => upstreams).find((name) => !known.has(name));
  return lost === undefined ? undefined : `token: the upstream ${JSON.stringify(lost)} does not exist`;
};

/**
 * Describes the first problem of the routes. A route with a credential of the operator requires tokens. Otherwise every local program, and
 * any web page that guesses the address, could use that credential after the upstream refused the client's own key.
 */
const problemOfRoutes = ({ routes, servers, tokens }: GatewaySettings): string | undefined => {
  const [first] = problemsOfRoutes(Object.fromEntries(routes), servers.values());
  if (first !== undefined) return `${pathText(["routes", ...first.path]).slice(2)}: ${first.message}`;
  const all = [...routes.values()].flatMap((list) => list.routes);
  const bought = all.find(({ upstream }) => hasOwnCredential(servers.get(upstream) ?? noCredential));
  return tokens.length > 0 || bought === undefined
    ? undefined
    : `routes: the route ${bought.id} has its own credential (upstream ${bought.upstream}), so clients need a token: configure tokens or --token, or let the upstream use the client's credential`;
};

const noCredential = { headers: [] };

const firstDuplicate = (names: ReadonlyArray<string>): string | undefined =>
  names.find((name, at) => names.indexOf(name) !== at);

const isLocal = (host: string): boolean => host === "localhost" || host === "::1" || /^127(?:\.\d{1,3}){3}$/.test(host);
