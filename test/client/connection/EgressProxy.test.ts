import { inspect } from "node:util";
import { assert, describe, it } from "@effect/vitest";
import { ConfigProvider, Effect, Redacted } from "effect";
import { proxyChoice } from "../../../src/client/ClientConfig.ts";
import {
  fromEnvironment,
  type ProxyTarget,
  parseExemptions,
  read,
} from "../../../src/client/connection/EgressProxy.ts";

const at = (url: string): ProxyTarget => {
  const { hostname, port, protocol } = new URL(url);
  return {
    protocol,
    hostname: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port) || (protocol === "https:" ? 443 : 80),
  };
};

describe("an egress proxy's address", () => {
  const good: ReadonlyArray<readonly [string, boolean, string, number, string | undefined]> = [
    ["http://proxy.corp:3128", false, "proxy.corp", 3128, undefined],
    ["https://proxy.corp", true, "proxy.corp", 443, undefined],
    ["HTTP://Proxy.Corp/", false, "proxy.corp", 80, undefined],
    ["proxy.corp:8080", false, "proxy.corp", 8080, undefined],
    ["http://[::1]:3128", false, "::1", 3128, undefined],
    ["http://user:p%40ss@proxy.corp:3128", false, "proxy.corp", 3128, "user:p@ss"],
    ["http://user@proxy.corp", false, "proxy.corp", 80, "user:"],
    ["http://gr%C3%BC%C3%9F:%F0%9F%94%91@proxy.corp", false, "proxy.corp", 80, "grüß:🔑"],
  ];
  for (const [address, secure, hostname, port, pair] of good) {
    it(`is parsed: ${address}`, () => {
      const proxy = read(address);
      assert.deepInclude(proxy, { secure, hostname, port });
      const header = proxy?.authorization === undefined ? undefined : Redacted.value(proxy.authorization);
      assert.strictEqual(header, pair === undefined ? undefined : `Basic ${Buffer.from(pair).toString("base64")}`);
    });
  }

  for (const bad of [
    "socks5://proxy:1080",
    "http://",
    "ftp://proxy",
    "http://proxy/path",
    "http://proxy?x=1",
    "http://a:%zz@b",
    "",
    "http://proxy:99999",
  ]) {
    it(`is refused: ${bad}`, () => assert.isUndefined(read(bad)));
  }

  it("reveals its password in no text that is made of it", () => {
    const proxy = read("http://user:hunter2secret@proxy.corp:3128");
    const basic = Buffer.from("user:hunter2secret").toString("base64");
    for (const text of [
      inspect(proxy, { depth: 9, showHidden: true }),
      JSON.stringify(proxy),
      String(proxy?.authorization),
    ])
      assert.notMatch(text, new RegExp(`hunter2secret|${basic}`));
  });
});

describe("NO_PROXY", () => {
  const rows: ReadonlyArray<readonly [string, ReadonlyArray<string>, ReadonlyArray<string>]> = [
    ["*", ["https://a.example", "http://10.0.0.1:8080"], []],
    [
      "example.com",
      ["https://example.com", "https://api.example.com", "https://EXAMPLE.com."],
      ["https://notexample.com"],
    ],
    [".example.com", ["https://example.com", "https://api.example.com"], ["https://notexample.com"]],
    ["*.example.com", ["https://a.b.example.com"], ["https://example.org"]],
    ["Example.COM.", ["https://api.example.com"], []],
    ["example.com:8443", ["https://example.com:8443"], ["https://example.com", "https://example.com:84"]],
    ["10.0.0.0/8", ["http://10.1.2.3", "https://10.255.0.1:8443"], ["http://11.0.0.1", "https://ten.example"]],
    ["192.168.7.9", ["http://192.168.7.9:11434"], ["http://192.168.7.90"]],
    ["192.168.7.9:11434", ["http://192.168.7.9:11434"], ["http://192.168.7.9"]],
    ["fd00::/8", ["http://[fd12::1]:80"], ["http://[fe00::1]"]],
    ["fd00::1", ["http://[fd00:0:0::1]"], ["http://[fd00::2]"]],
    ["[fd00::1]:8080", ["http://[fd00::1]:8080"], ["http://[fd00::1]"]],
    [
      " a.example , b.example\tc.example ",
      ["https://a.example", "https://b.example", "https://c.example"],
      ["https://d.example"],
    ],
    ["10.0.0.0/33, 10.0.0.0/x, /, ., ,", [], ["http://10.0.0.1", "https://a.example"]],
    ["", [], ["https://a.example"]],
  ];
  for (const [text, direct, proxied] of rows) {
    it(`means in ${JSON.stringify(text)}`, () => {
      const exempt = parseExemptions(text);
      for (const url of direct) assert.isTrue(exempt(at(url)), url);
      for (const url of proxied) assert.isFalse(exempt(at(url)), url);
    });
  }
});

describe("the environment's proxies", () => {
  const environment = (values: Record<string, string>) => ConfigProvider.layer(ConfigProvider.fromUnknown(values));
  const chosen = (values: Record<string, string>, url: string) =>
    Effect.map(Effect.provide(proxyChoice(undefined), environment(values)), (choose) => choose(at(url))?.hostname);

  it.effect(
    "apply to the scheme that they are named after, the lower-case form first, and an empty one as if it were unset",
    () =>
      Effect.gen(function* () {
        const both = { HTTP_PROXY: "http://upper-http", HTTPS_PROXY: "http://upper-https" };
        assert.strictEqual(yield* chosen(both, "https://a.example"), "upper-https");
        assert.strictEqual(yield* chosen(both, "http://a.example"), "upper-http");
        assert.strictEqual(yield* chosen({ ...both, https_proxy: "lower" }, "https://a.example"), "lower");
        assert.strictEqual(yield* chosen({ ...both, https_proxy: "" }, "https://a.example"), "upper-https");
        assert.isUndefined(yield* chosen({ HTTP_PROXY: "http://upper-http" }, "https://a.example"));
        assert.isUndefined(yield* chosen({ ...both, no_proxy: "a.example" }, "https://a.example"));
        assert.isUndefined(yield* chosen({ ...both, NO_PROXY: "a.example" }, "http://a.example"));
      }),
  );

  it("are not used for this machine and the link-local network", () => {
    const proxy = read("http://proxy");
    const choose = fromEnvironment({ http: proxy, https: proxy, none: "" });
    for (const host of [
      "localhost",
      "a.localhost",
      "localhost.",
      "127.0.0.1",
      "127.8.8.8",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "169.254.169.254",
      "[fe80::1]",
      "0.0.0.0",
    ])
      assert.isUndefined(choose(at(`http://${host}:8080`)), host);
    for (const host of ["128.0.0.1", "localhost.example", "notlocalhost", "[fec0::1]", "10.0.0.1"])
      assert.strictEqual(choose(at(`http://${host}:8080`)), proxy, host);
  });

  it.effect("fail the start if one is not an address, with an error that repeats no part of it", () =>
    Effect.gen(function* () {
      for (const name of ["HTTP_PROXY", "https_proxy"]) {
        const values = { [name]: "socks5://user:hunter2secret@proxy:1080" };
        const error = yield* Effect.flip(Effect.provide(proxyChoice(undefined), environment(values)));
        assert.strictEqual(error.message, `${name}: expected a proxy as http(s)://[user:password@]host[:port]`);
        assert.notInclude(inspect(error, { depth: 9 }), "hunter2");
      }
    }),
  );

  it.effect("yield to the caller's own setting: `direct`, or one proxy even for this machine", () =>
    Effect.gen(function* () {
      const values = { HTTPS_PROXY: "http://of-environment" };
      const of = (given: string) => Effect.provide(proxyChoice(given), environment(values));
      assert.isUndefined((yield* of("direct"))(at("https://a.example")));
      assert.strictEqual((yield* of("http://own"))(at("https://127.0.0.1"))?.hostname, "own");
    }),
  );
});
