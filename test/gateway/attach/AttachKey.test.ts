import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import { AttachKeys, type KeyedRequest } from "../../../src/gateway/attach/AttachKey.ts";
import { attachWishOf, offsetIn } from "../../../src/gateway/attach/AttachWish.ts";

const request = (given: Partial<KeyedRequest> = {}): KeyedRequest => ({
  ...{ method: "POST", upstream: "openai", target: "/v1/chat/completions", tenant: undefined },
  ...{ headers: [["authorization", "Bearer sk-one"]], body: '{"model":"m","stream":true,"messages":[]}' },
  ...given,
});

const others: Readonly<Record<string, Partial<KeyedRequest>>> = {
  "another body": { body: '{"model":"m","stream":true,"messages":[1]}' },
  "a document instead of a stream": { body: '{"model":"m","messages":[]}' },
  "another number, spelt otherwise": { body: '{"model":"m","stream":true,"messages":[],"n":1.0}' },
  "another credential": { headers: [["authorization", "Bearer sk-two"]] },
  "no credential": { headers: [] },
  "a second credential": {
    headers: [
      ["authorization", "Bearer sk-one"],
      ["x-portkey-api-key", "pk"],
    ],
  },
  "an account of the same credential": {
    headers: [
      ["authorization", "Bearer sk-one"],
      ["OpenAI-Organization", "o"],
    ],
  },
  "a beta": {
    headers: [
      ["authorization", "Bearer sk-one"],
      ["anthropic-beta", "b"],
    ],
  },
  "a second header of betas": {
    headers: [
      ["authorization", "Bearer sk-one"],
      ["anthropic-beta", ""],
      ["anthropic-beta", "b"],
    ],
  },
  "a route": {
    headers: [
      ["authorization", "Bearer sk-one"],
      ["x-recovery-route", "backup"],
    ],
  },
  "another token of the gateway": { tenant: "red" },
  "another upstream": { upstream: "local" },
  "another target": { target: "/v1/completions" },
  "a key in the query": { target: "/v1/chat/completions?key=k" },
  "another method": { method: "PUT" },
};

describe("The key of a request", () => {
  it("is the same however its JSON is spelt and its headers are ordered, and whatever its client counts", () => {
    const keys = new AttachKeys();
    const one = keys.request(request());
    const same = request({
      body: ' {"messages": [],\n "stream":true, "model" :"m"}',
      headers: [
        ["x-stainless-retry-count", "2"],
        ["Idempotency-Key", "i"],
        ["traceparent", "00-1-2-3"],
        ["AUTHORIZATION", "Bearer sk-one"],
        ["x-recovery-linger", "500"],
        ["cookie", "a=b"],
      ],
    });
    assert.strictEqual(keys.request(same), one);
    assert.notStrictEqual(new AttachKeys().request(request()), one, "each process has its own");
  });

  for (const [what, given] of Object.entries(others)) {
    it(`is another one for ${what}`, () => {
      const keys = new AttachKeys();
      const one = keys.request(request({ body: '{"model":"m","stream":true,"messages":[],"n":1}' }));
      const first = what.startsWith("another number") ? one : keys.request(request());
      assert.notStrictEqual(keys.request(request(given)), first);
    });
  }

  it("of several processes that share a secret is the same, and another one with another secret", () => {
    const [one, other] = [Redacted.make("one"), Redacted.make("other")];
    assert.strictEqual(new AttachKeys(one).request(request()), new AttachKeys(one).request(request()));
    assert.strictEqual(new AttachKeys(one).holderKey(request()), new AttachKeys(one).holderKey(request()));
    assert.notStrictEqual(new AttachKeys(one).request(request()), new AttachKeys(other).request(request()));
  });

  it("of who may have a response has every credential and the token's name, and nothing else", () => {
    const keys = new AttachKeys();
    const mine = keys.holderKey(request());
    const plain = { headers: [["Authorization", "Bearer sk-one"]] as const, target: "/recovery/streams/gw_1" };
    assert.strictEqual(keys.holderKey({ ...plain, tenant: undefined }), mine);
    assert.notStrictEqual(keys.holderKey({ ...plain, tenant: "red" }), mine);
    assert.notStrictEqual(keys.holderKey({ ...plain, headers: [], tenant: undefined }), mine);
    const asked = keys.holderKey(request({ target: "/v1beta/models/m:streamGenerateContent?alt=sse&key=k" }));
    const again = { ...plain, target: "/recovery/streams/gw_1?key=k", tenant: undefined };
    assert.strictEqual(keys.holderKey(again), asked);
  });
});

describe("What a request says of attaching", () => {
  const settings = { lingerMs: 500, lingerMaxMs: 1_000 };
  const of = (headers: KeyedRequest["headers"], server = {}) => attachWishOf(headers, settings, server);

  it("is its linger within the configured maximum, its upstream's or the gateway's", () => {
    assert.deepInclude(of([]), { lingerMs: 500, repeats: false, asked: false, forbidden: false });
    assert.deepInclude(of([], { lingerMs: 20 }), { lingerMs: 20 });
    assert.deepInclude(of([["X-Recovery-Linger", "0"]], { lingerMs: 20 }), { lingerMs: 0 });
    assert.deepInclude(of([["x-recovery-linger", "700"]]), { lingerMs: 700 });
    for (const more of ["1001", "999999999", "9999999999", "9".repeat(400)])
      assert.deepInclude(of([["x-recovery-linger", more]]), { lingerMs: 1_000 }, more);
  });

  it("is that it repeats another one, by an SDK's count or by its own word", () => {
    assert.deepInclude(of([["x-stainless-retry-count", "0"]]), { repeats: false });
    assert.deepInclude(of([["x-stainless-retry-count", "1"]]), { repeats: true, asked: false });
    assert.deepInclude(of([["x-recovery-attach", "1"]]), { repeats: true, asked: true });
    assert.deepInclude(of([["x-recovery-attach", "0"]]), { forbidden: true });
    assert.deepInclude(of([["idempotency-key", "i"]]), { idempotencyKey: "i", repeats: false });
  });

  it("is refused by a plain 400 where it is nonsense", () => {
    for (const value of ["", "-1", "1.5", "soon", "1, 2"])
      assert.deepInclude(of([["x-recovery-linger", value]]), { status: 400, reason: "linger" }, value);
    for (const value of ["", "yes", "2", "1, 0"])
      assert.deepInclude(of([["x-recovery-attach", value]]), { status: 400, reason: "attach" }, value);
    const twice = of([
      ["x-recovery-attach", "1"],
      ["x-recovery-attach", "0"],
    ]);
    assert.deepInclude(twice, { status: 400, reason: "attach" });
  });

  it("has a Last-Event-ID that counts the bytes of the decoded body", () => {
    assert.strictEqual(offsetIn([]), 0);
    assert.strictEqual(offsetIn([["Last-Event-ID", "17"]]), 17);
    for (const value of ["-1", "x", "1e3", "1.0"]) assert.isUndefined(offsetIn([["last-event-id", value]]), value);
  });
});
