/**
 * Reads the gateway's own prefixes of a path: `/t/TOKEN`? `/live` or `/on_complete`? `/u/NAME`? and then the provider's own
 * path. Each stands there once at most, in this order.
 *
 * A prefix is read as it is written and in no other spelling. What a more lenient reader would take for one (upper case,
 * percent escapes, empty or dot segments before it) is refused: sent on, it would carry a token to a provider.
 */
import { dropOldest } from "../../domain/Limits.ts";
import { isUpstreamName, upstreamNameWords } from "../config/UpstreamNames.ts";
import type { Refused } from "./Admission.ts";
import { plainPath } from "./Vendor.ts";

/** What a client has asked for by its path. */
export interface Address {
  /** The token of the path, as it was sent. */
  readonly token: string | undefined;
  readonly reveal: "live" | "on_complete" | undefined;
  /** The name of an upstream; whether there is one of that name is not looked at. */
  readonly upstream: string | undefined;
  /** The provider's own path, with the query as it came. */
  readonly target: string;
  /** The path is one of the gateway itself: its page, its API, its metrics. */
  readonly own: boolean;
}

/** A path whose prefixes say nothing that the gateway serves. */
export interface NoAddress {
  readonly refused: Refused;
}

/**
 * Reads the prefixes. Nearly every request has one of a few paths; one with a token or a query is not remembered.
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

/** Addresses that are remembered, at most `addressesMax`. */
const addresses = new Map<string, Address>();

const addressesMax = 64;

/** Longest target that is remembered, in characters. */
const targetCharactersMax = 256;

const readPrefixes = (target: string): Address | NoAddress => {
  const end = target.search(/[?#]/);
  const path = end === -1 ? target : target.slice(0, end);
  if (!path.startsWith("/")) return { refused: noProxy };
  const token = tokenIn(path);
  if (token === "") return refused("A token stands behind /t/, as in /t/TOKEN/v1.");
  const behindToken = token === undefined ? path : path.slice("/t/".length + token.length);
  const reveal = /^\/(live|on_complete)(?=\/|$)/.exec(behindToken)?.[1];
  const behindReveal = reveal === undefined ? behindToken : behindToken.slice(1 + reveal.length);
  const upstream = /^\/u(?:\/([^/]*))?(?=\/|$)/.exec(behindReveal);
  const name = upstream?.[1];
  if (upstream !== null && (name === undefined || !isUpstreamName(name))) return refused(badName);
  const rest = upstream === null ? behindReveal : behindReveal.slice(upstream[0].length);
  const problem = problemOf(rest, reveal !== undefined || upstream !== null);
  if (problem !== undefined) return refused(problem);
  return {
    token,
    reveal: reveal === "live" || reveal === "on_complete" ? reveal : undefined,
    upstream: name,
    target: `${rest === "" ? "/" : rest}${end === -1 ? "" : target.slice(end)}`,
    own: ownPath.test(rest),
  };
};

/** A refusal of a client that takes the gateway for a proxy. */
export const noProxy: Refused = {
  status: 400,
  reason: "target",
  message: "The gateway is no forward proxy: set it as the client's base URL.",
};

/** The token of a path that begins with `/t`; undefined for any other path. */
const tokenIn = (path: string): string | undefined => {
  const found = /^\/t(?:\/([^/]*))?(?=\/|$)/.exec(path);
  return found === null ? undefined : (found[1] ?? "");
};

/** Paths of the gateway itself, which stand behind a token and behind nothing else. */
const ownPath = /^\/(?:recovery|metrics)(?:\/|$)/;

/** What is wrong with the path behind the prefixes. A path that no server would read plainly is the router's to refuse. */
const problemOf = (rest: string, prefixed: boolean): string | undefined => {
  const [, first = ""] = (plainPath(rest) ?? rest).toLowerCase().split("/");
  if (/^(?:t|u|live|on_complete)$/.test(first)) return order;
  if (prefixed && /^(?:recovery|metrics|livez|readyz)$/.test(first)) return ownOnly;
  // A token permits a path by how it begins: none may lead elsewhere once its dots are resolved.
  if (ownPath.test(rest) && plainPath(rest) === undefined) return ownPlain;
  // Sent on, a Stop that is meant for the gateway would be a provider's to answer.
  if (!ownPath.test(rest) && /^(?:recovery|metrics)$/.test(first)) return ownPlain;
  return /^(?:livez|readyz)$/.test(first) ? probe : undefined;
};

const order =
  "The gateway's own prefixes stand before the provider's path in this order, each once and as written here: /t/TOKEN, then /live or /on_complete, then /u/NAME.";

const ownOnly = "The gateway's own pages stand behind /t/TOKEN at most: no mode and no upstream has any.";

const ownPlain =
  "The gateway's own paths are taken as they are written, in small letters and without escapes or dot segments.";

const probe = "A probe asks for /livez or /readyz, as written here and without a token.";

const badName = `An upstream's name stands behind /u/, as in /u/NAME/v1: ${upstreamNameWords}.`;

const refused = (message: string): NoAddress => ({ refused: { status: 404, reason: "address", message } });
