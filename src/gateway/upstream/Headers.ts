/**
 * Says which headers of a request and of a response are for the next hop only, or for an origin that the gateway's is not, and
 * hands on all others as they came: their spelling, their order, and each of those that come more than once.
 */
import { isNamed, type RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
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

/** RFC 9110, 7.6.1, and what older software still sends. */
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

/** Headers of a request that end at the gateway. `Expect` was answered here. */
const own: ReadonlySet<string> = new Set([
  ...["host", "expect", "content-length"],
  ...[tokenHeader, revealHeader, routeHeader, moveHeader, groupHeader, lingerHeader, attachHeader, continueTextHeader],
]);

/** A browser keeps cookies a host name, whatever the port: those of this machine's other programs are no provider's. */
const cookies: ReadonlySet<string> = new Set(["cookie", "cookie2"]);

const endsHere: ReadonlySet<string> = new Set([...own, ...cookies]);

/**
 * Headers by which a response acts on the whole origin that it comes from, or on the server in front of it. An upstream has
 * its own origin, and no say in the gateway's: cookies, workers, stored data, other sites' access, TLS, other addresses; and
 * the files that nginx, Apache or lighttpd would send in a response's place.
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

/** Headers of every response that an upstream wrote: for a browser it is no document, script or worker of this origin. */
const guarding: RelayHeaders = [
  ["x-content-type-options", "nosniff"],
  ["content-security-policy", "sandbox; default-src 'none'"],
];

/** Begins the headers of a response that are the gateway's own word: an upstream's would be taken for it. */
const ownPrefix = "x-recovery-";

/**
 * Reads the pairs of a flat list of names and values.
 *
 * @param flat as Node and undici give them
 */
export const pairsOf = (flat: ReadonlyArray<string | Buffer>): RelayHeaders => {
  const pairs: Array<readonly [string, string]> = [];
  for (let at = 0; at + 1 < flat.length; at += 2) pairs.push([textOf(flat[at]), textOf(flat[at + 1])]);
  return pairs;
};

/**
 * The headers of a request that go on.
 *
 * @param plain asks for a response without content encoding: its events are read on the way
 */
export const forwarded = (headers: RelayHeaders, plain: boolean): RelayHeaders => {
  const passed = endToEnd(headers, (name) => !endsHere.has(name) && !(plain && name === "accept-encoding"));
  return plain ? [...passed, ["accept-encoding", "identity"]] : passed;
};

/** The headers of an upstream's response that go on to a client, and those that guard a browser. */
export const handedOn = (headers: RelayHeaders): RelayHeaders => [
  ...endToEnd(
    headers,
    (name) => !ofOrigin.has(name) && !name.startsWith(ownPrefix) && name !== "x-content-type-options",
  ),
  ...guarding,
];

/**
 * The headers of an event stream, which nothing on the way may collect or change: a client would wait for events and comments
 * that were sent. What the provider says of caching stays.
 */
export const unbuffered = (headers: RelayHeaders): RelayHeaders => {
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

/** Whether a response is an event stream by its own word. */
export const isEventStream = (headers: RelayHeaders): boolean =>
  headers.some(([name, value]) => isNamed(name, "content-type") && /^\s*text\/event-stream\b/i.test(value));

/** Headers that can be written: a name is a token, and a value has no control characters (RFC 9110, 5.1 and 5.5). */
export const sendable = (headers: RelayHeaders): RelayHeaders =>
  headers.filter(([name, value]) => /^[\w!#$%&'*+.^`|~-]+$/.test(name) && isText(value));

/** A reason phrase that can be written. Bytes beyond ASCII were lost on the way here, in undici's reading. */
export const reasonPhrase = (text: string): string =>
  isText(text) ? text : text.replaceAll(/[^\t\u0020-\u007e\u0080-\u00ff]/g, "?");

const isText = (value: string): boolean => /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value);

/**
 * The headers of a message that are not for one hop only.
 *
 * @param also asked of a name in lower case: whether such headers go on, where they may
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

/** All headers but those of a name, in lower case. */
export const without = (headers: RelayHeaders, name: string): RelayHeaders =>
  headers.filter(([given]) => !isNamed(given, name));

/** Header values are bytes; those above ASCII stay what they are (RFC 9110, 5.5). */
const textOf = (value: string | Buffer | undefined): string =>
  typeof value === "string" ? value : (value?.toString("latin1") ?? "");
