/**
 * Reads from a request the credential that it carries: requests of one credential share what its provider says of a wait.
 *
 * What is read here is a secret. It is made a keyed digest of at once, and kept nowhere.
 */
import { headerOf, type RelayHeaders, readAddress } from "./RelayTransport.ts";

/** Headers that hold a credential in one of the four protocols. */
const secrets = ["authorization", "x-api-key", "api-key", "x-goog-api-key"] as const;

/** Headers that choose the account that it is used for. */
const accounts = ["openai-organization", "openai-project", "x-goog-user-project"] as const;

/**
 * The credential of a request as one text; empty where it carries none. Where in the request it stands says nothing: a key is the same
 * one in any header and in the address.
 *
 * @param url absolute; Gemini's clients may give their key in it
 */
export const credentialIn = (url: string, given: RelayHeaders): string => {
  const key = url.includes("?") ? readAddress(url)?.searchParams.get("key") : undefined;
  const shown = [key ?? "", ...secrets.map((name) => bare(headerOf(given, name) ?? ""))];
  const keys = [...new Set(shown)].filter((value) => value !== "").toSorted();
  const found = [keys.join(" "), ...accounts.map((name) => headerOf(given, name) ?? "")];
  return found.every((value) => value === "") ? "" : JSON.stringify(found);
};

const bare = (value: string): string => unsigned(value.trim().replace(/^bearer\s+/i, ""));

/** A request that is signed has another signature each time: its key's id names the credential. */
const unsigned = (value: string): string => /^AWS4-\S+\s+Credential=([^/,\s]+)/.exec(value)?.[1] ?? value;

/** Characters of a digest that are kept: 128 bits. */
export const digestCharacters = 32;
