/**
 * Tells credentials apart by keyed digests, so that none of them stands in a log, on a page or in a record.
 */
import { createHmac, generateKeySync, type KeyObject } from "node:crypto";
import { Redacted } from "effect";
import type { Path } from "../paths/Path.ts";

/**
 * A key of this process: a digest that stands on a page or in a log cannot be tried against guessed credentials. No print of it shows
 * its bytes.
 */
let key = generateKeySync("hmac", { length: 256 });

/**
 * Makes the digests of several processes that serve as one the same. Called before the first one is made.
 *
 * The key is this process's, and not a gateway's: paths and their waits are those of the process, and so are the clients that make the
 * digests outside of any gateway. Where one process has gateways over several stores, the last one's key counts for all. The others then
 * share no announced wait of a credential with their own stores' gateways, each of which hears of it from the provider; nothing else
 * rests on these digests, and no store can read a credential from those of another.
 */
export const keyedBy = (shared: KeyObject): void => {
  key = shared;
  known.clear();
};

/** Credentials whose digests are remembered, at most `knownMax`. */
const known = new Map<string, string>();

const knownMax = 32;

/** Longest credential that is remembered, in characters. */
const knownCharactersMax = 1_024;

/** Characters of a digest that are kept: 128 bits. */
const digestCharacters = 32;

/** A path with the digest of the credential that its requests carry; an empty one is none. */
export const credentialed = (path: Path, credential: string | Redacted.Redacted<string> | undefined): Path => {
  const secret = Redacted.isRedacted(credential) ? Redacted.value(credential) : (credential ?? "");
  if (secret === "") return path;
  return { ...path, credential: known.get(secret) ?? digestOf(secret) };
};

const digestOf = (secret: string): string => {
  const digest = createHmac("sha256", key).update(secret).digest("hex").slice(0, digestCharacters);
  if (secret.length > knownCharactersMax) return digest;
  if (known.size >= knownMax) known.clear();
  known.set(secret, digest);
  return digest;
};
