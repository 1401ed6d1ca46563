import { assert, describe, it } from "@effect/vitest";
import { providersMax, Throttle, throttleSize } from "../../../src/runtime/pacing/Throttle.ts";
import { seeded } from "../../Seeded.ts";

describe("the throttle of a provider", () => {
  it("has the documented size", () => {
    assert.deepStrictEqual([throttleSize, providersMax], [{ max: 20, perSecond: 10 }, 256]);
  });

  it("waits for one token and goes into debt, as a bucket does", () => {
    // Eight tokens a second, so that no token is rounded.
    const throttle = new Throttle({ max: 2, perSecond: 8 });
    const waits = (now: number) => throttle.waitMs("p", now);
    assert.strictEqual(waits(0), 0);
    throttle.take("p", 0);
    assert.strictEqual(waits(0), 0);
    throttle.take("p", 0);
    assert.strictEqual(waits(0), 125);
    assert.strictEqual(waits(62.5), 63);
    throttle.take("p", 62.5);
    assert.strictEqual(waits(62.5), 188);
    assert.strictEqual(waits(125), 125);
    assert.strictEqual(waits(187.5), 63);
    assert.strictEqual(waits(250), 0);
    assert.strictEqual(throttle.waitMs("other", 0), 0);
  });

  it("refills to its size and no further, and not by a clock that goes back", () => {
    const random = seeded(9);
    const throttle = new Throttle();
    let tokens = 20;
    let at = 0;
    for (let times = 0; times < 300; times += 1) {
      const now = at + Math.floor(random() * 200) - 10;
      tokens = Math.min(20, tokens + Math.max(0, now - at) / 100);
      at = now;
      if (random() < 0.9) {
        throttle.take("p", now);
        tokens -= 1;
      }
      assert.approximately(throttle.waitMs("p", now), Math.max(0, Math.ceil((1 - tokens) * 100)), 1);
    }
    assert.strictEqual(throttle.waitMs("p", at + 60_000), 0);
    for (let times = 0; times < 20; times += 1) throttle.take("p", at + 60_000);
    assert.strictEqual(throttle.waitMs("p", at + 60_000), 100);
  });

  it("evicts the least recently used bucket above its limit, which then is full again", () => {
    const throttle = new Throttle({ max: 1, perSecond: 1 });
    for (let each = 0; each < providersMax; each += 1) throttle.take(`p${each}`, 0);
    // Reading a bucket uses it, too.
    assert.strictEqual(throttle.waitMs("p0", 0), 1_000);
    throttle.take("new", 0);
    assert.deepStrictEqual(
      ["p0", "p2", "new"].map((provider) => throttle.waitMs(provider, 0)),
      [1_000, 1_000, 1_000],
    );
    assert.strictEqual(throttle.waitMs("p1", 0), 0);
  });
});
