/**
 * Parses the gateway's own path prefixes: `/t/TOKEN`? `/live` or `/on_complete`? `/u/NAME`? and then the provider's path. Each
 * may appear once, in this order.
 *
 * Prefixes are matched exactly. Anything that a more lenient parser could take for one (upper case, percent escapes, leading
 * empty or dot segments) is refused, because forwarding it would send a token to a provider.
 */
import { dropOldest } from "../../domain/Limits.ts";
import { isUpstreamName, upstreamNameWords } from "../config/UpstreamNames.ts";
import type { Refused } from "./Admission.ts";
import { plainPath } from "./Vendor.ts";

/** The parsed path of a request. */
export interface Address {
  /** The token in the path, unverified. */
  readonly token: string | undefined;
  readonly reveal: "live" | "on_complete" | undefined;
  /** The name of an upstream, which may not exist. */
  readonly upstream: string | undefined;
  /** The provider's path, with the query unchanged. */
  readonly target: string;
  /** True if the path is one of the gateway's own: its page, its API or its metrics. */
  readonly own: boolean;
}

/** A path with invalid prefixes. */
export interface NoAddress {
  readonly refused: Refused;
}

/**
 * Parses the prefixes. Results are cached, because most requests use a few paths; a target with a token or a query is not.
 *
 * @param target path and query, as the client sent them
 */
export const addressOf = (target: string): Address | NoAddress => {
  const known = addresses.get(target);
  if (known !== undefined) return known;
  const read = readPrefixes(target);
  if ("refused" in read || read.token !== undefined || target.length > targetCharactersMax || /[?#]/.test(target))
    return read;
  addresses.set(target, read);
  dropOldest(addresses, addressesMax);
  return read;
};

/** Cached addresses, at most `addressesMax`. */
const addresses = new Map<string, Address>();

const addressesMax = 64;

/** Maximum length of a cached target, in characters. */
const targetCharactersMax = 256;

const readPrefixes = (target: string): Address | NoAddress => {
  const end = target.search(/[?#]/);
  const path = end === -1 ? target : target.slice(0, end);
  if (!path.startsWith("/")) return { refused: noProxy };
  const token = tokenIn(path);
  if (token === "") return noAddress("A token follows /t/, as in /t/TOKEN/v1.");
  const behindToken = token === undefined ? path : path.slice("/t/".length + token.length);
  const reveal = /^\/(live|on_complete)(?=\/|$)/.exec(behindToken)?.[1];
  const behindReveal = reveal === undefined ? behindToken : behindToken.slice(1 + reveal.length);
  const upstream = /^\/u(?:\/([^/]*))?(?=\/|$)/.exec(behindReveal);
  const name = upstream?.[1];
  if (upstream !== null && (name === undefined || !isUpstreamName(name))) return noAddress(badName);
  const rest = upstream === null ? behindReveal : behindReveal.slice(upstream[0].length);
  const problem = problemOf(rest, reveal !== undefined || upstream !== null);
  if (problem !== undefined) return noAddress(problem);
  return {
    token,
    reveal: reveal === "live" || reveal === "on_complete" ? reveal : undefined,
    upstream: name,
    target: `${rest === "" ? "/" : rest}${end === -1 ? "" : target.slice(end)}`,
    own: ownPath.test(rest),
  };
};

/** Refuses a client that uses the gateway as a forward proxy. */
export const noProxy: Refused = {
  status: 400,
  reason: "target",
  message: "The gateway is not a forward proxy: set it as the client's base URL.",
};

/** Returns the token of a path that begins with `/t`; undefined for any other path. */
const tokenIn = (path: string): string | undefined => {
  const found = /^\/t(?:\/([^/]*))?(?=\/|$)/.exec(path);
  return found === null ? undefined : (found[1] ?? "");
};

/** The gateway's own paths. Only a token may precede them. */
const ownPath = /^\/(?:recovery|metrics)(?:\/|$)/;

/** Describes a problem of the path after the prefixes. The router refuses paths that cannot be parsed. */
const problemOf = (rest: string, prefixed: boolean): string | undefined => {
  const [, first = ""] = (plainPath(rest) ?? rest).toLowerCase().split("/");
  if (/^(?:t|u|live|on_complete)$/.test(first)) return order;
  if (prefixed && /^(?:recovery|metrics|livez|readyz)$/.test(first)) return ownOnly;
  // A token's permission depends on how a path begins, so dot segments must not lead it elsewhere.
  if (ownPath.test(rest) && plainPath(rest) === undefined) return ownPlain;
  // Forwarding it would send a request for the gateway, for example a Stop, to a provider.
  if (!ownPath.test(rest) && /^(?:recovery|metrics)$/.test(first)) return ownPlain;
  return /^(?:livez|readyz)$/.test(first) ? probe : undefined;
};

const order =
  "The gateway's prefixes precede the provider's path, each at most once, in this order and spelling: /t/TOKEN, then /live or /on_complete, then /u/NAME.";

const ownOnly = "The gateway's own pages accept only the prefix /t/TOKEN, no mode and no upstream.";

const ownPlain = "The gateway's own paths are lower case, without escapes or dot segments.";

const probe = "A probe requests /livez or /readyz, in this spelling and without a token.";

const badName = `An upstream's name follows /u/, as in /u/NAME/v1: ${upstreamNameWords}.`;

const noAddress = (message: string): NoAddress => ({ refused: { status: 404, reason: "address", message } });
