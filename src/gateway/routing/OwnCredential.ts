/**
 * Replaces every credential of the client with an upstream's own headers and credential. A credential that was left in the request could
 * reach the wrong server, or be used instead of the upstream's.
 */
import { Redacted } from "effect";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { dropOldest } from "../../domain/Limits.ts";
import { isCredentialName } from "../config/CredentialNames.ts";
import type { UpstreamName } from "../config/Options.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import { endToEnd } from "../upstream/Headers.ts";
import { hasVendorKey, ownerOf } from "./Vendor.ts";

/** The parts of a request that may contain a credential. */
export interface Outgoing {
  readonly url: string;
  readonly headers: RelayHeaders;
}

/**
 * Replaces the client's credential with the upstream's own, if it has one, in the address and the headers.
 *
 * @param family the vendor that determines the header of the credential
 */
export const toOutgoing = (request: Outgoing, server: UpstreamSettings, family: UpstreamName): Outgoing => {
  const { credential } = server;
  // Removes hop-by-hop headers first, so that a client's `Connection` header cannot name headers that the configuration adds.
  const headers = endToEnd(request.headers);
  if (!hasOwnCredential(server)) return { url: request.url, headers: overrideHeaders(headers, server.headers) };
  const own = credential === undefined ? [] : [credentialHeader(Redacted.value(credential), server.url, family)];
  return {
    url: withoutKeys(request.url),
    headers: overrideHeaders(withoutCredentials(headers.filter(([name]) => !rerouting.test(name))), [
      ...own,
      ...server.headers,
    ]),
  };
};

/** Headers that replace a request's method or path on some servers, which would circumvent the permission check. */
const rerouting =
  /^x-(?:http-)?method(?:-override)?$|^x-(?:original|rewrite|forwarded)-(?:url|uri|path|prefix|method)$/i;

/** Removes the client's credentials from a request to an upstream that the client did not address. */
export const withoutClientCredentials = ({ headers, url }: Outgoing): Outgoing => ({
  url: withoutKeys(url),
  headers: withoutCredentials(endToEnd(headers)),
});

/** True if a request contains a credential of the client, for any provider. */
export const hasClientCredential = ({ headers, url }: Outgoing): boolean => {
  const shown = headers.filter(([name, value]) => !marksOf(name).isOfOthers && value.trim() !== "");
  return withoutCredentials(shown).length < shown.length || withoutKeys(url) !== url;
};

/**
 * Lists everything in a request that is a credential or selects an account, sorted, so that equal lists mean the same credentials. The list
 * is secret: callers hash it with a key at once and do not store it.
 */
export const credentialsIn = ({ headers, url }: Outgoing): ReadonlyArray<readonly [name: string, value: string]> => {
  const shown: Array<readonly [name: string, value: string]> = [];
  for (const [name, value] of headers)
    if (!marksOf(name).isOfOthers && isShown(name, value)) shown.push([name.toLowerCase(), value.trim()]);
  for (const part of queryOf(url)) if (isCredentialPart(part)) shown.push(["?", part]);
  return shown.length < 2 ? shown : shown.sort(([a, of], [b, to]) => (a === b ? (of < to ? -1 : 1) : a < b ? -1 : 1));
};

/** Headers that are never sent to a provider: cookies, which belong to programs on this machine, and the gateway's own headers. */
const ofOthers = /^(?:cookie2?|x-recovery-.*)$/i;

/** Returns the header in which servers of a vendor expect a credential. OAuth tokens are always bearer tokens. */
const credentialHeader = (credential: string, url: string, family: UpstreamName): readonly [string, string] => {
  if (ownerOf(new URL(url).hostname) === "azure") return ["api-key", credential];
  if (family === "anthropic" && !credential.startsWith("sk-ant-oat")) return ["x-api-key", credential];
  if (family === "gemini" && !credential.startsWith("ya29.")) return ["x-goog-api-key", credential];
  return ["authorization", `Bearer ${credential}`];
};

const overrideHeaders = (headers: RelayHeaders, own: RelayHeaders): RelayHeaders => {
  if (own.length === 0) return headers;
  const names = new Set(own.map(([name]) => name.toLowerCase()));
  return [...headers.filter(([name]) => !names.has(name.toLowerCase())), ...own];
};

const withoutCredentials = (headers: RelayHeaders): RelayHeaders =>
  headers.filter(([name, value]) => !isShown(name, value));

const isShown = (name: string, value: string): boolean => marksOf(name).isCredential || hasVendorKey(value);

/** The class of a header, determined by its name. */
interface NameMarks {
  readonly isOfOthers: boolean;
  readonly isCredential: boolean;
}

/** Classifies the name of a header. Results are cached, because clients send the same dozen names with every request. */
const marksOf = (name: string): NameMarks => {
  const known = marks.get(name);
  if (known !== undefined) return known;
  const isOfOthers = ofOthers.test(name);
  const isCredential = isCredentialName(name) || ofAccount.test(name);
  const made: NameMarks = { isOfOthers, isCredential };
  if (name.length > nameCharactersMax) return made;
  marks.set(name, made);
  dropOldest(marks, namesMax);
  return made;
};

/** Cache of classified names, at most `namesMax`. */
const marks = new Map<string, NameMarks>();

const namesMax = 256;

/** Maximum length of a cached name, in characters. */
const nameCharactersMax = 64;

/** Headers that select an account, or sign a request for an account. */
const ofAccount = /^(?:openai-organization|openai-project|x-goog-user-project|x-amz-.*|cf-aig-.*)$/i;

/** Edits the query as text, so that its other parts keep their spelling. */
const withoutKeys = (url: string): string => {
  const at = url.indexOf("?");
  if (at === -1) return url;
  const kept = queryOf(url).filter((part) => !isCredentialPart(part));
  return kept.length === 0 ? url.slice(0, at) : `${url.slice(0, at)}?${kept.join("&")}`;
};

/** Returns the parts of a query in their original spelling. */
const queryOf = (url: string): ReadonlyArray<string> => {
  const at = url.indexOf("?");
  return at === -1 ? [] : url.slice(at + 1).split("&");
};

const isCredentialPart = (part: string): boolean => {
  const [[name, value] = ["", ""]] = new URLSearchParams(part);
  return isCredentialName(name) || /^x-(?:amz|goog)-/i.test(name) || hasVendorKey(value);
};
