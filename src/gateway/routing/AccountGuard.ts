/**
 * Protects the operator's account: refuses requests that a client may not send with the operator's credential. The message explains the
 * refusal to the person who configured the client.
 */
import { readAddress } from "../../adapters/relay/RelayTransport.ts";
import type { AdmittedToken, GatewaySettings } from "../config/GatewayOptions.ts";
import { type PathPattern, readPathPattern, withoutVersion } from "../config/PathPattern.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import { canNameStored, type PathVerdict, verdictOf } from "./AccountPaths.ts";
import type { Refused } from "./Admission.ts";

/** A request to an upstream, after its token was checked. */
export interface GuardedRequest {
  readonly method: string;
  /** Absolute address to which the request is sent. */
  readonly url: string;
  readonly server: UpstreamSettings;
  readonly token: AdmittedToken | undefined;
}

/**
 * Decides whether a request may be sent. A request with the client's own credential may always be sent; if one of its routes has the operator's
 * credential, the objects that it names are checked as well.
 */
export const guard = (request: GuardedRequest, settings: Pick<GatewaySettings, "routes" | "servers">): PathVerdict => {
  const { method, server, token, url } = request;
  const address = readAddress(url);
  if (address === undefined) return { _tag: "Refused", why: "path" };
  const path = pathBelowBase(address.pathname, server.url);
  if (!hasOwnCredential(server))
    return canReachAccount(server, settings) && canNameStored(method, withoutVersion(path)) ? named : sent;
  const paths = [...patternsOf(server.paths), ...patternsOf(token?.paths)];
  return verdictOf({ method, path, query: address.searchParams }, { protocols: server.protocols, paths });
};

const sent: PathVerdict = { _tag: "Sent" };
const named: PathVerdict = { _tag: "Named" };

const canReachAccount = (
  { name }: UpstreamSettings,
  { routes, servers }: Pick<GatewaySettings, "routes" | "servers">,
): boolean =>
  routes.get(name)?.routes.some(({ upstream }) => {
    const server = servers.get(upstream);
    return server !== undefined && hasOwnCredential(server);
  }) ?? false;

/** Returns the path below the base address. The router has already refused paths outside it. */
const pathBelowBase = (pathname: string, base: string): string => {
  const root = (readAddress(base)?.pathname ?? "/").replace(/\/+$/, "");
  return pathname.startsWith(root) ? pathname.slice(root.length) : pathname;
};

const patternsOf = (paths: ReadonlyArray<string> = none): ReadonlyArray<PathPattern> => {
  const known = patterns.get(paths);
  if (known !== undefined) return known;
  const read = paths.flatMap((path) => readPathPattern(path) ?? []);
  patterns.set(paths, read);
  return read;
};

/** Cache of parsed patterns, by configured list. */
const patterns = new WeakMap<ReadonlyArray<string>, ReadonlyArray<PathPattern>>();

const none: ReadonlyArray<string> = [];

/** Creates the refusal of a request that `paths` does not permit. */
export const refusalOf = ({ name }: UpstreamSettings, why: "path" | "query"): Refused => ({
  status: 403,
  reason: "path",
  message:
    why === "query"
      ? `The query asks the upstream ${name} to use a different method than the request's, so the gateway did not send it.`
      : `The upstream ${name} uses the operator's credential. With it, the gateway sends only model requests, GET /models and token counts of its protocols, in their documented spelling. To permit more, add \`paths\` to the upstream or to the token.`,
});

/** Creates the refusal of a stored object of another client. It is the same as for an object that does not exist. */
export const storedRefusal = (what: keyof typeof codes): Refused => ({
  status: 404,
  reason: "not_found",
  message: `${what} not found: your token has not created one with this id.`,
  ...(codes[what] === undefined ? {} : { code: codes[what] }),
});

/** OpenAI's own error codes. A client that gets one sends its whole conversation again. */
const codes = {
  Response: undefined,
  "Previous response": "previous_response_not_found",
  Conversation: undefined,
} as const;

/** Refuses a body that cannot be parsed, because it may name a stored response of another client. */
export const unreadBody: Refused = {
  status: 400,
  reason: "body",
  message:
    "The gateway must check who owns the stored response that this body names, but cannot read the body. Send it as a JSON object, uncompressed or compressed once.",
};
