/**
 * Digests content that is never stored, under a key, so that a record or an export does not confirm a guessed prompt.
 */
import * as Effect from "effect/Effect";
import { RecorderError } from "./RecorderError.ts";

/** Length of a store's key, in bytes: the block of SHA-256 (RFC 2104, section 3, asks for at least its output). */
export const keyBytes = 32;

/** A new random key. */
export const newKey = (): Uint8Array<ArrayBuffer> => globalThis.crypto.getRandomValues(new Uint8Array(keyBytes));

/**
 * Makes the digest of a store.
 *
 * @param key the store's own, `keyBytes` long
 * @returns HMAC-SHA-256 of a text in UTF-8, as 64 hex digits
 */
export const digester = (key: Uint8Array<ArrayBuffer>) => {
  const algorithm = { name: "HMAC", hash: "SHA-256" } as const;
  return (content: string): Effect.Effect<string, RecorderError> =>
    Effect.tryPromise({
      try: async () => {
        const imported = await globalThis.crypto.subtle.importKey("raw", key, algorithm, false, ["sign"]);
        const digest = await globalThis.crypto.subtle.sign(algorithm.name, imported, new TextEncoder().encode(content));
        return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
      },
      catch: (cause) =>
        new RecorderError({ reason: "unavailable", run_id: "", message: "content could not be digested", cause }),
    });
};
