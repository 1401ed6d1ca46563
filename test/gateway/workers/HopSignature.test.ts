import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import { HopSignature, signatureMs } from "../../../src/gateway/workers/HopSignature.ts";
import { sharedKey } from "../../../src/gateway/workers/SharedKey.ts";

const keyOf = (secret: string) => sharedKey(Redacted.make(secret), "hop");

describe("the signature of a hop", () => {
  it("counts for its own word, and once", () => {
    const [asker, owner] = [new HopSignature(keyOf("a"), () => 0), new HopSignature(keyOf("a"), () => 0)];
    const signature = asker.sign("word");
    assert.isFalse(owner.isValid("other", signature));
    assert.isTrue(owner.isValid("word", signature));
    assert.isFalse(owner.isValid("word", signature), "it was used");
    assert.isTrue(owner.isValid("word", asker.sign("word")));
  });

  it("does not count under another key, with another time or nonce, or when it is none", () => {
    const owner = new HopSignature(keyOf("a"), () => 0);
    assert.isFalse(owner.isValid("word", new HopSignature(keyOf("b"), () => 0).sign("word")));
    const [time = "", nonce = "", hmac = ""] = owner.sign("word").split(".");
    for (const wrong of [`1.${nonce}.${hmac}`, `${time}.x.${hmac}`, `${time}.${nonce}`, hmac, "", undefined, ["a"]])
      assert.isFalse(owner.isValid("word", wrong), String(wrong));
  });

  it("counts only for a moment, by a clock that goes a little before or behind", () => {
    let now = 1_000_000;
    const owner = new HopSignature(keyOf("a"), () => now);
    const at = (time: number) => new HopSignature(keyOf("a"), () => time).sign("word");
    for (const off of [-signatureMs, signatureMs]) assert.isTrue(owner.isValid("word", at(now + off)));
    for (const off of [-signatureMs - 1, signatureMs + 1]) assert.isFalse(owner.isValid("word", at(now + off)));
    const old = at(now);
    now += signatureMs + 1;
    assert.isFalse(owner.isValid("word", old));
  });

  it("is remembered for as long as it counts, and no more of them than fit (L11)", () => {
    let now = 0;
    const owner = new HopSignature(keyOf("a"), () => now, 100);
    const first = owner.sign("word");
    for (let n = 0; n < 100; n += 1) assert.isTrue(owner.isValid("word", n === 0 ? first : owner.sign("word")));
    assert.isFalse(owner.isValid("word", owner.sign("word")), "there is no room");
    assert.isFalse(owner.isValid("word", first));
    now = 2 * signatureMs + 1;
    assert.isTrue(owner.isValid("word", owner.sign("word")));
  });
});
