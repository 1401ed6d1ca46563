/** Keyed digests of credentials: each uses the current key, independent of earlier calls. */
import { createHmac, generateKeySync } from "node:crypto";
import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import { setKey, withCredential } from "../../src/client/CredentialDigest.ts";

const path = { id: "path" };

describe("The digest of a credential", () => {
  it("is the keyed digest of exactly that credential, even on a second call", () => {
    const key = generateKeySync("hmac", { length: 256 });
    setKey(key);
    const digest = (secret: string) => createHmac("sha256", key).update(secret).digest("hex").slice(0, 32);
    // More secrets than are cached, and one that is too long to be cached.
    const secrets = [...Array.from({ length: 100 }, (_, n) => `sk-${n}`), "x".repeat(5_000)];
    for (const secret of [...secrets, ...secrets.toReversed()]) {
      assert.deepStrictEqual(withCredential(path, secret), { ...path, credential: digest(secret) });
      assert.deepStrictEqual(withCredential(path, Redacted.make(secret)), { ...path, credential: digest(secret) });
    }
    assert.strictEqual(withCredential(path, ""), path);
  });

  it("is computed again if the key has changed", () => {
    setKey(generateKeySync("hmac", { length: 256 }));
    const before = withCredential(path, "sk-1");
    setKey(generateKeySync("hmac", { length: 256 }));
    assert.notStrictEqual(withCredential(path, "sk-1").credential, before.credential);
  });
});
