/**
 * Removes the headers that are for the next hop only, or that would act on the gateway's origin. All others pass unchanged:
 * spelling, order and duplicates.
 */

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { isNamed, type RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { signatureOf } from "../../adapters/relay/RequestSignature.ts";
import {
  attachHeader,
  continueTextHeader,
  groupHeader,
  lingerHeader,
  moveHeader,
  revealHeader,
  routeHeader,
  tokenHeader,
} from "../config/OwnHeaders.ts";

/** Hop-by-hop headers of RFC 9110, 7.6.1, and those that older software still sends. */
const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const lengthHeader = "content-length";

/** Request headers that end at the gateway, which has already answered `Expect`. */
const own: ReadonlySet<string> = new Set([
  ...["host", "expect", lengthHeader],
  ...[tokenHeader, revealHeader, routeHeader, moveHeader, groupHeader, lingerHeader, attachHeader, continueTextHeader],
]);

/** A browser shares cookies among all ports of a host name, so a cookie may belong to another program on this machine. */
const cookies: ReadonlySet<string> = new Set(["cookie", "cookie2"]);

const endsHere: ReadonlySet<string> = new Set([...own, ...cookies]);

/**
 * Headers that let a response act on its whole origin, or on the server in front of it. An upstream must not control the gateway's
 * origin: cookies, workers, stored data, other sites' access, TLS, other addresses, and the files that nginx, Apache or lighttpd
 * would send in place of a response.
 */
const ofOrigin: ReadonlySet<string> = new Set([
  "access-control-allow-credentials",
  "access-control-allow-headers",
  "access-control-allow-methods",
  "access-control-allow-origin",
  "access-control-allow-private-network",
  "alt-svc",
  "clear-site-data",
  "nel",
  "public-key-pins",
  "refresh",
  "report-to",
  "reporting-endpoints",
  "service-worker-allowed",
  "set-cookie",
  "set-cookie2",
  "set-login",
  "strict-transport-security",
  "x-accel-redirect",
  "x-lighttpd-send-file",
  "x-reproxy-url",
  "x-sendfile",
]);

/** Headers added to every upstream response, so that a browser never treats it as a document, script or worker of this origin. */
const guarding: RelayHeaders = [
  ["x-content-type-options", "nosniff"],
  ["content-security-policy", "sandbox; default-src 'none'"],
];

/**
 * The prefix of the gateway's own response headers. Upstream headers with this prefix are removed, because clients would take them for the
 * gateway's.
 */
const ownPrefix = "x-recovery-";

/**
 * Reads the pairs of a flat list of names and values.
 *
 * @param flat the list that Node and undici supply
 */
export const pairsOf = (flat: ReadonlyArray<string | Buffer>): RelayHeaders => {
  const pairs: Array<readonly [string, string]> = [];
  for (let at = 0; at + 1 < flat.length; at += 2) pairs.push([textOf(flat[at]), textOf(flat[at + 1])]);
  return pairs;
};

/**
 * Returns the headers of a client's request, without its length.
 *
 * Nearly every request of a connection repeats the headers of the one before. Such requests share one list, so that everything that is
 * derived from a list is derived once.
 */
export const requestHeadersOf = ({
  rawHeaders,
  socket,
}: Pick<IncomingMessage, "rawHeaders" | "socket">): RelayHeaders => {
  const known = lastOn.get(socket);
  if (known !== undefined && isSame(known, rawHeaders)) return known;
  const headers = without(pairsOf(rawHeaders), lengthHeader);
  lastOn.set(socket, headers);
  return headers;
};

/** The headers of the last request on each connection. */
const lastOn = new WeakMap<Socket, RelayHeaders>();

const isSame = (known: RelayHeaders, flat: ReadonlyArray<string>): boolean => {
  let count = 0;
  for (let at = 0; at + 1 < flat.length; at += 2) {
    const name = flat[at] ?? "";
    if (isNamed(name, lengthHeader)) continue;
    const pair = known[count];
    if (pair?.[0] !== name || pair[1] !== flat[at + 1]) return false;
    count += 1;
  }
  return count === known.length;
};

/**
 * Returns the headers of a request that are forwarded.
 *
 * @param plain true to ask for a response without content encoding, because its events are read on the way
 */
export const upstreamHeadersOf = (headers: RelayHeaders, plain: boolean): RelayHeaders => {
  // A signed header stays, because the signature would be refused without it. The response is then decoded on the way.
  const replaces = plain && !isSignedHeader(headers, "accept-encoding");
  const passed = endToEnd(headers, (name) => !endsHere.has(name) && !(replaces && name === "accept-encoding"));
  return replaces ? [...passed, ["accept-encoding", "identity"]] : passed;
};

/** Returns the headers that are forwarded with a model request as a flat list, once per list of headers. */
export const flatUpstreamHeadersOf = (headers: RelayHeaders): ReadonlyArray<string> => {
  const known = upstreamLists.get(headers);
  if (known !== undefined) return known;
  const flat = flatOf(upstreamHeadersOf(headers, true));
  upstreamLists.set(headers, flat);
  return flat;
};

const upstreamLists = new WeakMap<RelayHeaders, ReadonlyArray<string>>();

const isSignedHeader = (headers: RelayHeaders, name: string): boolean =>
  signatureOf({ headers, url: "" })?.headers.includes(name) === true;

/** Returns the headers of an upstream's response that are forwarded to a client, and adds those that protect a browser. */
export const clientHeadersOf = (headers: RelayHeaders): RelayHeaders => [
  ...endToEnd(
    headers,
    (name) => !ofOrigin.has(name) && !name.startsWith(ownPrefix) && name !== "x-content-type-options",
  ),
  ...guarding,
];

/**
 * Adds headers to an event stream that ask proxies neither to buffer nor to change it. A proxy that buffers would make the client wait for
 * events and comments that were sent. The provider's own caching directives stay.
 */
export const withoutBuffering = (headers: RelayHeaders): RelayHeaders => {
  const stays: Array<readonly [string, string]> = [];
  let isSaid = headers.some(([name, value]) => isNamed(name, "cache-control") && /\bno-transform\b/i.test(value));
  for (const header of headers) {
    const [name, value] = header;
    if (isNamed(name, "x-accel-buffering")) continue;
    const says = !isSaid && isNamed(name, "cache-control");
    stays.push(says ? [name, value.trim() === "" ? "no-transform" : `${value}, no-transform`] : header);
    isSaid ||= says;
  }
  if (!isSaid) stays.push(["cache-control", "no-transform"]);
  stays.push(["x-accel-buffering", "no"]);
  return stays;
};

/** True if the response declares itself a stream of events: server-sent events, or lines of JSON. */
export const isEventStream = (headers: RelayHeaders): boolean =>
  headers.some(([name, value]) => isNamed(name, "content-type") && eventStreams.test(value));

const eventStreams = /^\s*(?:text\/event-stream|application\/x-ndjson|application\/vnd\.amazon\.eventstream)\b/i;

/** Flattens headers to a list of names and values, which Node and undici write. */
export const flatOf = (headers: RelayHeaders): Array<string> => {
  const flat: Array<string> = [];
  for (const [name, value] of headers) flat.push(name, value);
  return flat;
};

/**
 * Flattens the headers that can be written. A name must be a token, and a value must not contain control characters (RFC 9110, 5.1 and
 * 5.5).
 */
export const sendable = (headers: RelayHeaders): Array<string> =>
  flatOf(headers.filter(([name, value]) => /^[\w!#$%&'*+.^`|~-]+$/.test(name) && isText(value)));

/** Replaces characters of a reason phrase that cannot be written. undici has already lost bytes beyond ASCII. */
export const reasonPhrase = (text: string): string =>
  isText(text) ? text : text.replaceAll(/[^\t\u0020-\u007e\u0080-\u00ff]/g, "?");

const isText = (value: string): boolean => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value);

/**
 * Removes the hop-by-hop headers of a message.
 *
 * @param also a further condition on the name, in lower case, for a header to be kept
 */
export const endToEnd = (headers: RelayHeaders, also: (name: string) => boolean = () => true): RelayHeaders => {
  const named: Array<string> = [];
  for (const [name, value] of headers)
    if (isNamed(name, "connection")) for (const word of value.split(",")) named.push(word.trim().toLowerCase());
  return headers.filter(([given]) => {
    const name = given.toLowerCase();
    return !hopByHop.has(name) && !named.includes(name) && also(name);
  });
};

/** Removes all headers of a name, given in lower case. */
export const without = (headers: RelayHeaders, name: string): RelayHeaders =>
  headers.filter(([given]) => !isNamed(given, name));

/** Decodes a header value. Bytes above ASCII keep their value (RFC 9110, 5.5). */
const textOf = (value: string | Buffer | undefined): string =>
  typeof value === "string" ? value : (value?.toString("latin1") ?? "");
