/**
 * Says of a request that was admitted which upstream it goes to, at which address and with which headers.
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
import { type Outgoing, outgoing } from "./OwnCredential.ts";
import { routeOf, type Unrouted } from "./Route.ts";

/** Where a request goes, and how. */
export interface Way {
  readonly server: UpstreamSettings;
  /** The vendor whose protocols it speaks: an error of ours is in that vendor's words. */
  readonly upstream: UpstreamName;
  /** The address there, with the query as its client sent it. */
  readonly url: string;
  /** As the client sent them: by them it is recognised, and its own repeat too. */
  readonly headers: RelayHeaders;
  /** What leaves for the upstream in their place, with the upstream's own headers and credential. */
  readonly outgoing: (request: Outgoing) => Outgoing;
  /** What the request asks for by its path, else by its header. */
  readonly asked: "live" | "on_complete" | undefined;
  /** The group whose budget it shares, as its client names it. */
  readonly group: string | undefined;
  /** Whether shown text goes on by itself, as its client asks. */
  readonly continueText: "auto" | "ask" | undefined;
}

/** Finds it. */
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
  if (named !== undefined && server === undefined) return { refused: noSuchUpstream(named), upstream: undefined };
  const route =
    server === undefined
      ? routeOf(target, headers, upstreams, credentialed.of(servers))
      : namedRouteOf(target, headers, server, upstreams);
  if ("refused" in route) return route;
  const through = server ??
    servers.get(route.upstream) ?? {
      ...{ name: route.upstream, url: upstreams[route.upstream], headers: [] },
    };
  return {
    ...{ server: through, upstream: route.upstream, url: route.url, headers, asked, group, continueText },
    outgoing: remembering((request) => outgoing(request, through, route.upstream)),
  };
};

const credentialed = new Derived(
  (servers: GatewaySettings["servers"]): ReadonlySet<string> =>
    new Set([...servers.values()].filter(hasOwnCredential).map(({ name }) => name)),
);

/** Keeps the last result: the first request of a run, and the path that it takes, are made of one. */
const remembering = (make: Way["outgoing"]): Way["outgoing"] => {
  let last: { readonly of: Outgoing; readonly made: Outgoing } | undefined;
  return (request) => {
    if (last?.of.headers !== request.headers || last.of.url !== request.url)
      last = { of: { headers: request.headers, url: request.url }, made: make(request) };
    return last.made;
  };
};

const reveals = ["live", "on_complete"] as const;
const continueTexts = ["auto", "ask"] as const;

/** The one word of a header that has few. */
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

/** Visible characters without a blank: it stands on record and in logs. */
const groupPattern = /^[!-~]{1,64}$/;

const noSuchGroup: Refused = {
  status: 400,
  reason: "group",
  message: `${groupHeader} names one group: 1 to 64 letters, digits and signs without a blank.`,
};

const noSuchReveal: Refused = {
  status: 400,
  reason: "reveal",
  message: `${revealHeader} says live or on_complete, once.`,
};

const noSuchContinueText: Refused = {
  status: 400,
  reason: "continue_text",
  message: `${continueTextHeader} says auto or ask, once.`,
};

/** The name is one that an upstream may have: it stands in the sentence as it is. */
const noSuchUpstream = (name: string): Refused => ({
  status: 404,
  reason: "address",
  message: `There is no upstream ${name} here: the gateway's configuration names its upstreams.`,
});
