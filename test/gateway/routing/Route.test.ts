import { assert, describe, it } from "@effect/vitest";
import type { RelayHeaders } from "../../../src/adapters/relay/RelayTransport.ts";
import { type Upstreams, upstreamsDefault } from "../../../src/gateway/config/Options.ts";
import { routeOf } from "../../../src/gateway/routing/Route.ts";

const anthropic: RelayHeaders = [["Anthropic-Version", "2023-06-01"]];
const google: RelayHeaders = [["X-Goog-Api-Key", "k"]];

/** The address, or nothing for a request that goes nowhere. */
const urlOf = (target: string, headers: RelayHeaders, upstreams: Upstreams = upstreamsDefault): string | undefined => {
  const route = routeOf(target, headers, upstreams);
  return "refused" in route ? undefined : route.url;
};

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
      assert.strictEqual(urlOf(target, headers), url);
    });
  }

  it("accepts a base address with any path, with or without the version, and never repeats the version", () => {
    const at = (base: string, target: string) =>
      urlOf(target, [], { ...upstreamsDefault, openai: base, anthropic: base, gemini: base, bedrock: base });
    assert.strictEqual(at("http://h:1", "/v1/chat/completions"), "http://h:1/v1/chat/completions");
    assert.strictEqual(at("http://h:1/", "/v1/chat/completions"), "http://h:1/v1/chat/completions");
    assert.strictEqual(at("http://h:1/openai/v1", "/v1/chat/completions"), "http://h:1/openai/v1/chat/completions");
    assert.strictEqual(at("http://h:1/inference", "/v1/chat/completions"), "http://h:1/inference/chat/completions");
    assert.strictEqual(at("http://h:1/v1", "/v1/messages"), "http://h:1/v1/messages");
    assert.strictEqual(at("http://h:1/x", "/v1/messages"), "http://h:1/x/v1/messages");
    assert.strictEqual(at("http://h:1/v1beta", "/v1beta/models"), "http://h:1/v1beta/models");
  });
});

/** A gateway whose upstreams are servers of their own, as by default. */
const toldOf = (target: string, headers: RelayHeaders, upstreams: Upstreams = upstreamsDefault) => {
  const route = routeOf(target, headers, upstreams);
  return "refused" in route ? `${route.refused.status} ${route.refused.reason}` : route.upstream;
};

const bearer = (key: string): RelayHeaders => [["Authorization", `Bearer ${key}`]];

describe("routeOf, where another vendor's credential or path is carried", () => {
  const chat = "/v1/chat/completions";
  const cases: ReadonlyArray<readonly [string, RelayHeaders, string]> = [
    // Google's paths, in every spelling.
    ["/v1/models/gemini-2.0-flash:generateContent?key=AIzaSyEXAMPLE", [], "gemini"],
    ["/v1/models/gemini-2.0-flash%3AgenerateContent", [], "gemini"],
    ["/v1/models/gemini-2.0-flash%253AgenerateContent", [], "gemini"],
    ["/v1/models/g:STREAMGENERATECONTENT/", [], "gemini"],
    ["/v1//models//g:countTokens", [], "gemini"],
    ["/v1/./models/g:embedContent", [], "gemini"],
    ["/%76%31beta/models", [], "gemini"],
    ["/v1alpha/live", [], "gemini"],
    ["/v1beta/openai/chat/completions", bearer("AIzaSyEXAMPLE"), "gemini"],
    ["/v1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent", bearer("ya29.EXAMPLE"), "gemini"],
    [
      "/v1/projects/p/locations/l/publishers/anthropic/models/c:rawPredict",
      [...anthropic, ...bearer("ya29.E")],
      "gemini",
    ],
    ["/v1/cachedContents", [], "gemini"],
    // A colon in a model's name is no call of Google's.
    ["/v1/models/ft:gpt-4o:org::id", [], "openai"],
    ["/v1/models/llama3:8b", [], "openai"],
    // Anthropic's.
    ["/v1/models", [["x-api-key", "sk-ant-EXAMPLE"]], "anthropic"],
    ["/v1/models", bearer("sk-ant-EXAMPLE"), "anthropic"],
    [chat, bearer("sk-ant-EXAMPLE"), "anthropic"],
    ["/V1/Messages", [], "anthropic"],
    ["/v1/%6dessages", [], "anthropic"],
    ["/anthropic/v1/messages", [], "anthropic"],
    ["/v1/threads/t/messages", [], "openai"],
    ["/v1/organizations/api_keys", [["x-api-key", "sk-ant-admin-EXAMPLE"]], "anthropic"],
    // Two vendors at once, or the wrong one.
    [chat, google, "400 vendor"],
    [chat, [["x-api-key", "k"]], "400 vendor"],
    [chat, [...bearer("sk-proj-EXAMPLE"), ["X-API-Key", "sk-ant-EXAMPLE"]], "400 vendor"],
    [`${chat}?key=AIzaSyEXAMPLE`, [], "400 vendor"],
    [`${chat}?%6bey=AIzaSyEXAMPLE`, [], "400 vendor"],
    ["/v1/responses", bearer("sk-ant-EXAMPLE"), "400 vendor"],
    ["/v1/responses", anthropic, "400 vendor"],
    ["/v1/responses", [["authorization", "AIzaSyEXAMPLE"]], "400 vendor"],
    ["/v1/embeddings", bearer("AQ.Ab8RN6EXAMPLE"), "400 vendor"],
    ["/v1/messages", bearer("sk-proj-EXAMPLE"), "400 vendor"],
    ["/v1/messages", [["openai-organization", "o"]], "400 vendor"],
    ["/v1/messages", bearer("sk-abcT3BlbkFJabc"), "400 vendor"],
    ["/v1/messages", [["x-api-key", "sk-proj-EXAMPLE"]], "400 vendor"],
    [
      "/v1/messages",
      [
        ["x-api-key", "sk-ant-E"],
        ["x-api-key", "sk-or-v1-E"],
      ],
      "400 vendor",
    ],
    ["/v1beta/models", [["x-api-key", "sk-ant-EXAMPLE"]], "400 vendor"],
    ["/v1beta/models", [["x-goog-api-key", "sk-proj-EXAMPLE"]], "400 vendor"],
    ["/v1/models/g:generateContent", bearer("sk-proj-EXAMPLE"), "400 vendor"],
    // A name that others use too says whom a credential is not for, and moves no request.
    ["/v1/models", [["x-api-key", "k"]], "400 vendor"],
    ["/v1/models?key=k", [], "400 vendor"],
    ["/v1/models?access_token=ya29.EXAMPLE", [], "gemini"],
    // Vendors that have no upstream here.
    [chat, [["api-key", "k"]], "400 vendor"],
    ["/openai/deployments/d/chat/completions?api-version=1", [["api-key", "k"]], "400 vendor"],
    [
      "/model/anthropic.claude/invoke-with-response-stream",
      [["authorization", "AWS4-HMAC-SHA256 Credential=A"]],
      "bedrock",
    ],
    ["/model/anthropic.claude/converse", [], "bedrock"],
    ["/model/anthropic.claude/converse", bearer("sk-proj-EXAMPLE"), "400 vendor"],
    ["/api/pull", [], "400 vendor"],
    // Vendors whose own protocols have an upstream.
    ["/api/chat", [], "ollama"],
    ["/api/generate", bearer("an-ollama-key"), "ollama"],
    ["/api/generate", bearer("gsk_EXAMPLE"), "ollama"],
    ["/v2/chat", bearer("k"), "cohere"],
    ["/v2/chat", bearer("sk-ant-EXAMPLE"), "400 vendor"],
    ["/v1internal:streamGenerateContent?alt=sse", bearer("ya29.EXAMPLE"), "code-assist"],
    ["/v1internal:loadCodeAssist", bearer("sk-proj-EXAMPLE"), "400 vendor"],
    [chat, bearer("gsk_EXAMPLE"), "400 vendor"],
    [chat, bearer("sk-or-v1-EXAMPLE"), "400 vendor"],
    ["/v1/messages", bearer("xai-EXAMPLE"), "400 vendor"],
    // The gateway's own token is no vendor's credential, and what is not known says nothing.
    [chat, [["x-recovery-token", "sk-ant-EXAMPLE-of-24"], ...bearer("sk-EXAMPLE")], "openai"],
    ["/v1/messages", bearer("a-token-of-a-proxy"), "anthropic"],
    // A server may read these as another path than the one that was looked at.
    ["/v1/..%2f..%2fadmin", [], "404 target"],
    ["/v1/%252e%252e/admin", [], "404 target"],
    ["/v1/models%00:generateContent", [], "404 target"],
    ["/v1/%25252525256dessages", [], "404 target"],
  ];
  for (const [target, headers, where] of cases) {
    const carried = headers.map(([name, value]) => ` with ${name}: ${value}`).join("");
    it(`sends ${target}${carried} to ${where}`, () => assert.strictEqual(toldOf(target, headers), where));
  }

  it("names what is carried, where it would go and what to do, and no key", () => {
    const route = routeOf(chat, [["x-api-key", "sk-ant-EXAMPLE"], ...bearer("sk-proj-OTHER")], upstreamsDefault);
    assert.isTrue("refused" in route);
    const said = "refused" in route ? route.refused.message : "";
    assert.match(said, /OpenAI \(authorization\).*Anthropic \(--anthropic-url\).*not send it/);
    assert.notMatch(said, /EXAMPLE|OTHER/);
  });

  it("recognises a server that is configured for both, and a vendor's own host", () => {
    const one = { ...upstreamsDefault, openai: "http://h:1/v1", anthropic: "http://h:1", gemini: "http://h:1" };
    assert.strictEqual(toldOf(chat, [["x-api-key", "k"]], one), "openai");
    assert.strictEqual(toldOf("/v1/messages", bearer("sk-proj-E"), one), "anthropic");
    const local = { ...upstreamsDefault, openai: "http://localhost:11434/v1" };
    assert.strictEqual(toldOf(chat, [["api-key", "k"]], local), "openai");
    assert.strictEqual(toldOf(chat, bearer("sk-or-v1-E"), local), "openai");
    assert.strictEqual(toldOf(chat, google, local), "400 vendor");
    const router = { ...upstreamsDefault, openai: "https://openrouter.ai/api/v1" };
    assert.strictEqual(toldOf(chat, bearer("sk-or-v1-E"), router), "openai");
    assert.strictEqual(toldOf(chat, bearer("gsk_E"), router), "400 vendor");
    const compatible = { ...upstreamsDefault, openai: "https://generativelanguage.googleapis.com/v1beta/openai" };
    assert.strictEqual(toldOf(chat, bearer("AIzaSyEXAMPLE"), compatible), "openai");
    const vertexClaude = { ...upstreamsDefault, anthropic: "https://us-east5-aiplatform.googleapis.com" };
    const path = "/v1/projects/p/locations/l/publishers/anthropic/models/c:streamRawPredict";
    assert.strictEqual(toldOf(path, bearer("ya29.E"), vertexClaude), "anthropic");
  });
});
