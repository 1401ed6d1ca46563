/**
 * Distinguishes credentials by keyed digests, so that no credential appears in a log, on a page or in a record.
 */
import { createHmac, generateKeySync, type KeyObject } from "node:crypto";
import { Redacted } from "effect";
import type { Path } from "../paths/Path.ts";

/**
 * The key of this process. Without the key, a digest on a page or in a log cannot be tested against guessed credentials. Printing the key
 * does not reveal its bytes.
 */
let key = generateKeySync("hmac", { length: 256 });

/**
 * Sets the key, so that several processes that act as one compute the same digests. Call it before the first digest is computed.
 *
 * The key belongs to the process and not to a gateway, because paths and their waits are per process, and so are clients that compute
 * digests outside any gateway. If one process has gateways over several stores, the key that was set last applies to all its gateways. For
 * every other store, the digests of this process then differ from those of the store's other processes. These processes do not share the
 * announced waits of a credential, and each learns of a wait from the provider. Nothing else depends on these digests, and no store can
 * read a credential from another store's digests.
 */
export const setKey = (shared: KeyObject): void => {
  key = shared;
  known.clear();
};

/** Digests of recent credentials, at most `knownMax`. */
const known = new Map<string, string>();

const knownMax = 32;

/** Maximum length of a credential whose digest is remembered, in characters. */
const knownCharactersMax = 1_024;

/** Number of digest characters that are kept: 128 bits. */
const digestCharacters = 32;

/** Adds to a path the digest of the credential that its requests carry. An empty credential adds no digest. */
export const withCredential = (path: Path, credential: string | Redacted.Redacted<string> | undefined): Path => {
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
