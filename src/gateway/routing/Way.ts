/**
 * Determines the upstream, the address and the headers of an admitted request.
 */
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { Derived } from "../config/Derived.ts";
import type { GatewaySettings } from "../config/GatewayOptions.ts";
import type { UpstreamName } from "../config/Options.ts";
import { continueTextHeader, groupHeader, revealHeader, wordsOf } from "../config/OwnHeaders.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import type { Address } from "./Address.ts";
import type { Refused } from "./Admission.ts";
import { namedRouteOf } from "./NamedRoute.ts";
import { type Outgoing, toOutgoing } from "./OwnCredential.ts";
import { routeOf, type Unrouted } from "./Route.ts";

/** An admitted request, with its destination. */
export interface Way {
  readonly server: UpstreamSettings;
  /** The vendor of the upstream's protocols. The gateway writes its errors in that vendor's protocol. */
  readonly upstream: UpstreamName;
  /** Address at the upstream, with the client's query unchanged. */
  readonly url: string;
  /** The client's original headers. They identify the client, and show whether the request repeats another one. */
  readonly headers: RelayHeaders;
  /** Creates the request that is sent, with the upstream's own headers and credential. */
  readonly outgoing: (request: Outgoing) => Outgoing;
  /** The mode (when text is sent) that the request demands by its path or, if the path contains none, by its header. */
  readonly asked: "live" | "on_complete" | undefined;
  /** The group of runs that share a budget, as named by the client. */
  readonly group: string | undefined;
  /** The client's choice to continue shown text automatically or to ask. */
  readonly continueText: "auto" | "ask" | undefined;
}

/** Determines the destination of a request, or the reason for a refusal. */
export const wayOf = (
  { reveal, target, upstream: named }: Pick<Address, "reveal" | "target" | "upstream">,
  headers: RelayHeaders,
  { servers, upstreams }: Pick<GatewaySettings, "servers" | "upstreams">,
): Way | Unrouted => {
  const asked = reveal ?? wordOf(headers, revealHeader, reveals);
  const continueText = wordOf(headers, continueTextHeader, continueTexts);
  if (continueText === "unknown") return { refused: noSuchContinueText, upstream: undefined };
  if (asked === "unknown") return { refused: noSuchReveal, upstream: undefined };
  const [group, ...groups] = wordsOf(headers, groupHeader);
  if (groups.length > 0 || (group !== undefined && !groupPattern.test(group)))
    return { refused: noSuchGroup, upstream: undefined };
  const server = named === undefined ? undefined : servers.get(named);
  if (named !== undefined && server === undefined)
    return { refused: unknownUpstreamRefusal(named), upstream: undefined };
  const route =
    server === undefined
      ? routeOf(target, headers, upstreams, credentialed.of(servers))
      : namedRouteOf(target, headers, server, upstreams);
  if ("refused" in route) return route;
  const through = server ?? servers.get(route.upstream);
  if (through === undefined) return { refused: localUpstreamRefusal(route.upstream), upstream: route.upstream };
  return {
    ...{ server: through, upstream: route.upstream, url: route.url, headers, asked, group, continueText },
    outgoing: memoizeLast((request) => toOutgoing(request, through, route.upstream)),
  };
};

const credentialed = new Derived(
  (servers: GatewaySettings["servers"]): ReadonlySet<string> =>
    new Set([...servers.values()].filter(hasOwnCredential).map(({ name }) => name)),
);

/** Caches the last result. The first request of a run and its path are created from the same input. */
const memoizeLast = (make: Way["outgoing"]): Way["outgoing"] => {
  let last: { readonly of: Outgoing; readonly made: Outgoing } | undefined;
  return (request) => {
    if (last?.of.headers !== request.headers || last.of.url !== request.url)
      last = { of: { headers: request.headers, url: request.url }, made: make(request) };
    return last.made;
  };
};

const reveals = ["live", "on_complete"] as const;
const continueTexts = ["auto", "ask"] as const;

/** Parses a header whose value must be one of several words. */
const wordOf = <Word extends string>(
  headers: RelayHeaders,
  name: string,
  words: ReadonlyArray<Word>,
): Word | "unknown" | undefined => {
  const given = wordsOf(headers, name);
  const [first] = given;
  if (first === undefined) return undefined;
  return given.size === 1 ? (words.find((word) => word === first) ?? "unknown") : "unknown";
};

/** Visible characters without spaces, because the name is recorded and logged. */
const groupPattern = /^[!-~]{1,64}$/;

const noSuchGroup: Refused = {
  status: 400,
  reason: "group",
  message: `${groupHeader}: expected one group name of 1 to 64 letters, digits and punctuation marks, without spaces.`,
};

const noSuchReveal: Refused = {
  status: 400,
  reason: "reveal",
  message: `${revealHeader}: expected live or on_complete, once.`,
};

const noSuchContinueText: Refused = {
  status: 400,
  reason: "continue_text",
  message: `${continueTextHeader}: expected auto or ask, once.`,
};

/** The name needs no escaping in the message, because its characters were validated. */
const unknownUpstreamRefusal = (name: string): Refused => ({
  status: 404,
  reason: "address",
  message: `The gateway's configuration has no upstream ${name}.`,
});

const localUpstreamRefusal = (name: UpstreamName): Refused => ({
  status: 404,
  reason: "address",
  message: `The default address of the upstream ${name} is on the gateway's own machine, and other machines reach this gateway, so it did not send the request. To permit it, set --${name}-url, or an upstream ${name} in the configuration.`,
});
