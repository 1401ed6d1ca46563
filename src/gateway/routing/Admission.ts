/**
 * Decides which requests the gateway takes: by their token, by the name that they call it, and by the page that a browser sends them from.
 *
 * A page on the web can make a browser call 127.0.0.1. Without a key it gains nothing from a provider, but it could read the
 * record of runs and answer questions. So a local gateway answers to this machine's names only (a rebound DNS name says its
 * own), and no request that a browser says comes from another site is taken.
 */
import { timingSafeEqual } from "node:crypto";
import { headerOf, type RelayHeaders, readAddress, valuesOf } from "../../adapters/relay/RelayTransport.ts";
import { type AdmittedToken, digestOf, type GatewaySettings } from "../config/GatewayOptions.ts";
import { tokenHeader } from "../config/OwnHeaders.ts";

/** A request that may go on. */
export interface Admitted {
  /** The token that it was admitted by; none where the gateway has no tokens. */
  readonly token: AdmittedToken | undefined;
}

/** The words with which the gateway itself refuses a request: docs/gateway.md lists them. */
export const refusedReasons = [
  "token",
  "host",
  "origin",
  "body",
  "busy",
  "share",
  "slow",
  "closing",
  "target",
  "address",
  "permission",
  "path",
  "reveal",
  "continue_text",
  "group",
  "linger",
  "attach",
  "route",
  "vendor",
  "browser",
  "upgrade",
  "method",
  "coding",
  "not_found",
  "page",
  "upstream_failed",
  "unavailable",
  "defect",
  "stream",
  "evicted",
  "broken",
  "offset",
  "unreached",
  "unheard",
] as const;

/** One of these words. */
export type RefusedReason = (typeof refusedReasons)[number];

/** A request that may not go on, and why, in words for the person who set the client up. */
export interface Refused {
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 410 | 413 | 426 | 429 | 500 | 501 | 502 | 503 | 504;
  readonly reason: RefusedReason;
  readonly message: string;
  /** The code of the error in a document of OpenAI's; left out, it is the reason. */
  readonly code?: string | undefined;
  /** Headers that the status demands. */
  readonly headers?: RelayHeaders;
}

/** What of a request is looked at. */
export interface RequestHead {
  readonly method: string;
  readonly headers: RelayHeaders;
  /** The token of its path. */
  readonly token?: string | undefined;
}

/** Looks at a request. */
export const admit = (
  request: RequestHead,
  settings: Pick<GatewaySettings, "allowedHosts" | "local" | "tokens">,
): Admitted | Refused => {
  const { tokens } = settings;
  if (tokens.length === 0 && request.token !== undefined) return noToken;
  const token = tokenOf(headerOf(request.headers, tokenHeader) ?? request.token, tokens);
  if (tokens.length > 0 && token === undefined)
    return {
      status: 401,
      reason: "token",
      message: `The gateway's token is missing or wrong: send it as ${tokenHeader}.`,
    };
  if (!isKnownHost(request.headers, settings))
    return {
      status: 403,
      reason: "host",
      message: "The gateway does not serve this Host; --allow-host names others.",
    };
  if (isCrossSite(request))
    return {
      status: 403,
      reason: "origin",
      message: "The gateway takes no requests that a browser sends for another site.",
    };
  return unserved(request) ?? { token };
};

/** Methods and upgrades that the gateway does not serve at any path. What it cannot serve it does not turn into something else. */
const unserved = ({ headers, method }: RequestHead): Refused | undefined => {
  // Both send a request back as it came, its credentials too, to whatever asked for it.
  if (method === "TRACE" || method === "TRACK") return { ...noMethod, headers: [["allow", methods]] };
  // Node takes `chunked` off, and nothing else: a body of another coding would be sent on as if it had none.
  const codings = valuesOf(headers, "transfer-encoding").flatMap((value) => value.split(","));
  if (codings.some((word) => !/^(?:chunked|)$/i.test(word.trim()))) return noCoding;
  const upgrades = valuesOf(headers, "upgrade").flatMap((value) => value.split(","));
  // A server may leave these two unanswered (RFC 9110, 7.8), and Java's client asks for h2c with every request.
  const asked = upgrades
    .map((word) => word.trim().toLowerCase())
    .filter((word) => !/^(?:h2c|tls\/[\d.]+|)$/.test(word));
  // A proxy in front may have taken the hop-by-hop part of a WebSocket's request away.
  const isSocket = headerOf(headers, "sec-websocket-key") !== undefined;
  return asked.length > 0 || isSocket ? noUpgrade : undefined;
};

const methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

const noMethod: Refused = { status: 405, reason: "method", message: "The gateway does not serve this method." };

/** RFC 9112, 6.1: a server that does not know a coding says so. */
const noCoding: Refused = {
  status: 501,
  reason: "coding",
  message: "The gateway takes bodies in chunks and with a length: send this one without another Transfer-Encoding.",
};

const noUpgrade: Refused = {
  status: 426,
  reason: "upgrade",
  message: "The gateway does not serve WebSockets or other upgrades: use the same API over HTTP.",
  headers: [
    ["upgrade", "HTTP/1.1"],
    ["connection", "close"],
  ],
};

/** What a browser loads without a script that asked for it, and with a link. `empty` is what a script asks for. */
const isLoaded = (destination: string): boolean => destination !== "" && destination !== "empty";

/**
 * Refuses what a browser asks for by itself: a page, a frame, an image, a script, a worker. An upstream's response would
 * become a document of the gateway's own origin, where the record of runs is read and questions are answered.
 *
 * @returns undefined for a request of a program
 */
export const browsed = ({ headers }: Pick<RequestHead, "headers">, query: string): Refused | undefined => {
  const has = (name: string) => headerOf(headers, name) !== undefined;
  const navigates =
    /^(?:navigate|nested-navigate|websocket)$/.test(headerOf(headers, "sec-fetch-mode") ?? "") ||
    isLoaded(headerOf(headers, "sec-fetch-dest") ?? "") ||
    has("service-worker") ||
    has("upgrade-insecure-requests") ||
    /prefetch|prerender/.test(`${headerOf(headers, "sec-purpose")} ${headerOf(headers, "purpose")}`);
  // A browser that does not say what it loads asks for a page so, and has no key of a provider.
  const asksForPage = /\btext\/html\b/i.test(headerOf(headers, "accept") ?? "") && !isKeyed(headers, query);
  return navigates || asksForPage ? onlyPrograms : undefined;
};

const isKeyed = (headers: RelayHeaders, query: string): boolean =>
  headers.some(([name]) => /^(?:authorization|api-key|x-api-key|x-goog-api-key)$/i.test(name)) ||
  /[?&](?:api-key|key)=/.test(query);

const onlyPrograms: Refused = {
  status: 403,
  reason: "browser",
  message: "A browser may open the gateway's own page, /recovery/, and nothing that a provider sends.",
};

/** A path that begins with `/t/` is the gateway's own, also where there is nothing at it: it holds a secret. */
const noToken: Refused = {
  status: 404,
  reason: "address",
  message: "This gateway has no tokens: nothing stands behind /t/.",
};

/** The token that a client's is. All are compared, and each in constant time. */
const tokenOf = (given: string | undefined, tokens: ReadonlyArray<AdmittedToken>): AdmittedToken | undefined => {
  if (given === undefined) return undefined;
  const digest = digestOf(given);
  const same = tokens.filter((token) => timingSafeEqual(digest, token.digest));
  return same[0];
};

/** What a request asks for, as a token permits it. */
export type Asked = { readonly own: "page" | "metrics" } | { readonly upstream: string };

/**
 * Refuses what the token of a request does not permit.
 *
 * @param token none where the gateway has no tokens: then all is permitted
 */
export const forbidden = (token: AdmittedToken | undefined, asked: Asked): Refused | undefined => {
  if (token === undefined) return undefined;
  const permits =
    "own" in asked ? token[asked.own] : token.upstreams === undefined || token.upstreams.includes(asked.upstream);
  if (permits) return undefined;
  const what = "upstream" in asked ? `the upstream ${asked.upstream}` : ownWords[asked.own];
  return { status: 403, reason: "permission", message: `The token ${token.name} does not permit ${what}.` };
};

const ownWords = { page: "the gateway's page and its API", metrics: "the gateway's metrics" } as const;

/** With a token on another address the Host proves nothing that the token does not. Two of them prove nothing either. */
const isKnownHost = (
  headers: RelayHeaders,
  { allowedHosts, local }: Pick<GatewaySettings, "allowedHosts" | "local">,
): boolean => {
  const [host, ...others] = valuesOf(headers, "host");
  if (others.length > 0) return false;
  if (!local && allowedHosts.length === 0) return true;
  const name = nameOf(host);
  if (name === undefined) return false;
  return (
    name === "localhost" ||
    name === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(name) ||
    allowedHosts.some((allowed) => allowed.toLowerCase() === name)
  );
};

/**
 * Whether a probe may call the gateway so: by a name that it has, by an address (a kubelet says that of the pod), or by none, as
 * probes in HTTP/1.0 do. A name that is another machine's may be a rebound one.
 */
export const isProbeHost = (
  headers: RelayHeaders,
  settings: Pick<GatewaySettings, "allowedHosts" | "local">,
): boolean => {
  const hosts = valuesOf(headers, "host");
  const name = nameOf(hosts[0]);
  if (hosts.length === 0 || hosts[0] === "") return true;
  const isAddress = name !== undefined && (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(name) || name.startsWith("["));
  return (hosts.length === 1 && isAddress) || isKnownHost(headers, settings);
};

/** Whether the Host is a name or an address with a port at most: user information or a path would change whose name is read from it. */
export const hasPlainHost = (headers: RelayHeaders): boolean =>
  valuesOf(headers, "host").every((host) => /^(?:[\w.-]*|\[[\w.:%-]*\])(?::\d*)?$/.test(host));

/** The refusal of such a Host. */
export const strangeHost: Refused = {
  status: 400,
  reason: "host",
  message: "The Host is a name or an address, with a port at most.",
};

const nameOf = (host: string | undefined): string | undefined =>
  host === undefined ? undefined : readAddress(`http://${host}`)?.hostname;

const isCrossSite = ({ headers, method }: RequestHead): boolean => {
  const origins = valuesOf(headers, "origin");
  const host = headerOf(headers, "host");
  if (origins.length > 0)
    return !origins.every((origin) => origin === `http://${host}` || origin === `https://${host}`);
  // A link that a person follows to the page comes from anywhere; what it loads does not.
  const site = headerOf(headers, "sec-fetch-site") ?? "none";
  const navigates = method === "GET" && headerOf(headers, "sec-fetch-mode") === "navigate";
  return site !== "none" && site !== "same-origin" && !navigates;
};
