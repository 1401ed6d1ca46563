/**
 * Says where a request goes, by its path and headers alone. Addresses come from the configuration and nowhere else.
 */
import { headerOf, type RelayHeaders } from "../adapters/RelayTransport.ts";
import type { UpstreamName, Upstreams } from "./GatewayOptions.ts";

/** Where a request goes. */
export interface Route {
  readonly upstream: UpstreamName;
  /** Absolute, with the request's own query. */
  readonly url: string;
}

/**
 * Finds the provider and the address of a request.
 *
 * `/v1beta…` and any request with an `x-goog-api-key` is Gemini's, `/v1/messages…` and any with an `anthropic-version` is
 * Anthropic's, all others are OpenAI's, with `/v1` or without it.
 *
 * @param target path and query, as the client sent them
 * @returns undefined for a path that leaves the configured address
 */
export const routeOf = (target: string, headers: RelayHeaders, upstreams: Upstreams): Route | undefined => {
  const upstream = upstreamOf(target, headers);
  const base = upstreams[upstream].replace(/\/+$/, "");
  const url = base + (upstream === "openai" ? behind(base, target) : once(base, target));
  if (!URL.canParse(url)) return undefined;
  const { href, origin, pathname } = new URL(url);
  const root = new URL(base);
  // Dots in a path are resolved: what is left must still be inside.
  if (origin !== root.origin || !`${pathname}/`.startsWith(root.pathname.replace(/\/?$/, "/"))) return undefined;
  return { upstream, url: href };
};

const upstreamOf = (target: string, headers: RelayHeaders): UpstreamName => {
  if (/^(?:\/upload|\/download)?\/v1(?:beta|alpha)\w*(?:[/?]|$)/.test(target)) return "gemini";
  if (/^\/v1\/messages(?:[/?]|$)/.test(target)) return "anthropic";
  if (headerOf(headers, "anthropic-version") !== undefined) return "anthropic";
  return headerOf(headers, "x-goog-api-key") === undefined ? "openai" : "gemini";
};

/** OpenAI's base address has the version in it, also where it is spelt otherwise; one without a path is a server's root. */
const behind = (base: string, target: string): string =>
  new URL(base).pathname === "/" ? target : target.replace(/^\/v1(?=[/?]|$)/, "");

/** A base address that names the version as well does not say it twice. */
const once = (base: string, target: string): string => {
  const version = /\/v1(?:beta|alpha)?\w*$/.exec(base)?.[0];
  return version !== undefined && target.startsWith(`${version}/`) ? target.slice(version.length) : target;
};
