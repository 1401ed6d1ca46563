/** Digests content that is never stored. The digests are keyed, so a reader of a record or an export cannot confirm a guessed prompt. */
import * as Effect from "effect/Effect";
import { RecorderError } from "./RecorderError.ts";

/** Length of a store's key, in bytes: the output of SHA-256, which is the minimum that RFC 2104 recommends (section 3). */
export const keyBytes = 32;

/** Creates a random key. */
export const generateKey = (): Uint8Array<ArrayBuffer> => globalThis.crypto.getRandomValues(new Uint8Array(keyBytes));

/**
 * Creates the digest function of a store.
 *
 * @param key the store's key, `keyBytes` long
 * @returns a function that computes HMAC-SHA-256 of a string in UTF-8, as 64 hex digits
 */
export const makeDigester = (key: Uint8Array<ArrayBuffer>) => {
  const algorithm = { name: "HMAC", hash: "SHA-256" } as const;
  return (content: string): Effect.Effect<string, RecorderError> =>
    Effect.tryPromise({
      try: async () => {
        const imported = await globalThis.crypto.subtle.importKey("raw", key, algorithm, false, ["sign"]);
        const digest = await globalThis.crypto.subtle.sign(algorithm.name, imported, new TextEncoder().encode(content));
        return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
      },
      catch: (cause) =>
        new RecorderError({ reason: "unavailable", run_id: "", message: "could not compute a digest", cause }),
    });
};
