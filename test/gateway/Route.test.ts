import { assert, describe, it } from "@effect/vitest";
import type { RelayHeaders } from "../../src/adapters/RelayTransport.ts";
import { upstreamsDefault } from "../../src/gateway/GatewayOptions.ts";
import { routeOf } from "../../src/gateway/Route.ts";

const anthropic: RelayHeaders = [["Anthropic-Version", "2023-06-01"]];
const google: RelayHeaders = [["X-Goog-Api-Key", "k"]];

describe("routeOf", () => {
  const cases: ReadonlyArray<readonly [string, RelayHeaders, string | undefined]> = [
    ["/v1/chat/completions", [], "https://api.openai.com/v1/chat/completions"],
    ["/v1/responses?x=1&y=%20", [], "https://api.openai.com/v1/responses?x=1&y=%20"],
    ["/v1/embeddings", [], "https://api.openai.com/v1/embeddings"],
    ["/responses", [], "https://api.openai.com/v1/responses"],
    ["/v1", [], "https://api.openai.com/v1"],
    ["/v1/messages", [], "https://api.anthropic.com/v1/messages"],
    ["/v1/messages/count_tokens", [], "https://api.anthropic.com/v1/messages/count_tokens"],
    ["/v1/messages?beta=true", [], "https://api.anthropic.com/v1/messages?beta=true"],
    ["/v1/models", anthropic, "https://api.anthropic.com/v1/models"],
    ["/v1/models", [], "https://api.openai.com/v1/models"],
    ["/v1/messagesx", [], "https://api.openai.com/v1/messagesx"],
    [
      "/v1beta/models/g:streamGenerateContent?alt=sse&key=k",
      [],
      "https://generativelanguage.googleapis.com/v1beta/models/g:streamGenerateContent?alt=sse&key=k",
    ],
    ["/upload/v1beta/files", [], "https://generativelanguage.googleapis.com/upload/v1beta/files"],
    ["/v1/models", google, "https://generativelanguage.googleapis.com/v1/models"],
    ["/v1/../../admin", [], undefined],
    ["/v1/%2e%2e/%2e%2e/admin", [], undefined],
    ["//evil.example/x", [], "https://api.openai.com/v1//evil.example/x"],
    ["/@evil.example/", [], "https://api.openai.com/v1/@evil.example/"],
  ];
  for (const [target, headers, url] of cases) {
    it(`sends ${target}${headers.map(([name]) => ` with ${name}`).join("")} to ${url ?? "nowhere"}`, () => {
      assert.strictEqual(routeOf(target, headers, upstreamsDefault)?.url, url);
    });
  }

  it("takes a base address with any path, with the version or without it, and never says the version twice", () => {
    const at = (base: string, target: string) =>
      routeOf(target, [], { openai: base, anthropic: base, gemini: base })?.url;
    assert.strictEqual(at("http://h:1", "/v1/chat/completions"), "http://h:1/v1/chat/completions");
    assert.strictEqual(at("http://h:1/", "/v1/chat/completions"), "http://h:1/v1/chat/completions");
    assert.strictEqual(at("http://h:1/openai/v1", "/v1/chat/completions"), "http://h:1/openai/v1/chat/completions");
    assert.strictEqual(at("http://h:1/inference", "/v1/chat/completions"), "http://h:1/inference/chat/completions");
    assert.strictEqual(at("http://h:1/v1", "/v1/messages"), "http://h:1/v1/messages");
    assert.strictEqual(at("http://h:1/x", "/v1/messages"), "http://h:1/x/v1/messages");
    assert.strictEqual(at("http://h:1/v1beta", "/v1beta/models"), "http://h:1/v1beta/models");
  });
});
