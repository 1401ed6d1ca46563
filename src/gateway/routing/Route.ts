/**
 * Says where a request goes, by its path and headers alone. Addresses come from the configuration and nowhere else, and a
 * credential goes to its own vendor's upstream or to none.
 */
import { type RelayAddress, type RelayHeaders, readAddress } from "../../adapters/relay/RelayTransport.ts";
import type { UpstreamName, Upstreams } from "../config/Options.ts";
import type { Refused } from "./Admission.ts";
import {
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

/** Where a request goes. */
export interface Route {
  /** The upstream, or the vendor whose protocols it speaks: an error of ours is in that vendor's words. */
  readonly upstream: UpstreamName;
  /** Absolute, with the request's own query. */
  readonly url: string;
}

/** A request that goes nowhere, and whose clients' words say so. */
export interface Unrouted {
  readonly refused: Refused;
  readonly upstream: UpstreamName | undefined;
}

/**
 * Finds the provider and the address of a request.
 *
 * A path that one vendor alone has goes to that vendor's upstream. Any other path goes where the request's own headers say
 * (`anthropic-version`, `x-goog-api-key`, a key that names its vendor), and without such a word to OpenAI's, with `/v1` or
 * without it. What carries another vendor's credential than its upstream's is refused.
 *
 * @param target path and query, as the client sent them
 * @param credentialed upstreams that get a credential of their own and none of a client's
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
  const signs = takesOptions(claim, upstreams) ? all.filter(({ at }) => !at.startsWith("anthropic-")) : all;
  const upstream = candidates(claim, signs, upstreams).find((name) =>
    mayGo(claim, credentialed.has(name) ? signs.filter(({ kind }) => kind === "protocol") : signs, name, upstreams),
  );
  if (upstream === undefined) return foreign(claim, signs, upstreams);
  const url = urlOf(target, upstream, upstreams[upstream]);
  return url === undefined ? { refused: nowhere, upstream } : { upstream, url };
};

/** What the path of an address says; an address that is remembered says it once. Undefined for a path that no client writes. */
const claimAt = (address: RelayAddress): PathClaim | undefined => {
  const known = claims.get(address);
  if (known !== undefined) return known;
  const path = plainPath(address.pathname);
  if (path === undefined) return undefined;
  const claim = claimOf(path);
  claims.set(address, claim);
  return claim;
};

/** Those of the addresses that live, at most as many as `readAddress` remembers and requests are open. */
const claims = new WeakMap<RelayAddress, PathClaim>();

const noNames: ReadonlySet<string> = new Set();

/**
 * Whether Anthropic's version and betas are options of a server that is not Anthropic's: of Vertex AI, and of one of the
 * operator's choice that reads OpenAI's chat for many models (LiteLLM, OpenRouter). They are no credentials.
 */
const takesOptions = ({ shared, upstreams: [likeliest], vertex }: PathClaim, upstreams: Upstreams): boolean =>
  vertex === true || (shared !== true && likeliest === "openai" && ownerOf(hostOf(upstreams.openai)) !== "openai");

/** Upstreams in the order in which they are tried. A name that others use too (`x-api-key`, `?key=`) moves no request. */
const candidates = (
  { foreign: own, upstreams: known, vertex }: PathClaim,
  signs: ReadonlyArray<Sign>,
  upstreams: Upstreams,
): ReadonlyArray<UpstreamName> => {
  // Vertex AI serves several vendors' models: an upstream that is there is meant, whatever its name.
  if (vertex === true)
    return [...known.filter((name) => /aiplatform\.googleapis\.com$/.test(hostOf(upstreams[name]))), "gemini"];
  if (own !== undefined) return [...known.filter((name) => ownerOf(hostOf(upstreams[name])) === own), ...known];
  const [likeliest] = known;
  if (signs.length === 0 && likeliest !== undefined) return [likeliest];
  const signed = (kind: Sign["kind"]) => known.filter((it) => signs.some((sign) => is(sign, kind, it)));
  const keyed = signed("value").filter((name) => signs.some(({ at, vendor }) => vendor === name && at !== bearer));
  return [...signed("protocol"), ...keyed, ...(likeliest === undefined ? [] : [likeliest]), ...signed("value")];
};

const bearer = "authorization";

const is = (sign: Sign, kind: Sign["kind"], vendor: Vendor): boolean => sign.kind === kind && sign.vendor === vendor;

const mayGo = (claim: PathClaim, signs: ReadonlyArray<Sign>, name: UpstreamName, upstreams: Upstreams): boolean =>
  (claim.foreign === undefined || isAtHome(claim.foreign, name, upstreams)) &&
  signs.every((sign) => mayCarry(claim, sign, name, upstreams));

/**
 * Whether what a sign says may go to an upstream. A server of the operator's own takes what its clients are given for it: a
 * name that others use too, and on its own network any key (a local server reads none, a proxy reads its own). That holds
 * where the path says that this server is meant, and no other server is configured for the key's vendor.
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
 * Whether what is a vendor's may go to an upstream: one of its name, of its domain, or at the address that is configured for
 * the vendor. A vendor that has no upstream may go to a host that is no other vendor's: its operator has configured it so.
 */
const isAtHome = (vendor: Vendor, name: UpstreamName, upstreams: Upstreams): boolean => {
  if (vendor === name) return true;
  const owner = ownerOf(hostOf(upstreams[name]));
  if (owner === vendor) return true;
  if (!isUpstream(vendor)) return owner === undefined;
  return configured(upstreams[vendor]).origin === configured(upstreams[name]).origin;
};

/** Whether a vendor is one of the three that have an upstream without a prefix. */
export const isUpstream = (vendor: Vendor): vendor is UpstreamName =>
  vendor === "openai" || vendor === "anthropic" || vendor === "gemini";

const hostOf = (address: string): string => configured(address).hostname;

/** An address of the configuration, which has only such as can be read. */
const configured = (address: string): Pick<RelayAddress, "hostname" | "origin" | "pathname"> =>
  readAddress(address) ?? new URL(address);

/** In the words of the vendor whose client it seems to be. */
const foreign = (claim: PathClaim, signs: ReadonlyArray<Sign>, upstreams: Upstreams): Unrouted => {
  const [target = "openai"] = candidates(claim, signs, upstreams);
  const strange = signs.find((sign) => !mayCarry(claim, sign, target, upstreams));
  const carried =
    strange === undefined
      ? `This is a path of ${vendorWords[claim.foreign ?? target]}`
      : `The request carries a credential or a header of ${vendorWords[strange.vendor]} (${strange.at})`;
  const message = `${carried} and would go to the upstream of ${vendorWords[target]} (--${target}-url), so the gateway has not sent it. Check the client's key and base URL; where one server takes both, configure it for both.`;
  const upstream =
    claim.upstreams.length === 1 ? target : (signs.map(({ vendor }) => vendor).find(isUpstream) ?? target);
  return { refused: { status: 400, reason: "vendor", message }, upstream };
};

/** A refusal of a path that cannot be read, or that leaves its upstream. */
export const nowhere: Refused = { status: 404, reason: "target", message: "The path leaves the configured address." };

/**
 * Puts an upstream's base address and a request's path together.
 *
 * @param upstream whose clients' way of it: OpenAI's base addresses hold the version, the others' do not
 * @returns undefined for a path that would leave the base address
 */
export const urlOf = (target: string, upstream: UpstreamName, address: string): string | undefined => {
  const base = address.replace(/\/+$/, "");
  const url = base + (upstream === "openai" ? behind(base, target) : once(base, target));
  const behindBase = readAddress(url);
  if (behindBase === undefined) return undefined;
  const { href, origin, pathname } = behindBase;
  const root = configured(base);
  // Dots in a path are resolved: what is left must still be inside.
  if (origin !== root.origin || !`${pathname}/`.startsWith(root.pathname.replace(/\/?$/, "/"))) return undefined;
  return href;
};

/** OpenAI's base address has the version in it, also where it is spelt otherwise; one without a path is a server's root. */
const behind = (base: string, target: string): string =>
  configured(base).pathname === "/" ? target : target.replace(/^\/v1(?=[/?]|$)/, "");

/** A base address that names the version as well does not say it twice. */
const once = (base: string, target: string): string => {
  const version = /\/v1(?:beta|alpha)?\w*$/.exec(base)?.[0];
  return version !== undefined && target.startsWith(`${version}/`) ? target.slice(version.length) : target;
};
