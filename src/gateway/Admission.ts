/**
 * Decides who may use the gateway at all: its token, the name that it was called by, and the page that a browser called from.
 *
 * A page on the web can make a browser call 127.0.0.1. Without a key it gains nothing from a provider, but it could read the
 * record of runs and answer questions. So a local gateway answers to this machine's names only (a rebound DNS name says its
 * own), and no request that a browser says comes from another site is taken.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { headerOf, type RelayHeaders } from "../adapters/RelayTransport.ts";
import type { GatewaySettings } from "./GatewayOptions.ts";
import { tokenHeader } from "./Passing.ts";

/** A request that may go on. */
export interface Admitted {
  /** Path and query without the token. */
  readonly target: string;
}

/** A request that may not, and why, in words for whoever set the client up. */
export interface Refused {
  readonly status: 400 | 401 | 403 | 404 | 413 | 429 | 502 | 503 | 504;
  readonly reason: string;
  readonly message: string;
}

/** What of a request is looked at. */
export interface Asking {
  readonly method: string;
  readonly target: string;
  readonly headers: RelayHeaders;
}

/** Looks at a request. */
export const admit = (
  request: Asking,
  settings: Pick<GatewaySettings, "allowedHosts" | "local" | "token">,
): Admitted | Refused => {
  if (!request.target.startsWith("/"))
    return {
      status: 400,
      reason: "target",
      message: "The gateway is no forward proxy: set it as the client's base URL.",
    };
  const { token } = settings;
  const { given, target } = token === undefined ? { given: undefined, target: request.target } : tokenOf(request);
  if (token !== undefined && (given === undefined || !equal(given, token)))
    return {
      status: 401,
      reason: "token",
      message: `The gateway's token is missing or wrong: send it as ${tokenHeader}.`,
    };
  if (!isKnownHost(headerOf(request.headers, "host"), settings))
    return {
      status: 403,
      reason: "host",
      message: "The gateway does not answer to this Host; --allow-host names others.",
    };
  if (isCrossSite(request))
    return {
      status: 403,
      reason: "origin",
      message: "The gateway takes no requests that a browser sends for another site.",
    };
  return { target };
};

/** A token in the path, `/t/TOKEN/…`, is for clients that can set a base URL and no header. */
const tokenOf = ({ headers, target }: Asking): { readonly given: string | undefined; readonly target: string } => {
  const path = /^\/t\/([^/?]+)(.*)$/s.exec(target);
  const given = headerOf(headers, tokenHeader) ?? path?.[1];
  const rest = path?.[2] ?? target;
  return { given, target: rest.startsWith("/") ? rest : `/${rest}` };
};

/** Digests are of one length, so that the comparison tells nothing of the token, its length neither. */
const equal = (given: string, token: string): boolean => timingSafeEqual(digest(given), digest(token));

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** With a token on another address the Host proves nothing that the token does not. */
const isKnownHost = (
  host: string | undefined,
  { allowedHosts, local }: Pick<GatewaySettings, "allowedHosts" | "local">,
): boolean => {
  if (!local && allowedHosts.length === 0) return true;
  const name = nameOf(host);
  if (name === undefined) return false;
  return (
    name === "localhost" ||
    name === "[::1]" ||
    /^127(?:\.\d{1,3}){3}$/.test(name) ||
    allowedHosts.some((allowed) => allowed.toLowerCase() === name)
  );
};

const nameOf = (host: string | undefined): string | undefined =>
  host === undefined || !URL.canParse(`http://${host}`) ? undefined : new URL(`http://${host}`).hostname;

const isCrossSite = ({ headers, method }: Asking): boolean => {
  const origin = headerOf(headers, "origin");
  const host = headerOf(headers, "host");
  if (origin !== undefined) return !(origin === `http://${host}` || origin === `https://${host}`);
  // A link that a person follows to the page comes from anywhere; what it loads does not.
  const site = headerOf(headers, "sec-fetch-site") ?? "none";
  const navigates = method === "GET" && headerOf(headers, "sec-fetch-mode") === "navigate";
  return site !== "none" && site !== "same-origin" && !navigates;
};
