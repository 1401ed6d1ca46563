import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import type { RelayHeaders } from "../../../src/adapters/relay/RelayTransport.ts";
import { GatewayError, type GatewayOptions, settingsOf } from "../../../src/gateway/config/GatewayOptions.ts";
import type { UpstreamSettings } from "../../../src/gateway/config/UpstreamSettings.ts";
import { addressOf } from "../../../src/gateway/routing/Address.ts";
import { wayOf } from "../../../src/gateway/routing/Way.ts";

const own = "https://llm.example/v1";

const upstream = (more: Partial<UpstreamSettings> = {}): UpstreamSettings => ({
  name: "a",
  url: own,
  headers: [],
  ...more,
});

const wayOn = (
  target: string,
  headers: RelayHeaders,
  named: ReadonlyArray<UpstreamSettings>,
  more: GatewayOptions = {},
) => {
  const settings = settingsOf({ ...more, named });
  if (settings instanceof GatewayError) throw settings;
  const address = addressOf(target);
  return "refused" in address ? address : wayOf(address, headers, settings);
};

/** Where a request goes, or `reason: message` of its refusal. */
const goes = (
  path: string,
  headers: RelayHeaders = [],
  more: Partial<UpstreamSettings> = {},
  options: GatewayOptions = {},
): string => {
  const way = wayOn(`/u/a${path}`, headers, [upstream(more)], options);
  return "refused" in way ? `${way.refused.status} ${way.refused.reason}` : way.url;
};

const bearer = (key: string): RelayHeaders => [["Authorization", `Bearer ${key}`]];

describe("a named upstream", () => {
  it("gets each protocol's path where its clients would ask for it", () => {
    assert.strictEqual(goes("/v1/chat/completions?x=1"), "https://llm.example/v1/chat/completions?x=1");
    assert.strictEqual(goes("/chat/completions"), "https://llm.example/v1/chat/completions");
    assert.strictEqual(goes("/v1/messages"), "https://llm.example/v1/messages");
    assert.strictEqual(
      goes("/v1/messages", [], { url: "https://llm.example/anthropic/" }),
      "https://llm.example/anthropic/v1/messages",
    );
    assert.strictEqual(
      goes("/v1beta/models/m:generateContent", [], { url: "https://llm.example" }),
      "https://llm.example/v1beta/models/m:generateContent",
    );
    const compatible = {
      url: "https://generativelanguage.googleapis.com/v1beta/openai",
      protocols: ["openai-chat"],
    } as const;
    assert.strictEqual(
      goes("/v1/chat/completions", bearer("AIzaSyabcdefg"), compatible),
      "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
    );
  });

  it("is not left by a path", () => {
    for (const path of ["/../x", "/v1/../../x", "/%2e%2e/x", "/v1/%252e%252e/x"])
      assert.strictEqual(goes(path), "404 target", path);
  });

  it("is asked what it is configured for, and nothing else", () => {
    const chat = { protocols: ["openai-chat"] } as const;
    assert.strictEqual(goes("/v1/chat/completions", [], chat), `${own}/chat/completions`);
    assert.strictEqual(goes("/v1/models", [], chat), `${own}/models`);
    assert.strictEqual(goes("/v1/embeddings", [], chat), `${own}/embeddings`);
    for (const path of [
      ...["/v1/responses", "/v1/messages", "/v1/models/gemini:generateContent", "/v1beta/models", "/v1internal:x"],
      ...["/v1/projects/p/locations/l/publishers/google/models/m:predict", "/model/m/invoke", "/api/chat"],
      ...["/v1/models/m%3AgenerateContent", "/openai/deployments/d/chat/completions"],
    ])
      assert.strictEqual(goes(path, [], chat), "400 vendor", path);
    const completions = { protocols: ["openai-chat", "openai-completions"] } as const;
    for (const path of ["/v1/completions", "/v1/fim/completions"]) {
      assert.strictEqual(goes(path, [], chat), "400 vendor", path);
      assert.strictEqual(goes(path, [], completions), path.replace("/v1", own), path);
    }
    const refused = wayOn("/u/a/v1/completions", [], [upstream(chat)]);
    assert.include(
      "refused" in refused ? refused.refused.message : "",
      "This path belongs to Completions and FIM (openai-completions), which the upstream a does not serve",
    );
    const both = { protocols: ["anthropic-messages", "openai-responses"] } as const;
    assert.strictEqual(goes("/v1/messages", [], both), `${own}/messages`);
    assert.strictEqual(goes("/v1/responses", [], both), `${own}/responses`);
    assert.strictEqual(goes("/v1/chat/completions", [], both), "400 vendor");
  });

  it("is asked what its host's owner has, where it is not configured for anything", () => {
    const openai = { url: "https://api.openai.com/v1" };
    assert.strictEqual(goes("/v1/responses", [], openai), "https://api.openai.com/v1/responses");
    for (const path of ["/v1/messages", "/v1beta/models/m:generateContent", "/model/m/invoke"])
      assert.strictEqual(goes(path, [], openai), "400 vendor", path);
    const azure = { url: "https://x.openai.azure.com" };
    const path = "/openai/deployments/d/chat/completions?api-version=1";
    assert.strictEqual(goes(path, [["api-key", "k"]], azure), `${azure.url}${path}`);
    assert.strictEqual(
      goes("/model/m/converse", [], { url: "https://bedrock-runtime.us-east-1.amazonaws.com" }).slice(0, 5),
      "https",
    );
  });

  const keys: ReadonlyArray<readonly [string, string, RelayHeaders]> = [
    ["a key of Anthropic's", "/v1/chat/completions", bearer("sk-ant-secret")],
    ["a key of Anthropic's by its name", "/v1/chat/completions", [["x-api-key", "sk-ant-secret"]]],
    ["a key of Google's", "/v1/chat/completions", bearer("AIzaSyabcdefg")],
    ["a header of Google's", "/v1/chat/completions", [["X-Goog-Api-Key", "secret"]]],
    ["a key of Google's in the query", "/v1/models?key=secret", []],
    ["a key in the query, encoded", "/v1/models?%6bey=AIzaSyabcdefg", []],
    ["an Anthropic key in a header of its own name", "/v1/models", [["x-my-api-key", "sk-ant-secret"]]],
  ];
  for (const [what, path, headers] of keys)
    it(`never gets ${what}`, () => {
      const chat = { protocols: ["openai-chat"] } as const;
      assert.strictEqual(goes(path, headers, chat), "400 vendor");
      assert.strictEqual(goes(path, headers, { ...chat, url: "http://127.0.0.1:9/v1" }), "400 vendor");
      assert.strictEqual(goes(path, headers, { url: "https://api.openai.com/v1" }), "400 vendor");
      const way = wayOn(`/u/a${path}`, headers, [upstream(chat)]);
      const message = "refused" in way ? way.refused.message : "";
      assert.match(message, /upstream a, so the gateway did not send it/);
      assert.notMatch(message, /secret|AIza|sk-ant/);
    });

  it("never gets a key of a vendor that owns another host", () => {
    const groq = { url: "https://api.groq.com/openai/v1" };
    assert.strictEqual(goes("/v1/chat/completions", bearer("gsk_abc"), groq), `${groq.url}/chat/completions`);
    assert.strictEqual(goes("/v1/chat/completions", bearer("plain"), groq), `${groq.url}/chat/completions`);
    for (const key of ["sk-proj-abc", "sk-ant-abc", "xai-abc", "AIzaSyabcdefg"])
      assert.strictEqual(goes("/v1/chat/completions", bearer(key), groq), "400 vendor", key);
  });

  it("gets the keys of the protocols that it is configured for", () => {
    const both = { protocols: ["openai-chat", "anthropic-messages"] } as const;
    assert.strictEqual(goes("/v1/chat/completions", bearer("sk-ant-x"), both), `${own}/chat/completions`);
    assert.strictEqual(
      goes(
        "/v1/messages",
        [
          ["x-api-key", "k"],
          ["anthropic-version", "1"],
        ],
        both,
      ),
      `${own}/messages`,
    );
    // A vendor's requests are configured to go to that very server.
    const same = { upstreams: { anthropic: "https://llm.example" } };
    assert.strictEqual(goes("/v1/chat/completions", bearer("sk-ant-x"), {}, same), `${own}/chat/completions`);
  });

  it("accepts options of Anthropic's protocol for a server that offers Anthropic's models under another vendor's name", () => {
    const version: RelayHeaders = [["anthropic-beta", "x"]];
    const router = { url: "https://openrouter.ai/api/v1" };
    assert.strictEqual(goes("/v1/chat/completions", version, router), `${router.url}/chat/completions`);
    assert.strictEqual(goes("/v1/messages", version, router), `${router.url}/messages`);
    assert.strictEqual(goes("/v1/chat/completions", version, { url: "https://api.openai.com/v1" }), "400 vendor");
  });

  it("is none where there is none of that name, in a sentence", () => {
    const way = wayOn("/u/b/v1/models", [], [upstream()]);
    assert.deepInclude("refused" in way ? way.refused : {}, { status: 404, reason: "address" });
    const byDefault = wayOn("/u/anthropic/v1/messages", [], []);
    assert.strictEqual("url" in byDefault ? byDefault.url : "", "https://api.anthropic.com/v1/messages");
  });
});

describe("an upstream with a credential of its own", () => {
  const mine = Redacted.make("sk-mine");
  const client: RelayHeaders = [
    ["Authorization", "Bearer sk-ant-secret"],
    ["X-Api-Key", "secret"],
    ["api-key", "secret"],
    ["X-Goog-Api-Key", "secret"],
    ["x-goog-user-project", "secret"],
    ["Ocp-Apim-Subscription-Key", "secret"],
    ["Cookie", "session=secret"],
    ["Proxy-Authorization", "secret"],
    ["X-Amz-Security-Token", "secret"],
    ["x-amz-date", "secret"],
    ["cf-aig-authorization", "secret"],
    ["helicone-auth", "secret"],
    ["x-portkey-api-key", "secret"],
    ["x-auth-token", "secret"],
    ["x-authtoken", "secret"],
    ["accesskey", "secret"],
    ["openai-organization", "secret"],
    ["x-odd", "Bearer sk-ant-secret"],
  ];
  const kept: RelayHeaders = [
    ["Content-Type", "application/json"],
    ["anthropic-version", "2023-06-01"],
    ["Idempotency-Key", "i-1"],
    ["User-Agent", "me/1"],
    ["x-stainless-retry-count", "0"],
  ];
  const query =
    "?key=secret&api-key=secret&alt=sse&access_token=secret&accessToken=secret&X-Amz-Signature=secret&a=%20b&z=AIzaSysecret";
  const sent = (path: string, more: Partial<UpstreamSettings> = {}, headers: RelayHeaders = [...client, ...kept]) => {
    const way = wayOn(`/u/a${path}`, headers, [upstream({ credential: mine, ...more })]);
    if ("refused" in way) throw new Error(way.refused.message);
    assert.strictEqual(way.headers, headers);
    return way.outgoing(way);
  };

  it("gets no credential of the client, whatever it is called, and the rest as it came", () => {
    for (const path of ["/v1/chat/completions", "/v1/messages", "/v1beta/models/m:generateContent", "/v1/models"]) {
      const { headers, url } = sent(`${path}${query}`, { url: "https://llm.example" });
      assert.notInclude(JSON.stringify([headers, url]), "secret", path);
      assert.isTrue(url.endsWith("?alt=sse&a=%20b"), url);
      for (const pair of kept) assert.deepInclude(headers, pair);
    }
  });

  it("gets its own where its protocol has it", () => {
    const own = (path: string, more: Partial<UpstreamSettings> = {}) => sent(path, more).headers.slice(kept.length);
    assert.deepStrictEqual(own("/v1/chat/completions"), [["authorization", "Bearer sk-mine"]]);
    assert.deepStrictEqual(own("/v1/responses"), [["authorization", "Bearer sk-mine"]]);
    assert.deepStrictEqual(own("/v1/messages"), [["x-api-key", "sk-mine"]]);
    assert.deepStrictEqual(own("/v1beta/models/m:generateContent"), [["x-goog-api-key", "sk-mine"]]);
    const oauth = { credential: Redacted.make("sk-ant-oat-1") };
    assert.deepStrictEqual(own("/v1/messages", oauth), [["authorization", "Bearer sk-ant-oat-1"]]);
    const azure = { url: "https://x.openai.azure.com/openai/v1" };
    assert.deepStrictEqual(own("/v1/chat/completions", azure), [["api-key", "sk-mine"]]);
  });

  it("is one too where a header of its own is a credential", () => {
    const { headers } = sent("/v1/chat/completions", { headers: [["X-API-Key", "sk-mine"]] });
    assert.notInclude(JSON.stringify(headers), "secret");
    assert.deepInclude(headers, ["X-API-Key", "sk-mine"]);
  });

  it("gets its own headers in place of the client's of those names", () => {
    const more = {
      headers: [
        ["user-agent", "us"],
        ["x-team", "a"],
      ],
    } as const;
    const { headers } = sent("/v1/models", more);
    assert.deepStrictEqual(
      headers.filter(([name]) => /^(?:user-agent|x-team)$/i.test(name)),
      [
        ["user-agent", "us"],
        ["x-team", "a"],
      ],
    );
  });

  it("refuses another vendor's path all the same", () => {
    const way = wayOn("/u/a/v1/messages", [], [upstream({ credential: mine, protocols: ["openai-chat"] })]);
    assert.deepInclude("refused" in way ? way.refused : {}, { status: 400, reason: "vendor" });
  });

  it("may be one of those that need no prefix", () => {
    const named = [upstream({ name: "openai", credential: mine })];
    const way = wayOn("/v1/chat/completions", bearer("sk-ant-placeholder"), named);
    assert.deepStrictEqual("url" in way ? way.outgoing(way) : way, {
      url: `${own}/chat/completions`,
      headers: [["authorization", "Bearer sk-mine"]],
    });
  });
});

describe("a default upstream on the gateway's own machine", () => {
  const ollama = "http://127.0.0.1:11434";
  const isReached = { host: "0.0.0.0", token: "a-token-of-a-test" };
  const at = (target: string, more: GatewayOptions, named: ReadonlyArray<UpstreamSettings> = []) => {
    const way = wayOn(target, [], named, more);
    return "refused" in way ? `${way.refused.status} ${way.refused.reason}` : way.url;
  };

  it("serves a gateway that only this machine reaches", () => {
    assert.strictEqual(at("/api/chat", {}), `${ollama}/api/chat`);
    assert.strictEqual(at("/u/ollama/api/chat", { host: "::1" }), `${ollama}/api/chat`);
  });

  it("serves a gateway that other machines reach only if its address is configured", () => {
    assert.strictEqual(at("/api/chat", isReached), "404 address");
    assert.strictEqual(at("/u/ollama/api/chat", isReached), "404 address");
    assert.strictEqual(at("/api/chat", { ...isReached, upstreams: { ollama } }), `${ollama}/api/chat`);
    assert.strictEqual(at("/api/chat", isReached, [upstream({ name: "ollama", url: ollama })]), `${ollama}/api/chat`);
    assert.strictEqual(at("/v2/chat", isReached), "https://api.cohere.com/v2/chat");
  });

  it("changes no models of a server that the operator has not chosen", () => {
    assert.strictEqual(at("/api/pull", {}), "400 vendor");
    assert.strictEqual(at("/u/ollama/api/pull", {}), "400 vendor");
    assert.strictEqual(at("/u/ollama/", {}), `${ollama}/`);
    const upstreams = { ollama: "http://gpu.example:11434" };
    assert.strictEqual(at("/u/ollama/api/pull", { upstreams }), `${upstreams.ollama}/api/pull`);
    assert.strictEqual(at("/u/a/api/pull", {}, [upstream({ url: ollama })]), `${ollama}/api/pull`);
  });
});

describe("how a request is answered", () => {
  const asked = (target: string, headers: RelayHeaders = []) => {
    const way = wayOn(target, headers, []);
    return "refused" in way ? way.refused.reason : way.asked;
  };

  it("is asked for by the path, else by the header", () => {
    assert.isUndefined(asked("/v1/models"));
    assert.strictEqual(asked("/on_complete/v1/models"), "on_complete");
    assert.strictEqual(asked("/v1/models", [["X-Recovery-Reveal", " on_complete "]]), "on_complete");
    assert.strictEqual(asked("/live/v1/models", [["x-recovery-reveal", "on_complete"]]), "live");
  });

  it("is refused where the header says no such word, or two", () => {
    for (const word of ["", "Live", "on-complete", "live,on_complete"])
      assert.strictEqual(asked("/v1/models", [["x-recovery-reveal", word]]), "reveal", word);
    const two: RelayHeaders = [
      ["x-recovery-reveal", "live"],
      ["X-Recovery-Reveal", "on_complete"],
    ];
    assert.strictEqual(asked("/v1/models", two), "reveal");
  });
});
