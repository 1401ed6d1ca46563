/**
 * Builds the gateway's options from a configuration file: decodes the file, resolves its references, and reports every problem at once.
 */
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { Redacted, Result, Schema } from "effect";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import * as EgressProxy from "../../client/connection/EgressProxy.ts";
import { none, type Prices } from "../../domain/Prices.ts";
import { findReplacement } from "../../domain/RemovedOptions.ts";
import { PolicyError, make as policyOf, type StricterRules } from "../../policy/RecoveryPolicy.ts";
import { ClientOverrides } from "../clients/ClientOverrides.ts";
import type { ConfigParts } from "./ConfigParts.ts";
import { type ConfigProblem, problemAt, problemsOf } from "./ConfigProblem.ts";
import { ConfigSchema } from "./ConfigSchema.ts";
import type { ConfigSources } from "./ConfigSources.ts";
import { isCredentialName } from "./CredentialNames.ts";
import { defaultNames, findRepeatedTokens, problemOfToken, problemOfUrl } from "./GatewayOptions.ts";
import { isClientHeader, isHeaderText } from "./HeaderRules.ts";
import { type JsonPath, readJson } from "./JsonText.ts";
import { parsing, valueAt, withValue } from "./Option.ts";
import { entries, type GatewayToken } from "./Options.ts";
import { problemOfPaths } from "./PathPattern.ts";
import type { ProgramOptions } from "./ProgramOptions.ts";
import { problemsOfRoutes } from "./RouteProblems.ts";
import type { RouteLists, RouteSettings } from "./RouteSettings.ts";
import { isUpstreamName, namePattern, upstreamNameWords } from "./UpstreamNames.ts";
import { type AwsCredential, type CertificatePair, regionOf, type UpstreamSettings } from "./UpstreamSettings.ts";

/** The options from a configuration file, or its problems. */
export type ConfigRead =
  | {
      readonly options: ProgramOptions;
      /** Problems that do not prevent the start; omitted if there are none. */
      readonly warnings?: ReadonlyArray<ConfigProblem>;
    }
  | { readonly problems: readonly [ConfigProblem, ...ReadonlyArray<ConfigProblem>] };

/** Reads a configuration file. If it has a problem, no options are returned. */
export const readConfig = (sources: ConfigSources): ConfigRead => {
  const read = readJson(sources.text);
  if ("broken" in read) return { problems: [problemAt([], read.broken)] };
  const twice = read.repeated.map((path) => problemAt(path, "expected this name once"));
  const decoded = decode(read.value);
  if (Result.isFailure(decoded))
    return toConfigRead([...twice, ...problemsOf(decoded.failure).map(addReplacement)], {}, []);
  const reader = new Reader(sources);
  const own = optionsOf(decoded.success);
  // `ConfigSchema` consists of the schemas from which these types derive, so the cast is safe.
  const options = { ...own, ...reader.buildOptions(decoded.success as ConfigParts) };
  return toConfigRead([...twice, ...reader.problems, ...problemsOfPolicy(own.policy)], options, reader.warnings);
};

/**
 * Reads only the prices of a file. Secrets are not resolved, because a command that only reads runs may have no access to them.
 *
 * @returns the prices, or the file's first problem as one line
 */
export const pricesIn = ({ text }: Pick<ConfigSources, "text">): Prices | string => {
  const read = readJson(text);
  if ("broken" in read) return read.broken;
  const decoded = decode(read.value);
  if (Result.isSuccess(decoded)) return optionsOf(decoded.success).prices ?? none;
  const [problem] = problemsOf(decoded.failure);
  return problem === undefined ? "expected a configuration" : `${problem.path}: ${problem.message}`;
};

/** Adds the replacement of a removed key to the key's problem. */
const addReplacement = ({ message, path }: ConfigProblem): ConfigProblem => {
  const instead = findReplacement(path.replace(/^\$\./, ""));
  return { path, message: instead === undefined ? message : `${message}: ${instead}` };
};

const decode = Schema.decodeUnknownResult(ConfigSchema, parsing);

const toConfigRead = (
  [first, ...others]: ReadonlyArray<ConfigProblem>,
  options: ProgramOptions,
  warnings: ReadonlyArray<ConfigProblem>,
): ConfigRead => {
  if (first !== undefined) return { problems: [first, ...others] };
  return warnings.length === 0 ? { options } : { options, warnings };
};

type Upstream = NonNullable<ConfigParts["upstreams"]>[string];
type Secret = NonNullable<Upstream["credential"]>;

/** Resolves the references of a decoded file and collects its problems. */
class Reader {
  readonly problems: Array<ConfigProblem> = [];
  readonly warnings: Array<ConfigProblem> = [];
  readonly #sources: ConfigSources;

  constructor(sources: ConfigSources) {
    this.#sources = sources;
  }

  /** Builds the options that refer to other keys, files or variables. */
  buildOptions(config: ConfigParts): ProgramOptions {
    const named = Object.entries(config.upstreams ?? {}).map(([name, it]) => this.#readUpstream(name, it));
    const tokens = Object.entries(config.tokens ?? {}).flatMap(([name, it]) => this.#token(name, it, config));
    this.#checkTokens(tokens);
    const tls = this.#readTls(config);
    const routes = this.#readRoutes(config, named);
    const clients = config.clients === undefined ? undefined : this.#clients(config.clients);
    return {
      ...(named.length === 0 ? {} : { named }),
      ...(tokens.length === 0 ? {} : { tokens }),
      ...(routes === undefined ? {} : { routes }),
      ...(tls === undefined ? {} : { tls }),
      ...(clients === undefined ? {} : { clients }),
    };
  }

  /** Decodes each row separately, so that a problem in one row does not hide the problems of other rows. */
  #clients(clients: NonNullable<ConfigParts["clients"]>): ClientOverrides | undefined {
    const rows = clientsOf(clients);
    for (const [name, row] of Object.entries(rows)) {
      const decoded = decodeClients({ [name]: row });
      if (Result.isFailure(decoded)) this.problems.push(...problemsOf(decoded.failure, ["clients"]));
    }
    return Result.getOrUndefined(decodeClients(rows));
  }

  #addProblem(path: JsonPath, message: string | undefined): void {
    if (message !== undefined) this.problems.push(problemAt(path, message));
  }

  #readUpstream(name: string, it: Upstream): UpstreamSettings {
    const at = ["upstreams", name];
    if (!isUpstreamName(name)) this.#addProblem(at, `expected a name of ${upstreamNameWords}`);
    this.#addProblem([...at, "url"], problemOfUrl(it.url));
    this.#checkPaths(at, it.paths);
    if (
      it.paths !== undefined &&
      it.credential === undefined &&
      it.aws === undefined &&
      !Object.keys(it.headers ?? {}).some(isCredentialName)
    )
      this.#addProblem(
        [...at, "paths"],
        "expected only with a credential: without one, the client's own credential decides which paths it may use",
      );
    if (it.protocols?.length === 0) this.#addProblem([...at, "protocols"], "expected at least one protocol");
    const credential = it.credential === undefined ? undefined : this.#readSecret([...at, "credential"], it.credential);
    const aws = it.aws === undefined ? undefined : this.#readAws([...at, "aws"], it.aws, it);
    const proxy = it.proxy === undefined ? undefined : this.#readProxy([...at, "proxy"], it.proxy);
    if (credential !== undefined && !isHeaderText(Redacted.value(credential)))
      this.#addProblem([...at, "credential"], "expected a valid header value");
    const ca = it.ca === undefined ? undefined : this.#readPem([...at, "ca"], it.ca, "CERTIFICATE");
    const clientCert =
      it.client_cert === undefined ? undefined : this.#readPair([...at, "client_cert"], it.client_cert);
    return {
      ...{ name, url: it.url, headers: this.#readHeaders(at, it.headers ?? {}) },
      ...(it.protocols === undefined ? {} : { protocols: it.protocols }),
      ...(it.paths === undefined ? {} : { paths: it.paths }),
      ...(credential === undefined ? {} : { credential }),
      ...(aws === undefined ? {} : { aws }),
      ...(proxy === undefined ? {} : { proxy }),
      ...(ca === undefined ? {} : { ca }),
      ...(clientCert === undefined ? {} : { clientCert }),
      ...(it.tolerance?.done_without_finish === undefined
        ? {}
        : { tolerance: { doneWithoutFinish: it.tolerance.done_without_finish } }),
      ...(it.state === undefined ? {} : { state: it.state }),
      ...(it.linger_ms === undefined ? {} : { lingerMs: it.linger_ms }),
      ...(it.continue_text === undefined ? {} : { continueText: it.continue_text }),
    };
  }

  #readAws(
    at: JsonPath,
    given: NonNullable<Upstream["aws"]>,
    { credential, url }: Pick<Upstream, "credential" | "url">,
  ): AwsCredential | undefined {
    const accessKeyId = this.#readText([...at, "access_key_id"], given.access_key_id);
    const secretAccessKey = this.#readSecret([...at, "secret_access_key"], given.secret_access_key);
    const sessionToken =
      given.session_token === undefined ? undefined : this.#readSecret([...at, "session_token"], given.session_token);
    for (const text of [accessKeyId, sessionToken === undefined ? undefined : Redacted.value(sessionToken)])
      if (text !== undefined && !isHeaderText(text)) this.#addProblem(at, "expected a valid header value");
    if (credential !== undefined) this.#addProblem(at, "expected either `credential` or `aws`");
    if (given.region === undefined && URL.canParse(url) && regionOf(url) === undefined)
      this.#addProblem([...at, "region"], "expected a region, because the host names none");
    if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
    return {
      ...{ accessKeyId, secretAccessKey },
      ...(sessionToken === undefined ? {} : { sessionToken }),
      ...(given.region === undefined ? {} : { region: given.region }),
    };
  }

  #checkPaths(at: JsonPath, paths: ReadonlyArray<string> = []): void {
    const problem = problemOfPaths(paths);
    if (problem !== undefined)
      this.#addProblem([...at, "paths", ...(problem.at === undefined ? [] : [problem.at])], problem.message);
  }

  #readHeaders(at: JsonPath, headers: NonNullable<Upstream["headers"]>): RelayHeaders {
    return Object.entries(headers).flatMap(([name, value]): RelayHeaders => {
      const path = [...at, "headers", name];
      if (!isClientHeader(name)) {
        this.#addProblem(path, "expected the name of a request header");
        return [];
      }
      const isPlain = typeof value === "string" && !isCredentialName(name);
      const text = isPlain ? value : this.#readText(path, value);
      if (text !== undefined && !isHeaderText(text)) this.#addProblem(path, "expected a valid header value");
      return text === undefined ? [] : [[name, text]];
    });
  }

  #readProxy(path: JsonPath, value: Secret): UpstreamSettings["proxy"] {
    if (value === "direct") return value;
    const literal = typeof value === "string";
    const secret = literal && !/@/.test(value) ? value : this.#readText(path, value);
    if (secret === undefined) return undefined;
    if (EgressProxy.read(secret) === undefined) this.#addProblem(path, `expected ${EgressProxy.proxyForm}, or direct`);
    return Redacted.make(secret);
  }

  #token(
    name: string,
    it: NonNullable<ConfigParts["tokens"]>[string],
    { upstreams = {} }: ConfigParts,
  ): ReadonlyArray<GatewayToken> {
    const at = ["tokens", name];
    if (!namePattern.test(name)) this.#addProblem(at, "expected a name of 1 to 32 of a-z, 0-9 and -");
    const known = new Set([...Object.keys(upstreams), ...defaultNames]);
    for (const [n, upstream] of (it.upstreams ?? []).entries())
      if (!known.has(upstream)) this.#addProblem([...at, "upstreams", n], "expected the name of an upstream");
    this.#checkPaths(at, it.paths);
    const token = this.#readText([...at, "token"], it.token);
    if (token === undefined) return [];
    this.#addProblem([...at, "token"], problemOfToken(token));
    return [
      {
        ...{ name, token: Redacted.make(token), page: it.page ?? false, metrics: it.metrics ?? false },
        ...(it.upstreams === undefined ? {} : { upstreams: it.upstreams }),
        ...(it.paths === undefined ? {} : { paths: it.paths }),
      },
    ];
  }

  /** Reports tokens with equal secrets. A client that sends the secret could then have the name and permissions of either token. */
  #checkTokens(tokens: ReadonlyArray<GatewayToken>): void {
    for (const [name, other] of findRepeatedTokens(tokens))
      this.#addProblem(["tokens", name, "token"], `expected a secret that differs from that of the token ${other}`);
  }

  #readRoutes(config: ConfigParts, named: ReadonlyArray<UpstreamSettings>): RouteLists | undefined {
    const lists = routeListsOf(config);
    for (const name of Object.keys(config.moves_on ?? {}))
      if (!Object.hasOwn(lists ?? {}, name))
        this.#addProblem(["moves_on", name], "expected the name of an upstream with routes");
    const servers = [...defaultNames.map((name) => ({ name })), ...named];
    for (const { message, path } of problemsOfRoutes(lists ?? {}, servers))
      this.#addProblem(["routes", ...path], message);
    return lists;
  }

  #readTls({ listen }: ConfigParts): CertificatePair | undefined {
    if (listen?.tls === undefined) return undefined;
    return this.#readPair(["listen", "tls"], listen.tls);
  }

  #readPair(path: JsonPath, files: { readonly cert: string; readonly key: string }): CertificatePair | undefined {
    const cert = this.#readPem([...path, "cert"], files.cert, "CERTIFICATE");
    const key = this.#readPem([...path, "key"], files.key, "PRIVATE KEY");
    if (cert === undefined || key === undefined) return undefined;
    this.#warn([...path, "key"], files.key);
    if (!isReadable({ cert, key })) this.#addProblem(path, "expected a certificate and its key (PEM)");
    return { cert, key: Redacted.make(key) };
  }

  #readPem(path: JsonPath, name: string, what: string): string | undefined {
    const text = this.#sources.file(name);
    const isPem = text?.includes(`${what}-----`) === true;
    if (isPem && (what !== "CERTIFICATE" || isReadable({ cert: text }))) return text;
    this.#addProblem(path, `expected a readable file with a ${what} (PEM)`);
    return undefined;
  }

  /**
   * Warns about a secret file that other users can read. This is only a warning, because container runtimes mount secrets with such
   * permissions.
   */
  #warn(path: JsonPath, secretFile: string): void {
    if (this.#sources.isShared?.(secretFile) === true)
      this.warnings.push(problemAt(path, "others can read or write this secret's file (chmod 600 keeps them out)"));
  }

  #readSecret(path: JsonPath, value: Secret): Redacted.Redacted<string> | undefined {
    const text = this.#readText(path, value);
    return text === undefined ? undefined : Redacted.make(text);
  }

  /** Resolves a secret. If that fails, reports the problem and returns undefined. */
  #readText(path: JsonPath, value: Secret): string | undefined {
    const text = this.#resolveSecret(path, value);
    if (text !== "") return text;
    this.#addProblem(path, "expected a non-empty secret");
    return undefined;
  }

  #resolveSecret(path: JsonPath, value: Secret): string | undefined {
    if (typeof value === "string") {
      if (!this.#sources.shared) return value;
      this.#addProblem(
        path,
        'expected { "env": "NAME" } or { "file": "PATH" }: others can read this file (chmod 600 keeps them out)',
      );
      return undefined;
    }
    if ("env" in value) {
      const text = this.#sources.env(value.env);
      if (text === undefined)
        this.#addProblem([...path, "env"], "expected the name of an environment variable that is set");
      return text;
    }
    const text = this.#sources.file(value.file);
    if (text === undefined) this.#addProblem([...path, "file"], "expected the name of a readable file");
    else this.#warn([...path, "file"], value.file);
    // Editors end a file with a line break, which is not part of the secret.
    return text?.replace(/[\r\n]+$/, "");
  }
}

/** Checks that TLS accepts the PEM text. OpenSSL's error is dropped, because it may quote part of a key. */
const isReadable = (pem: SecureContextOptions): boolean => {
  try {
    createSecureContext(pem);
    return true;
  } catch {
    return false;
  }
};

const decodeClients = Schema.decodeUnknownResult(ClientOverrides, parsing);

/** Reports unknown rules, and actions that are not stricter than the rule's default. */
export const problemsOfPolicy = (policy: StricterRules = {}): ReadonlyArray<ConfigProblem> =>
  Object.entries(policy).flatMap(([rule, action]) => {
    try {
      policyOf({ stricter: { [rule]: action } });
      return [];
    } catch (error) {
      if (!(error instanceof PolicyError)) throw error;
      const isUnknown = error.reason === "unknown_rule";
      const expected = isUnknown ? "expected a rule of the policy" : "expected a stricter action than the rule's own";
      return [problemAt(["policy", rule], expected)];
    }
  });

/** Builds the options that depend only on the file. An option without a key in the file is omitted. */
export const optionsOf = (config: object): ProgramOptions =>
  entries.reduce<ProgramOptions>((options, { apart, key, path, read = (value) => value }) => {
    const value = apart || key === undefined ? undefined : valueAt(config, key);
    return value === undefined ? options : withValue(options, path, read(value));
  }, {});

/** Converts the file's rows to the form of the client table, which validates them. */
export const clientsOf = (clients: NonNullable<ConfigParts["clients"]>): { readonly [name: string]: object } =>
  Object.fromEntries(
    Object.entries(clients).map(([name, { match, ...row }]) => [
      name,
      { ...toCamelCase(row), ...(match === undefined ? {} : { match: toCamelCase(match) }) },
    ]),
  );

const toCamelCase = (row: object): object =>
  Object.fromEntries(
    Object.entries(row).map(([key, value]) => [key.replace(/_([a-z])/g, (_, it: string) => it.toUpperCase()), value]),
  );

/** Builds the route lists of a configuration file; undefined if it has none. */
export const routeListsOf = ({
  moves_on = {},
  routes,
}: Pick<ConfigParts, "moves_on" | "routes">): RouteLists | undefined => {
  const finishes = new Map(Object.entries(moves_on));
  return routes === undefined
    ? undefined
    : Object.fromEntries(
        Object.entries(routes).map(([name, list]) => [
          name,
          { routes: list.map(routeOf), movesOn: [...new Set(finishes.get(name))] },
        ]),
      );
};

type Configured = NonNullable<ConfigParts["routes"]>[string][number];

const routeOf = ({ drop = {}, id, models, set = {}, upstream }: Configured): RouteSettings => ({
  ...{ id: id ?? upstream, upstream },
  ...(models === undefined ? {} : { models }),
  set: { headers: Object.entries(set.headers ?? {}), body: Object.entries(set.body ?? {}) },
  drop: { headers: drop.headers ?? [], body: drop.body ?? [] },
});
