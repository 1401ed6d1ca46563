/**
 * Says which headers of a request and of a response are for the next hop only, and hands on all others as they came: their
 * spelling, their order, and each of those that come more than once.
 */
import type { RelayHeaders } from "../adapters/RelayTransport.ts";

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

/** Headers of a request that concern the gateway and nobody behind it. `Expect` was answered here. */
const own: ReadonlySet<string> = new Set(["host", "expect", "content-length", "x-recovery-token"]);

/** The header that carries a gateway's token. */
export const tokenHeader = "x-recovery-token";

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
 * @param plain asks for an answer without content encoding: its events are read on the way
 */
export const forwarded = (headers: RelayHeaders, plain: boolean): RelayHeaders => {
  const passed = endToEnd(headers).filter(([name]) => !own.has(name.toLowerCase()));
  if (!plain) return passed;
  return [...without(passed, "accept-encoding"), ["accept-encoding", "identity"]];
};

/** The headers of a response that go on. */
export const endToEnd = (headers: RelayHeaders): RelayHeaders => {
  const named = new Set<string>();
  for (const [name, value] of headers) {
    if (name.toLowerCase() !== "connection") continue;
    for (const word of value.split(",")) named.add(word.trim().toLowerCase());
  }
  return headers.filter(([name]) => {
    const key = name.toLowerCase();
    return !hopByHop.has(key) && !named.has(key);
  });
};

/** All headers but those of a name, in lower case. */
export const without = (headers: RelayHeaders, name: string): RelayHeaders =>
  headers.filter(([key]) => key.toLowerCase() !== name);

/** Header values are bytes; those above ASCII stay what they are (RFC 9110, 5.5). */
const textOf = (value: string | Buffer | undefined): string =>
  typeof value === "string" ? value : (value?.toString("latin1") ?? "");
