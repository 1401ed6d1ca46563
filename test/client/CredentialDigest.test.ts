/** Credentials told apart by keyed digests: each by the key that counts now, whatever was asked before. */
import { createHmac, generateKeySync } from "node:crypto";
import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import { credentialed, keyedBy } from "../../src/client/CredentialDigest.ts";

const path = { id: "path" };

describe("The digest of a credential", () => {
  it("is the keyed one of that very credential, also when it is asked for again", () => {
    const key = generateKeySync("hmac", { length: 256 });
    keyedBy(key);
    const digest = (secret: string) => createHmac("sha256", key).update(secret).digest("hex").slice(0, 32);
    // More than are remembered, and one that is longer than what is.
    const secrets = [...Array.from({ length: 100 }, (_, n) => `sk-${n}`), "x".repeat(5_000)];
    for (const secret of [...secrets, ...secrets.toReversed()]) {
      assert.deepStrictEqual(credentialed(path, secret), { ...path, credential: digest(secret) });
      assert.deepStrictEqual(credentialed(path, Redacted.make(secret)), { ...path, credential: digest(secret) });
    }
    assert.strictEqual(credentialed(path, ""), path);
  });

  it("is made anew where the key is another one", () => {
    keyedBy(generateKeySync("hmac", { length: 256 }));
    const before = credentialed(path, "sk-1");
    keyedBy(generateKeySync("hmac", { length: 256 }));
    assert.notStrictEqual(credentialed(path, "sk-1").credential, before.credential);
  });
});
