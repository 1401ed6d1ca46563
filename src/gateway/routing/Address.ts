/**
 * Parses the gateway's own path prefixes: optionally `/t/TOKEN`, then optionally `/live` or `/on_complete`, then optionally `/u/NAME`, and
 * then the provider's path.
 *
 * Prefixes must be written exactly. If a more lenient parser might recognise a prefix (in upper case, with percent escapes, after empty or
 * dot segments), the path is refused, because forwarding it would send a token to a provider.
 */
import { dropOldest } from "../../domain/Limits.ts";
import { isUpstreamName, upstreamNameWords } from "../config/UpstreamNames.ts";
import type { Refused } from "./Admission.ts";
import { plainPath } from "./Vendor.ts";

/** A parsed path of a request. */
export interface Address {
  /** Token in the path. It has not been verified. */
  readonly token: string | undefined;
  readonly reveal: "live" | "on_complete" | undefined;
  /** Name of an upstream. The upstream may not exist. */
  readonly upstream: string | undefined;
  /** The provider's path, and the unchanged query. */
  readonly target: string;
  /** True if the path belongs to the gateway itself: its page, its API or its metrics. */
  readonly own: boolean;
}

/** The refusal of a path with invalid prefixes. */
export interface NoAddress {
  readonly refused: Refused;
}

/**
 * Parses the prefixes. Results are cached, because most requests have one of a few paths. Targets with a token or a query are not cached.
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

/** Cache of addresses, at most `addressesMax`. */
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

/** Refusal of a client that uses the gateway as a forward proxy. */
export const noProxy: Refused = {
  status: 400,
  reason: "target",
  message: "The gateway is not a forward proxy: set it as the client's base URL.",
};

/** Returns the token of a path that starts with `/t`, which may be empty; undefined for any other path. */
const tokenIn = (path: string): string | undefined => {
  const found = /^\/t(?:\/([^/]*))?(?=\/|$)/.exec(path);
  return found === null ? undefined : (found[1] ?? "");
};

/** Matches the gateway's own paths. The only prefix that they may have is a token. */
const ownPath = /^\/(?:recovery|metrics)(?:\/|$)/;

/**
 * Describes the problem of the path after the prefixes; undefined if there is none. Paths that cannot be parsed are refused by the router.
 */
const problemOf = (rest: string, prefixed: boolean): string | undefined => {
  const [, first = ""] = (plainPath(rest) ?? rest).toLowerCase().split("/");
  if (/^(?:t|u|live|on_complete)$/.test(first)) return order;
  if (prefixed && /^(?:recovery|metrics|livez|readyz)$/.test(first)) return ownOnly;
  // The start of a path decides which permission it needs. With dot segments, a server could resolve it to a path with another start.
  if (ownPath.test(rest) && plainPath(rest) === undefined) return ownPlain;
  // A path that differs from the gateway's own only in spelling was meant for the gateway. Forwarding it could send, for example, a request
  // to stop a run to a provider.
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
