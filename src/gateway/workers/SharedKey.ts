/**
 * Derives one key per purpose for digests that the processes of a store compare.
 */
import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { Redacted } from "effect";

/**
 * Derives a key from the store's secret.
 *
 * @param purpose selects the key, so that digests for one purpose reveal nothing about digests for another
 */
export const sharedKey = (
  secret: Redacted.Redacted<string>,
  purpose: "attach" | "credential" | "hop" | "repeat" | "response",
): KeyObject => createSecretKey(createHmac("sha256", Redacted.value(secret)).update(purpose).digest());
