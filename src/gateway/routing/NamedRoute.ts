/**
 * Decides whether a request may be sent to the upstream that its path names, and determines its address there.
 *
 * The client has chosen the server, but its credentials are still checked. An upstream without its own credential accepts only credentials
 * of its own vendors: the owner of its host, or for a self-hosted server the vendors of its configured protocols.
 */
import { type RelayHeaders, readAddress } from "../../adapters/relay/RelayTransport.ts";
import { type ProtocolId, protocols as registry } from "../../provider/Protocols.ts";
import { type UpstreamName, type Upstreams, upstreamsDefault } from "../config/Options.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import type { Refused } from "./Admission.ts";
import { isUpstream, nowhere, type Route, type Unrouted, urlOf } from "./Route.ts";
import {
  accountOf,
  claimOf,
  ownerOf,
  type PathClaim,
  plainPath,
  type Sign,
  signsOf,
  type Vendor,
  vendorWords,
} from "./Vendor.ts";

const vendorOf = (id: ProtocolId): UpstreamName => registry.get(id).address.family;

interface Asked {
  readonly claim: PathClaim;
  readonly path: string;
  readonly signs: ReadonlyArray<Sign>;
  readonly server: UpstreamSettings;
  readonly owner: Vendor | undefined;
  readonly upstreams: Upstreams;
}

/**
 * Determines the address of a request at a named upstream.
 *
 * @param target the provider's path and query, without the gateway's prefixes
 * @param upstreams the configured addresses of the default upstreams
 */
export const namedRouteOf = (
  target: string,
  headers: RelayHeaders,
  server: UpstreamSettings,
  upstreams: Upstreams,
): Route | Unrouted => {
  const url = readAddress(`http://gateway${target}`);
  const path = url === undefined ? undefined : plainPath(url.pathname);
  if (url === undefined || path === undefined) return { refused: nowhere, upstream: undefined };
  const owner = ownerOf(new URL(server.url).hostname);
  const asked: Asked = {
    ...{ path, server, owner, upstreams },
    claim: claimOf(path),
    signs: signsOf(headers, url.searchParams),
  };
  const served = servedVendorOf(asked);
  if (served === undefined) return { refused: unservedRefusal(asked), upstream: asked.claim.upstreams[0] };
  const strange = asked.signs.find((sign) => !mayCarry(asked, sign, served));
  if (strange !== undefined) return { refused: foreignRefusal(server, strange), upstream: served };
  const address = urlOf(target, served, server.url);
  return address === undefined ? { refused: nowhere, upstream: served } : { upstream: served, url: address };
};

/** Returns the vendor of the path at this upstream; undefined if the upstream does not serve the path. */
const servedVendorOf = ({ claim, owner, path, server, signs }: Asked): UpstreamName | undefined => {
  const { protocols } = server;
  if (claim.foreign !== undefined && owner !== claim.foreign && !(owner === undefined && protocols === undefined))
    return undefined;
  // The operator has not chosen this server, so clients must not change it.
  if (claim.foreign === server.name && isAtDefault(server)) return undefined;
  const protocol = protocolOf(path, claim);
  if (protocols !== undefined && protocol !== undefined && !protocols.includes(protocol)) return undefined;
  // Vertex AI is an exception, because it serves models of several vendors on a host of Google.
  if (protocols === undefined && owner !== undefined && hasOnlyOwnPaths(owner) && claim.vertex !== true)
    return claim.upstreams.includes(owner) ? owner : undefined;
  const vendors = protocols?.map(vendorOf) ?? claim.upstreams;
  const known = claim.upstreams.filter((name) => vendors.includes(name));
  const signed = claim.shared === true ? known.find((name) => isSigned(signs, name)) : undefined;
  return signed ?? known.find((name) => name === vendors[0]) ?? known[0];
};

/** True for a default upstream with its default address. */
const isAtDefault = ({ name, url }: UpstreamSettings): boolean => defaultAddresses.get(name) === url;

const defaultAddresses: ReadonlyMap<string, string> = new Map(Object.entries(upstreamsDefault));

/** True if the servers of a vendor have no paths of other vendors. Ollama and Cohere also speak OpenAI's protocol. */
const hasOnlyOwnPaths = (owner: Vendor): owner is UpstreamName =>
  isUpstream(owner) && owner !== "ollama" && owner !== "cohere";

const isSigned = (signs: ReadonlyArray<Sign>, name: UpstreamName): boolean =>
  signs.some(({ kind, vendor }) => vendor === name && kind !== "name");

/** Returns the protocol of a model request by its path; undefined if the path does not identify one. */
const protocolOf = (path: string, { shared, upstreams, vertex }: PathClaim): ProtocolId | undefined => {
  if (/\/chat\/completions(?:\/|$)/i.test(path)) return "openai-chat";
  if (/\/completions(?:\/|$)|^\/(?:infill|completion)$/i.test(path)) return "openai-completions";
  if (/(?:^|\/)responses(?:\/|$)/i.test(path)) return "openai-responses";
  if (/\/interactions(?:\/|$)/i.test(path)) return "google-interactions";
  if (vertex === true) return /\/publishers\/anthropic\//i.test(path) ? "anthropic-messages" : "google-gemini";
  if (upstreams[0] === "bedrock") return /\/converse[^/]*$/i.test(path) ? "bedrock-converse" : "bedrock-invoke";
  if (shared === true) return undefined;
  const [likeliest] = upstreams;
  return likeliest === "openai" ? undefined : registry.ids.find((id) => vendorOf(id) === likeliest);
};

const mayCarry = ({ claim, owner, server, upstreams }: Asked, { at, vendor }: Sign, served: UpstreamName): boolean => {
  // The client's credentials are not sent: the upstream's own credential replaces them.
  if (hasOwnCredential(server) || (owner !== undefined && (vendor === owner || vendor === accountOf(owner))))
    return true;
  // Anthropic's version and beta headers are options, not credentials. Servers of other vendors accept them too.
  if (
    at.startsWith("anthropic-") &&
    owner !== "openai" &&
    (claim.vertex === true || claim.upstreams[0] === "openai" || claim.upstreams[0] === "bedrock")
  )
    return true;
  if (isUpstream(vendor) && new URL(upstreams[vendor]).origin === new URL(server.url).origin) return true;
  if (owner !== undefined) return at.startsWith("anthropic-") && served === "anthropic" && !hasOnlyOwnPaths(owner);
  const isOf = (name: UpstreamName) => vendor === name || vendor === accountOf(name);
  return !isUpstream(vendor) || (server.protocols?.some((id) => isOf(vendorOf(id))) ?? isOf(served));
};

const foreignRefusal = ({ name }: UpstreamSettings, { at, vendor }: Sign): Refused => ({
  status: 400,
  reason: "vendor",
  message: `The request carries a credential or a header of ${vendorWords[vendor]} (${at}) and would go to the upstream ${name}, so the gateway did not send it. Check the client's key and base URL; an upstream accepts the credentials of the vendor that owns its host, and those of its configured protocols.`,
});

const unservedRefusal = ({ claim, path, server }: Asked): Refused => {
  const [likeliest = "openai"] = claim.upstreams;
  const protocol = server.protocols === undefined ? undefined : protocolOf(path, claim);
  const vendor = vendorWords[claim.foreign ?? likeliest];
  const whose = protocol === undefined ? vendor : `${registry.get(protocol).name} (${protocol})`;
  const at = claim.foreign === server.name && isAtDefault(server) ? " at its default address" : "";
  const only = server.protocols === undefined ? "" : ` It is configured for ${server.protocols.join(", ")}.`;
  return {
    status: 400,
    reason: "vendor",
    message: `This path belongs to ${whose}, which the upstream ${server.name} does not serve${at}, so the gateway did not send it.${only}`,
  };
};
