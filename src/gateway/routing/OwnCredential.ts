/**
 * Puts an upstream's own headers and credential in the place of every credential of the client: one that is sent on beside it
 * would reach a server that it was not meant for, or be read in its stead.
 */
import { Redacted } from "effect";
import type { RelayHeaders } from "../../adapters/relay/RelayTransport.ts";
import { dropOldest } from "../../domain/Limits.ts";
import { isCredentialName } from "../config/CredentialNames.ts";
import type { UpstreamName } from "../config/Options.ts";
import { hasOwnCredential, type UpstreamSettings } from "../config/UpstreamSettings.ts";
import { endToEnd } from "../upstream/Headers.ts";
import { holdsKey, ownerOf } from "./Vendor.ts";

/** What of a request is changed. */
export interface Outgoing {
  readonly url: string;
  readonly headers: RelayHeaders;
}

/**
 * The address and headers that a request leaves with.
 *
 * @param family the vendor in whose manner the credential is given
 */
export const outgoing = (request: Outgoing, server: UpstreamSettings, family: UpstreamName): Outgoing => {
  const { credential } = server;
  // A client's `Connection` names headers of its own, never those that the upstream has of its configuration.
  const headers = endToEnd(request.headers);
  if (!hasOwnCredential(server)) return { url: request.url, headers: replaced(headers, server.headers) };
  const own = credential === undefined ? [] : [credentialHeader(Redacted.value(credential), server.url, family)];
  return {
    url: withoutKeys(request.url),
    headers: replaced(withoutCredentials(headers.filter(([name]) => !rerouting.test(name))), [
      ...own,
      ...server.headers,
    ]),
  };
};

/** Headers by which servers take another method or path than the request's own: what was permitted is what is asked. */
const rerouting =
  /^x-(?:http-)?method(?:-override)?$|^x-(?:original|rewrite|forwarded)-(?:url|uri|path|prefix|method)$/i;

/** A request without what its client shows as a credential, for an upstream that is not the one it was meant for. */
export const withoutClientCredentials = ({ headers, url }: Outgoing): Outgoing => ({
  url: withoutKeys(url),
  headers: withoutCredentials(endToEnd(headers)),
});

/** Whether a client shows a credential of its own, for whichever provider. */
export const showsCredential = ({ headers, url }: Outgoing): boolean => {
  const shown = headers.filter(([name, value]) => !marksOf(name).isOfOthers && value.trim() !== "");
  return withoutCredentials(shown).length < shown.length || withoutKeys(url) !== url;
};

/**
 * Everything in a request that shows a credential or chooses an account, by name, in one order: two requests with the same list come
 * from holders of the same credentials. What is read here is a secret: it is made a keyed digest of at once, and kept nowhere.
 */
export const credentialsIn = ({ headers, url }: Outgoing): ReadonlyArray<readonly [name: string, value: string]> => {
  const shown: Array<readonly [name: string, value: string]> = [];
  for (const [name, value] of headers)
    if (!marksOf(name).isOfOthers && isShown(name, value)) shown.push([name.toLowerCase(), value.trim()]);
  for (const part of queryOf(url)) if (holdsCredential(part)) shown.push(["?", part]);
  return shown.length < 2 ? shown : shown.sort(([a, of], [b, to]) => (a === b ? (of < to ? -1 : 1) : a < b ? -1 : 1));
};

/** Headers that no provider gets: cookies of this machine's programs, and the gateway's own. */
const ofOthers = /^(?:cookie2?|x-recovery-.*)$/i;

/** Where each vendor's servers read a credential. A token of an OAuth login is a bearer's everywhere. */
const credentialHeader = (credential: string, url: string, family: UpstreamName): readonly [string, string] => {
  if (ownerOf(new URL(url).hostname) === "azure") return ["api-key", credential];
  if (family === "anthropic" && !credential.startsWith("sk-ant-oat")) return ["x-api-key", credential];
  if (family === "gemini" && !credential.startsWith("ya29.")) return ["x-goog-api-key", credential];
  return ["authorization", `Bearer ${credential}`];
};

const replaced = (headers: RelayHeaders, own: RelayHeaders): RelayHeaders => {
  if (own.length === 0) return headers;
  const names = new Set(own.map(([name]) => name.toLowerCase()));
  return [...headers.filter(([name]) => !names.has(name.toLowerCase())), ...own];
};

const withoutCredentials = (headers: RelayHeaders): RelayHeaders =>
  headers.filter(([name, value]) => !isShown(name, value));

const isShown = (name: string, value: string): boolean => marksOf(name).isCredential || holdsKey(value);

/** What a header's name alone says of it. */
interface NameMarks {
  readonly isOfOthers: boolean;
  readonly isCredential: boolean;
}

/** What a name says; clients send the same dozen with every request. */
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

/** Names that are remembered, at most `namesMax`. */
const marks = new Map<string, NameMarks>();

const namesMax = 256;

/** Longest name that is remembered, in characters. */
const nameCharactersMax = 64;

/** Headers that choose an account, or sign a request for one. */
const ofAccount = /^(?:openai-organization|openai-project|x-goog-user-project|x-amz-.*|cf-aig-.*)$/i;

/** The query is cut as text: what stays of it stays as it was written. */
const withoutKeys = (url: string): string => {
  const at = url.indexOf("?");
  if (at === -1) return url;
  const kept = queryOf(url).filter((part) => !holdsCredential(part));
  return kept.length === 0 ? url.slice(0, at) : `${url.slice(0, at)}?${kept.join("&")}`;
};

/** The parts of a query, as they were written. */
const queryOf = (url: string): ReadonlyArray<string> => {
  const at = url.indexOf("?");
  return at === -1 ? [] : url.slice(at + 1).split("&");
};

const holdsCredential = (part: string): boolean => {
  const [[name, value] = ["", ""]] = new URLSearchParams(part);
  return isCredentialName(name) || /^x-(?:amz|goog)-/i.test(name) || holdsKey(value);
};
