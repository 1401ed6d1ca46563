import { assert, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import { reservedNames } from "../../../src/gateway/config/UpstreamNames.ts";
import { type Address, addressOf, type NoAddress } from "../../../src/gateway/routing/Address.ts";

const read = (target: string): Address => {
  const address = addressOf(target);
  if ("refused" in address) throw new Error(`${target}: ${address.refused.message}`);
  return address;
};

const refusal = (target: string): NoAddress["refused"] => {
  const address = addressOf(target);
  if (!("refused" in address)) throw new Error(`${target} is taken: ${JSON.stringify(address)}`);
  return address.refused;
};

const plain = { token: undefined, reveal: undefined, upstream: undefined, own: false };

const tokens = ["a-token-of-24-characters", "~.-_0123456789abc"] as const;

describe("addressOf", () => {
  for (const target of [
    "/v1/chat/completions",
    "/",
    "/?x=1",
    "/v1/models?key=1#t",
    "/tea/live",
    "/t2/x",
    "/users/u",
    "/liver",
    "/v1/u/name",
    "/v1/t/x",
    "/%E4/x",
    "//v1/chat/completions",
    "/v1//t/x",
    "/.well-known/live",
    "/%zz",
  ])
    it(`leaves ${target} as it is`, () => {
      assert.deepStrictEqual(read(target), { ...plain, target });
    });

  it("reads every prefix alone and all of them together", () => {
    const [token] = tokens;
    assert.deepStrictEqual(read(`/t/${token}/v1/x?y=/u/z`), { ...plain, token, target: "/v1/x?y=/u/z" });
    assert.deepStrictEqual(read("/live/v1/x"), { ...plain, reveal: "live", target: "/v1/x" });
    assert.deepStrictEqual(read("/on_complete/v1/x"), { ...plain, reveal: "on_complete", target: "/v1/x" });
    assert.deepStrictEqual(read("/u/a-1/v1/x"), { ...plain, upstream: "a-1", target: "/v1/x" });
    assert.deepStrictEqual(read(`/t/${token}/on_complete/u/a-1/v1/x`), {
      ...{ own: false, token, reveal: "on_complete", upstream: "a-1", target: "/v1/x" },
    });
  });

  it("maps a prefix without a path to the root and keeps its query", () => {
    for (const prefix of [`/t/${tokens[0]}`, "/live", "/on_complete", "/u/a"]) {
      assert.strictEqual(read(prefix).target, "/");
      assert.strictEqual(read(`${prefix}?a=/t/b`).target, "/?a=/t/b");
      assert.strictEqual(read(`${prefix}/`).target, "/");
    }
  });

  it("recognises the gateway's own paths only directly after a token", () => {
    assert.isTrue(read("/recovery/").own);
    assert.isTrue(read(`/t/${tokens[0]}/recovery/api/runs?x=1`).own);
    assert.isTrue(read("/metrics").own);
    assert.isFalse(read("/recoveryx").own);
    for (const prefix of ["/live", "/on_complete", "/u/a", `/t/${tokens[0]}/live/u/a`])
      for (const path of ["/recovery/", "/metrics", "/livez", "/readyz", "/Recovery", "/%72ecovery", "//metrics"])
        assert.match(refusal(`${prefix}${path}`).message, /own pages/);
  });

  it("rejects an own path that becomes another path once its dots are resolved", () => {
    const paths = [
      "/metrics/../recovery/",
      "/metrics/%2e%2e/recovery/api/runs",
      "/recovery/../metrics",
      "/recovery/..",
    ];
    for (const prefix of ["", `/t/${tokens[0]}`])
      for (const path of [...paths, "/metrics/x/%252e%2e/../recovery/", "/metrics/\\..\\..\\recovery"])
        assert.match(refusal(`${prefix}${path}`).message, /dot segments/, path);
    assert.isTrue(read("/recovery/?x=../metrics").own);
  });

  it("sends no misspelt probe to a provider", () => {
    for (const target of ["/livez/", "/LIVEZ", "//readyz", "/%6civez", "/readyz/x?verbose", `/t/${tokens[0]}/livez`])
      assert.match(refusal(target).message, /^A probe requests/, target);
    assert.isFalse(read("/v1/livez").own);
  });

  const order = [
    ...["/t/a/t/b/v1/x", "/live/t/a/v1", "/u/a/t/b/v1", "/live/live/v1", "/live/on_complete/v1", "/on_complete/live"],
    ...["/u/a/live/v1", "/u/a/on_complete/v1", "/u/a/u/b/v1", "/u/a/u", "/live/t"],
    ...["/T/a/v1", "/LIVE/v1", "/On_Complete/v1", "/U/a/v1", "/%74/a/v1", "/%2574/a/v1", "/%6Cive/v1", "/%75/a/v1"],
    ...["//t/a/v1", "/./t/a/v1", "/%2e/u/a/v1", "/%2Ft/a/v1", "///live", "/t%2Fa/v1", "/u%2fa/v1", "/live%2fv1"],
  ];
  for (const target of order)
    it(`refuses ${target}: each prefix once, in order, as it is written`, () => {
      assert.deepInclude(refusal(target), { status: 404, reason: "address" });
      assert.match(refusal(target).message, /in this order/);
    });

  it("refuses /t without a token", () => {
    for (const target of ["/t", "/t/", "/t?x=1", "/t//v1/x"]) {
      assert.strictEqual(refusal(target).status, 404);
      assert.match(refusal(target).message, /A token follows/);
    }
  });

  it("refuses a name that none may have", () => {
    const names = ["", "A", "a_b", "a.b", "..", ".", "%61", "a%2Fb", "x".repeat(33), "ä", ...reservedNames];
    for (const name of names) {
      for (const target of [`/u/${name}`, `/u/${name}/v1/x`, `/live/u/${name}/v1`])
        assert.match(refusal(target).message, /An upstream's name/, target);
    }
    assert.match(refusal("/u").message, /An upstream's name/);
    assert.match(refusal("/u?x=1").message, /An upstream's name/);
    assert.strictEqual(read(`/u/${"x".repeat(32)}/v1`).upstream, "x".repeat(32));
  });

  it("refuses what is no path", () => {
    for (const target of ["", "?x=1", "http://127.0.0.1/u/a", "*", "u/a", "example.com:443"])
      assert.deepInclude(refusal(target), { status: 400, reason: "target" });
  });

  const word = Schema.String.check(Schema.isPattern(/^[a-z0-9-]{1,32}$/));
  const parts = Schema.Struct({
    token: Schema.UndefinedOr(Schema.Literals(tokens)),
    reveal: Schema.UndefinedOr(Schema.Literals(["live", "on_complete"])),
    upstream: Schema.UndefinedOr(word),
    path: Schema.Array(
      Schema.Literals(["v1", "chat", "t", "u", "live", "", ".", "%2e", "a", "T", "recovery", "models:x"]),
    ),
    query: Schema.UndefinedOr(Schema.Literals(["", "a=b", "/t/x", "key=/u/y"])),
  });
  it.prop(
    "gives back what an address was made of, or refuses it",
    [parts],
    ([{ path, query, reveal, token, upstream }]) => {
      const prefixes = [
        ...(token === undefined ? [] : [`/t/${token}`]),
        ...(reveal === undefined ? [] : [`/${reveal}`]),
        ...(upstream === undefined ? [] : [`/u/${upstream}`]),
      ].join("");
      const rest = path.map((segment) => `/${segment}`).join("");
      const target = `${prefixes}${rest}${query === undefined ? "" : `?${query}`}`;
      const address = addressOf(target);
      if (!("refused" in address)) {
        const back = [
          ...(address.token === undefined ? [] : [`/t/${address.token}`]),
          ...(address.reveal === undefined ? [] : [`/${address.reveal}`]),
          ...(address.upstream === undefined ? [] : [`/u/${address.upstream}`]),
          address.target,
        ].join("");
        // A prefix without a path is the root.
        assert.include([target, target.replace(/(?=\?|$)/, "/")], back);
        // No prefix is left in what goes to a provider.
        assert.notMatch(address.target, /^\/+(?:t|u|live|on_complete)(?:[/?]|$)/i);
      }
      const first = path.find((segment) => segment !== "" && segment !== "." && segment !== "%2e");
      const clean = path[0] !== undefined && path[0] === first && /^(?:v1|chat|a|models:x)$/.test(first);
      const named = upstream === undefined || !new Set<string>(reservedNames).has(upstream);
      if (clean && named) assert.notProperty(address, "refused");
      if (clean && named) assert.deepInclude(address, { token, reveal, upstream });
      return true;
    },
  );
});
