/**
 * Decides to which upstream a request is sent, by its path and headers alone. Addresses come only from the configuration, and a credential
 * is sent only to an upstream of its vendor.
 */

import { type RelayAddress, type RelayHeaders, readAddress } from "../../adapters/relay/RelayTransport.ts";
import { signatureOf } from "../../adapters/relay/RequestSignature.ts";
import { type UpstreamName, type Upstreams, upstreamsDefault } from "../config/Options.ts";
import type { Refused } from "./Admission.ts";
import {
  accountOf,
  claimOf,
  isPrivate,
  ownerOf,
  type PathClaim,
  plainPath,
  type Sign,
  signsOf,
  type Vendor,
  vendorWords,
} from "./Vendor.ts";

/** The destination of a request that is not refused. */
export interface Route {
  /** A default upstream; for any other server, the vendor of its protocols. The gateway writes its errors in that vendor's protocol. */
  readonly upstream: UpstreamName;
  /** Absolute address, with the request's query. */
  readonly url: string;
}

/** A refused request. The error is written in the protocol of the upstream, if there is one. */
export interface Unrouted {
  readonly refused: Refused;
  readonly upstream: UpstreamName | undefined;
}

/**
 * Determines the provider and the address of a request.
 *
 * A path that only one vendor uses is sent to that vendor's upstream. For any other path the headers decide: `anthropic-version`,
 * `x-goog-api-key`, or a key that identifies its vendor. Without such a sign the request goes to OpenAI, with or without `/v1`. A request
 * with a credential of another vendor than its upstream's is refused.
 *
 * @param target path and query, as the client sent them
 * @param credentialed upstreams with their own credential, which replaces the client's
 */
export const routeOf = (
  target: string,
  headers: RelayHeaders,
  upstreams: Upstreams,
  credentialed: ReadonlySet<string> = noNames,
): Route | Unrouted => {
  const asked = readAddress(`http://gateway${target}`);
  const claim = asked === undefined ? undefined : claimAt(asked);
  if (asked === undefined || claim === undefined) return { refused: nowhere, upstream: undefined };
  const all = signsOf(headers, asked.searchParams);
  const signs = canTakeAnthropicHeaders(claim, upstreams) ? all.filter(({ at }) => !at.startsWith("anthropic-")) : all;
  const upstream = candidates(claim, signs, upstreams).find((name) =>
    mayGo(claim, credentialed.has(name) ? signs.filter(({ kind }) => kind === "protocol") : signs, name, upstreams),
  );
  if (upstream === undefined) return foreignRefusal(claim, signs, upstreams);
  const url = urlOf(target, upstream, upstreams[upstream]);
  if (url !== undefined && upstream === "bedrock" && !credentialed.has(upstream))
    return { upstream, url: inSignedRegion(url, headers) };
  return url === undefined ? { refused: nowhere, upstream } : { upstream, url };
};

/**
 * Replaces the region in a host of Bedrock's by that of the client's signature, because the server of another region would refuse it.
 *
 * @param url absolute address, with the request's query
 */
const inSignedRegion = (url: string, headers: RelayHeaders): string => {
  const { region = "" } = signatureOf({ headers, url }) ?? {};
  return /^[a-z]{2}(?:-[a-z]+)+-\d$/.test(region)
    ? url.replace(/^(https:\/\/bedrock-runtime(?:-fips)?\.)[\w-]+(?=\.amazonaws\.com(?:\.cn)?\/)/, `$1${region}`)
    : url;
};

/** Classifies the path of an address, once per cached address. Returns undefined for a path that no client sends. */
const claimAt = (address: RelayAddress): PathClaim | undefined => {
  const known = claims.get(address);
  if (known !== undefined) return known;
  const path = plainPath(address.pathname);
  if (path === undefined) return undefined;
  const claim = claimOf(path);
  claims.set(address, claim);
  return claim;
};

/** Cache of claims. It grows only with the addresses that `readAddress` caches and those of open requests. */
const claims = new WeakMap<RelayAddress, PathClaim>();

const noNames: ReadonlySet<string> = new Set();

/**
 * True if the server treats Anthropic's version and beta headers as options and not as credentials. Such servers are Vertex AI, and
 * configured servers that offer many models over OpenAI's chat protocol (LiteLLM, OpenRouter).
 */
const canTakeAnthropicHeaders = (
  { shared, upstreams: [likeliest], vertex }: PathClaim,
  upstreams: Upstreams,
): boolean =>
  vertex === true ||
  likeliest === "bedrock" ||
  (shared !== true && likeliest === "openai" && ownerOf(hostOf(upstreams.openai)) !== "openai");

/**
 * Returns the candidate upstreams in order of preference. A header or parameter name that several vendors use (`x-api-key`, `?key=`) does
 * not change the order.
 */
const candidates = (
  { foreign: own, upstreams: known, vertex }: PathClaim,
  signs: ReadonlyArray<Sign>,
  upstreams: Upstreams,
): ReadonlyArray<UpstreamName> => {
  // Vertex AI serves models of several vendors, so any upstream on its host matches, whatever its name.
  if (vertex === true)
    return [...known.filter((name) => /aiplatform\.googleapis\.com$/.test(hostOf(upstreams[name]))), "gemini"];
  if (own !== undefined) return [...known.filter((name) => ownerOf(hostOf(upstreams[name])) === own), ...known];
  const [likeliest] = known;
  if (signs.length === 0 && likeliest !== undefined) return [likeliest];
  const vendorsWith = (kind: Sign["kind"]) => known.filter((it) => signs.some((sign) => isSignOf(sign, kind, it)));
  const keyed = vendorsWith("value").filter((name) => signs.some(({ at, vendor }) => vendor === name && at !== bearer));
  return [
    ...vendorsWith("protocol"),
    ...keyed,
    ...(likeliest === undefined ? [] : [likeliest]),
    ...vendorsWith("value"),
  ];
};

const bearer = "authorization";

const isSignOf = (sign: Sign, kind: Sign["kind"], vendor: Vendor): boolean =>
  sign.kind === kind && sign.vendor === vendor;

const mayGo = (claim: PathClaim, signs: ReadonlyArray<Sign>, name: UpstreamName, upstreams: Upstreams): boolean =>
  (claim.foreign === undefined || isAtHome(claim.foreign, name, upstreams)) &&
  signs.every((sign) => mayCarry(claim, sign, name, upstreams));

/**
 * True if a credential may be sent to an upstream. `Sign` says from which vendor it is and how that is known. A self-hosted server may get
 * a key from a header that several vendors use, if the path addresses the server, or if the operator has configured no other server for the
 * key's vendor. On a private network, where a local model ignores keys and a proxy checks its own, the server may get any key if both
 * conditions hold.
 */
const mayCarry = (claim: PathClaim, { kind, vendor }: Sign, name: UpstreamName, upstreams: Upstreams): boolean => {
  if (isAtHome(vendor, name, upstreams)) return true;
  const host = hostOf(upstreams[name]);
  if (ownerOf(host) !== undefined || kind === "protocol" || !isUpstream(vendor)) return false;
  const meant = claim.shared !== true && claim.upstreams[0] === name;
  const alone = ownerOf(hostOf(upstreams[vendor])) === vendor;
  return kind === "name" ? meant || alone : meant && alone && isPrivate(host);
};

/**
 * True if an upstream belongs to a vendor: by its name, by its domain, or because it has the configured address of the vendor. A vendor
 * without a default upstream may own any host that belongs to no known vendor, because the operator has configured that host.
 */
const isAtHome = (vendor: Vendor, name: UpstreamName, upstreams: Upstreams): boolean => {
  if (vendor === accountOf(name)) return true;
  const owner = ownerOf(hostOf(upstreams[name]));
  if (owner !== undefined && (owner === vendor || accountOf(owner) === vendor)) return true;
  if (!isUpstream(vendor)) return owner === undefined;
  return parseConfigured(upstreams[vendor]).origin === parseConfigured(upstreams[name]).origin;
};

/** True if the vendor has an upstream that needs no prefix. */
export const isUpstream = (vendor: Vendor): vendor is UpstreamName => Object.hasOwn(upstreamsDefault, vendor);

const hostOf = (address: string): string => parseConfigured(address).hostname;

/** Parses a configured address. Addresses were validated at the start. */
const parseConfigured = (address: string): Pick<RelayAddress, "hostname" | "origin" | "pathname"> =>
  readAddress(address) ?? new URL(address);

/** Refuses a request in the protocol of the vendor that the client appears to use. */
const foreignRefusal = (claim: PathClaim, signs: ReadonlyArray<Sign>, upstreams: Upstreams): Unrouted => {
  const [target = "openai"] = candidates(claim, signs, upstreams);
  const strange = signs.find((sign) => !mayCarry(claim, sign, target, upstreams));
  const carried =
    strange === undefined
      ? `This path belongs to ${vendorWords[claim.foreign ?? target]}`
      : `The request carries a credential or a header of ${vendorWords[strange.vendor]} (${strange.at})`;
  const message = `${carried} and would go to the upstream of ${vendorWords[target]} (--${target}-url), so the gateway did not send it. Check the client's key and base URL. If one server serves both vendors, set its URL for both.`;
  const upstream =
    claim.upstreams.length === 1 ? target : (signs.map(({ vendor }) => vendor).find(isUpstream) ?? target);
  return { refused: { status: 400, reason: "vendor", message }, upstream };
};

/** Refusal of a path that cannot be parsed or that leaves the base address of its upstream. */
export const nowhere: Refused = { status: 404, reason: "target", message: "The path leaves the configured base URL." };

/**
 * Joins the base address of an upstream and the path of a request.
 *
 * @param upstream the vendor; OpenAI's base addresses contain the version, those of Anthropic and Gemini do not
 * @returns undefined for a path that leaves the base address
 */
export const urlOf = (target: string, upstream: UpstreamName, address: string): string | undefined => {
  const base = address.replace(/\/+$/, "");
  const url =
    base + (upstream === "openai" ? withoutOpenAiVersion(base, target) : withoutRepeatedVersion(base, target));
  const behindBase = readAddress(url);
  if (behindBase === undefined) return undefined;
  const { href, origin, pathname } = behindBase;
  const root = parseConfigured(base);
  // Parsing has resolved dot segments, so the result may be outside the base address.
  if (origin !== root.origin || !`${pathname}/`.startsWith(root.pathname.replace(/\/?$/, "/"))) return undefined;
  return href;
};

/**
 * OpenAI's base address contains the version, in any spelling, so the version in the path is removed. A base address without a path is the
 * root of a server, so the path is kept.
 */
const withoutOpenAiVersion = (base: string, target: string): string =>
  parseConfigured(base).pathname === "/" ? target : target.replace(/^\/v1(?=[/?]|$)/, "");

/** Removes the version from the path if the base address ends with it. */
const withoutRepeatedVersion = (base: string, target: string): string => {
  const version = /\/v[12](?:beta|alpha)?\w*$/.exec(base)?.[0];
  return version !== undefined && target.startsWith(`${version}/`) ? target.slice(version.length) : target;
};
