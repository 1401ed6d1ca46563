/**
 * Decides which requests the gateway accepts, by their token, their Host and the site from which a browser sends them.
 *
 * Any web page can make a browser call 127.0.0.1. Without a key the page gets nothing from a provider, but it could read recorded runs and
 * answer questions. A local gateway therefore accepts only this machine's own names as Host (a DNS name that was rebound to this machine
 * differs), and refuses requests that the browser marks as cross-site.
 */
import { timingSafeEqual } from "node:crypto";
import { headerOf, type RelayHeaders, readAddress, valuesOf } from "../../adapters/relay/RelayTransport.ts";
import { type AdmittedToken, digestOf, type GatewaySettings } from "../config/GatewayOptions.ts";
import { tokenHeader } from "../config/OwnHeaders.ts";

/** A request that the gateway accepts. */
export interface Admitted {
  /** The request's token; undefined if the gateway has no tokens. */
  readonly token: AdmittedToken | undefined;
}

/** Reasons for which the gateway itself refuses a request. docs/gateway.md lists them. */
export const refusedReasons = [
  "token",
  "host",
  "origin",
  "body",
  "busy",
  "share",
  "slow",
  "closing",
  "store_away",
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
  "unreachable",
] as const;

/** Reason of a refusal, as the header `x-recovery-refused` names it. */
export type RefusedReason = (typeof refusedReasons)[number];

/** A refused request, with a message for the person who configured the client. */
export interface Refused {
  readonly status: 400 | 401 | 403 | 404 | 405 | 408 | 410 | 413 | 426 | 429 | 500 | 501 | 502 | 503 | 504;
  readonly reason: RefusedReason;
  readonly message: string;
  /** Error code in OpenAI's format. Default: the reason. */
  readonly code?: string | undefined;
  /** Headers that the status requires, for example `allow`. */
  readonly headers?: RelayHeaders;
}

/** The parts of a request that admission checks. */
export interface RequestHead {
  readonly method: string;
  readonly headers: RelayHeaders;
  /** Token in the request's path. */
  readonly token?: string | undefined;
}

/** Accepts or refuses a request by its head. */
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
      message: `The gateway's token is missing or wrong: send it in ${tokenHeader}.`,
    };
  if (!isKnownHost(request.headers, settings))
    return {
      status: 403,
      reason: "host",
      message: "The gateway does not serve this Host; --allow-host permits more.",
    };
  if (isCrossSite(request))
    return {
      status: 403,
      reason: "origin",
      message: "The gateway refuses requests that a browser sends for another site.",
    };
  return refuseUnserved(request) ?? { token };
};

/** Refuses methods, transfer codings and upgrades that the gateway does not support. Forwarding such a request would change its meaning. */
const refuseUnserved = ({ headers, method }: RequestHead): Refused | undefined => {
  // Responses to both methods contain the request with its credentials, which a web page could then read.
  if (method === "TRACE" || method === "TRACK") return { ...noMethod, headers: [["allow", methods]] };
  // Node decodes only `chunked`. A body with another transfer coding would be forwarded as if it had no coding.
  const codings = valuesOf(headers, "transfer-encoding").flatMap((value) => value.split(","));
  if (codings.some((word) => !/^(?:chunked|)$/i.test(word.trim()))) return noCoding;
  const upgrades = valuesOf(headers, "upgrade").flatMap((value) => value.split(","));
  // A server may ignore requests to upgrade to h2c or TLS (RFC 9110, 7.8). Java's client asks for h2c every time.
  const asked = upgrades
    .map((word) => word.trim().toLowerCase())
    .filter((word) => !/^(?:h2c|tls\/[\d.]+|)$/.test(word));
  // A proxy may have removed the hop-by-hop headers of a WebSocket request, but not `sec-websocket-key`.
  const isSocket = headerOf(headers, "sec-websocket-key") !== undefined;
  return asked.length > 0 || isSocket ? noUpgrade : undefined;
};

const methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

const noMethod: Refused = { status: 405, reason: "method", message: "The gateway does not serve this method." };

/** The status 501 for an unknown transfer coding is required by RFC 9112, 6.1. */
const noCoding: Refused = {
  status: 501,
  reason: "coding",
  message:
    "The gateway accepts chunked bodies and bodies with a length: send this one without any other Transfer-Encoding.",
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

/**
 * True for a destination that a browser loads without a script, for example by following a link. The destination of a script's request is
 * `empty`.
 */
const isLoaded = (destination: string): boolean => destination !== "" && destination !== "empty";

/**
 * Refuses requests that a browser makes without a script: for a page, a frame, an image, a script or a worker. Otherwise an upstream's
 * response would become a document of the gateway's origin, which may read recorded runs and answer questions.
 *
 * @returns undefined for a request of a program
 */
export const refuseBrowser = ({ headers }: Pick<RequestHead, "headers">, query: string): Refused | undefined => {
  const has = (name: string) => headerOf(headers, name) !== undefined;
  const navigates =
    /^(?:navigate|nested-navigate|websocket)$/.test(headerOf(headers, "sec-fetch-mode") ?? "") ||
    isLoaded(headerOf(headers, "sec-fetch-dest") ?? "") ||
    has("service-worker") ||
    has("upgrade-insecure-requests") ||
    /prefetch|prerender/.test(`${headerOf(headers, "sec-purpose")} ${headerOf(headers, "purpose")}`);
  // In a browser without Sec-Fetch headers, a navigation accepts HTML and has no provider key.
  const asksForPage = /\btext\/html\b/i.test(headerOf(headers, "accept") ?? "") && !isKeyed(headers, query);
  return navigates || asksForPage ? onlyPrograms : undefined;
};

const isKeyed = (headers: RelayHeaders, query: string): boolean =>
  headers.some(([name]) => /^(?:authorization|api-key|x-api-key|x-goog-api-key)$/i.test(name)) ||
  /[?&](?:api-key|key)=/.test(query);

const onlyPrograms: Refused = {
  status: 403,
  reason: "browser",
  message: "A browser may open only the gateway's own page, /recovery/, and no provider's response.",
};

/** Refusal of a path that starts with `/t/` at a gateway without tokens. Such a path is never forwarded, because it contains a secret. */
const noToken: Refused = {
  status: 404,
  reason: "address",
  message: "This gateway has no tokens, so omit /t/TOKEN from the base URL.",
};

/** Finds the matching token. The digests of all tokens are compared, in constant time. */
const tokenOf = (given: string | undefined, tokens: ReadonlyArray<AdmittedToken>): AdmittedToken | undefined => {
  if (given === undefined) return undefined;
  const digest = digestOf(given);
  const same = tokens.filter((token) => timingSafeEqual(digest, token.digest));
  return same[0];
};

/** The resource for which a request needs permission. */
export type Asked = { readonly own: "page" | "metrics" } | { readonly upstream: string };

/**
 * Refuses a request that its token does not permit.
 *
 * @param token undefined if the gateway has no tokens, which permits everything
 */
export const forbiddenRefusal = (token: AdmittedToken | undefined, asked: Asked): Refused | undefined => {
  if (token === undefined) return undefined;
  const permits =
    "own" in asked ? token[asked.own] : token.upstreams === undefined || token.upstreams.includes(asked.upstream);
  if (permits) return undefined;
  const what = "upstream" in asked ? `the upstream ${asked.upstream}` : ownWords[asked.own];
  return { status: 403, reason: "permission", message: `The token ${token.name} does not permit ${what}.` };
};

const ownWords = { page: "the gateway's page and its API", metrics: "the gateway's metrics" } as const;

/**
 * True if the Host of a request is permitted. A gateway on a non-local address always has tokens, so there the Host is checked only if
 * `allowedHosts` is set. Several Host headers are always refused.
 */
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
 * True if the Host of a probe is permitted: a known name, an IP address (a kubelet sends the pod's), or none, as in probes with HTTP/1.0.
 * Any other name may be a rebound DNS name.
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

/**
 * True if each Host is a name or an address, with an optional port. If it also had user information or a path, parsers could read different
 * names in it.
 */
export const hasPlainHost = (headers: RelayHeaders): boolean =>
  valuesOf(headers, "host").every((host) => /^(?:[\w.-]*|\[[\w.:%-]*\])(?::\d*)?$/.test(host));

/** Refusal of a malformed Host. */
export const strangeHost: Refused = {
  status: 400,
  reason: "host",
  message: "Host: expected one name or address, with an optional port.",
};

const nameOf = (host: string | undefined): string | undefined =>
  host === undefined ? undefined : readAddress(`http://${host}`)?.hostname;

const isCrossSite = ({ headers, method }: RequestHead): boolean => {
  const origins = valuesOf(headers, "origin");
  const host = headerOf(headers, "host");
  if (origins.length > 0)
    return !origins.every((origin) => origin === `http://${host}` || origin === `https://${host}`);
  // A person may follow a link to the page from any site. Requests of the page itself are same-origin.
  const site = headerOf(headers, "sec-fetch-site") ?? "none";
  const navigates = method === "GET" && headerOf(headers, "sec-fetch-mode") === "navigate";
  return site !== "none" && site !== "same-origin" && !navigates;
};
