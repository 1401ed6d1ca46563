/**
 * Makes keys for digests that several workers compare: one of their secret for each purpose.
 */
import { createHmac, createSecretKey, type KeyObject } from "node:crypto";
import { Redacted } from "effect";

/**
 * Makes one.
 *
 * @param purpose a digest that is made for one says nothing of those for another
 */
export const sharedKey = (
  secret: Redacted.Redacted<string>,
  purpose: "attach" | "credential" | "repeat" | "response",
): KeyObject => createSecretKey(createHmac("sha256", Redacted.value(secret)).update(purpose).digest());
