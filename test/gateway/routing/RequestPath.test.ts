/** Whose requests share a cooldown: those that leave with one credential for one origin. */
import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import type { RelayHeaders } from "../../../src/adapters/relay/RelayTransport.ts";
import { withCredential } from "../../../src/gateway/routes/Routing.ts";
import { toOutgoing } from "../../../src/gateway/routing/OwnCredential.ts";

const id = "https://api.openai.com";
const url = `${id}/v1/chat/completions`;
const of = (headers: RelayHeaders, at = url) => withCredential({ id }, { url: at, headers }).credential;

describe("the credential of a path", () => {
  it("is one for all where a request carries none", () => {
    assert.deepStrictEqual(withCredential({ id }, { url, headers: [["content-type", "application/json"]] }), { id });
  });

  for (const [name, one, other] of [
    ["authorization", "Bearer sk-one", "Bearer sk-two"],
    ["x-api-key", "one", "two"],
    ["api-key", "one", "two"],
    ["x-goog-api-key", "one", "two"],
    ["openai-organization", "one", "two"],
  ] as const)
    it(`is told apart by ${name}, whatever else the request carries`, () => {
      assert.strictEqual(
        of([[name, one]]),
        of([
          ["x-request-id", "7"],
          [name.toUpperCase(), one],
        ]),
      );
      assert.notStrictEqual(of([[name, one]]), of([[name, other]]));
    });

  it("is told apart by the key in an address", () => {
    assert.strictEqual(of([], `${url}?key=one&alt=sse`), of([], `${url}?alt=sse&key=one`));
    assert.notStrictEqual(of([], `${url}?key=one`), of([], `${url}?key=two`));
  });

  it("is one key wherever it stands: two clients of it share what it is told", () => {
    const one = of([["x-goog-api-key", "one"]]);
    assert.strictEqual(of([], `${url}?key=one`), one);
    assert.strictEqual(of([["x-goog-api-key", "one"]], `${url}?key=one`), one);
    assert.strictEqual(of([["authorization", "Bearer one"]]), of([["authorization", "bearer  one"]]));
    assert.strictEqual(of([["authorization", "Bearer one"]]), of([["api-key", "one"]]));
    assert.notStrictEqual(of([["openai-organization", "one"]]), of([["api-key", "one"]]));
  });

  it("is that of the key's id where each request is signed anew", () => {
    const signed = (key: string, signature: string): RelayHeaders => [
      ["authorization", `AWS4-HMAC-SHA256 Credential=${key}/20261122/eu/bedrock/aws4_request, Signature=${signature}`],
    ];
    assert.strictEqual(of(signed("AKIA1", "a")), of(signed("AKIA1", "b")));
    assert.notStrictEqual(of(signed("AKIA1", "a")), of(signed("AKIA2", "a")));
  });

  it("holds nothing of the credential", () => {
    const digest = of([["authorization", "Bearer sk-SECRET"]]) ?? "";
    assert.match(digest, /^[0-9a-f]{32}$/);
  });

  it("is the upstream's own where it has one: two clients of it share what it is told", () => {
    const server = { name: "openai", url: `${id}/v1`, headers: [], credential: Redacted.make("sk-own") };
    const leaving = (key: string) =>
      withCredential({ id }, toOutgoing({ url, headers: [["authorization", `Bearer ${key}`]] }, server, "openai"));
    assert.deepStrictEqual(leaving("sk-one"), leaving("sk-two"));
    assert.isDefined(leaving("sk-one").credential);
  });
});
