/** Keyed digests of credentials: each uses the current key, independent of earlier calls. */
import { createHmac, generateKeySync } from "node:crypto";
import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import { credentialed, keyedBy } from "../../src/client/CredentialDigest.ts";

const path = { id: "path" };

describe("The digest of a credential", () => {
  it("is the keyed digest of exactly that credential, even on a second call", () => {
    const key = generateKeySync("hmac", { length: 256 });
    keyedBy(key);
    const digest = (secret: string) => createHmac("sha256", key).update(secret).digest("hex").slice(0, 32);
    // More secrets than are cached, and one that is too long to be cached.
    const secrets = [...Array.from({ length: 100 }, (_, n) => `sk-${n}`), "x".repeat(5_000)];
    for (const secret of [...secrets, ...secrets.toReversed()]) {
      assert.deepStrictEqual(credentialed(path, secret), { ...path, credential: digest(secret) });
      assert.deepStrictEqual(credentialed(path, Redacted.make(secret)), { ...path, credential: digest(secret) });
    }
    assert.strictEqual(credentialed(path, ""), path);
  });

  it("is computed again if the key has changed", () => {
    keyedBy(generateKeySync("hmac", { length: 256 }));
    const before = credentialed(path, "sk-1");
    keyedBy(generateKeySync("hmac", { length: 256 }));
    assert.notStrictEqual(credentialed(path, "sk-1").credential, before.credential);
  });
});
